"""A grid on Ray: on a cluster of several node processes, one of which is killed in the middle."""

import importlib.util
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import torch

from medi.bench.grid import Run
from medi.bench.run import run_grid
from medi.bench.work import Order
from medi.errors import InputError, LostError
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent
from medi.runtime.ray_workers import OnRay

RAY = importlib.util.find_spec("ray") is not None
with_ray = pytest.mark.skipif(not RAY, reason="Ray is not installed: pip install 'medi[ray]'")
KMEANS = Run("rules", "kmeans", "default", None, 5, 5, "honest", "episode", 0)
RUNS = [replace(KMEANS, seed=seed) for seed in range(5)]


@pytest.fixture(scope="module")
def cluster():
    """A head that does no work and two nodes that do one piece of it at a time."""
    import ray
    from ray.cluster_utils import Cluster

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster, nodes
    cluster.shutdown()


def noting(folder: Path):
    """Do an order and note where; the first time on the second node, wait there for its end."""

    def do(order: str) -> str:
        import json
        import time

        import ray

        from medi.bench import work

        node = ray.get_runtime_context().get_node_id()
        with (folder / "begun").open("a") as file:
            file.write(f"{node} {json.loads(order)['runs'][0]['seed']}\n")
        if node == (folder / "doomed").read_text():
            time.sleep(600)
        return work.do(order)

    return do


@with_ray
@pytest.mark.slow
def test_a_node_killed_in_the_middle_loses_nothing_and_repeats_nothing(tmp_path, cluster):
    whole, (_, doomed) = cluster
    (tmp_path / "doomed").write_text(doomed.node_id)

    def kill_once_it_is_at_work() -> None:
        begun = tmp_path / "begun"
        while not (begun.exists() and doomed.node_id in begun.read_text()):
            time.sleep(0.2)
        whole.remove_node(doomed, allow_graceful=False)

    options = {"episodes": 5, "device": torch.device("cpu"), "resume": False, "reporter": Silent()}
    alone = run_grid(RUNS, tmp_path / "alone", **options)
    killer = Thread(target=kill_once_it_is_at_work, daemon=True)
    killer.start()
    spread = OnRay(whole.address, do=noting(tmp_path))
    rows = run_grid(RUNS, tmp_path / "out", **options, spread=spread, spread_device="cpu")
    killer.join(60)
    assert not killer.is_alive(), "the doomed node never worked"
    written = read_journal(tmp_path / "out" / "results.jsonl")
    assert sorted(row["seed"] for row in written) == [0, 1, 2, 3, 4]
    strip = [{k: v for k, v in row.items() if k != "seconds"} for row in rows]
    assert strip == [{k: v for k, v in row.items() if k != "seconds"} for row in alone]
    begun = [line.split() for line in (tmp_path / "begun").read_text().splitlines()]
    lost = [seed for node, seed in begun if node == doomed.node_id]
    assert len(lost) == 1
    assert sum(seed == lost[0] for _, seed in begun) == 2, "what the dead node had begun is done again, once"


@with_ray
@pytest.mark.slow
def test_input_at_fault_on_the_cluster_is_an_input_error_here(cluster):
    def do(order: str) -> str:
        return '{"error": "no such data: fetch it."}'

    whole, _ = cluster
    with pytest.raises(InputError, match="no such data"):
        list(OnRay(whole.address, do=do)([Order((KMEANS,), "out", 5, "cpu")], Silent()))


@with_ray
@pytest.mark.slow
def test_an_exception_on_the_cluster_names_the_run_and_itself(cluster):
    def do(order: str) -> str:
        raise KeyError("unforeseen")

    whole, _ = cluster
    with pytest.raises(LostError, match=r"Ray lost rules kmeans .*unforeseen.*--resume"):
        list(OnRay(whole.address, do=do)([Order((KMEANS,), "out", 5, "cpu")], Silent()))


@with_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_refused_by_its_address(address):
    with pytest.raises(InputError, match=f"--ray {address}: .*refused.*ray start --head"):
        list(OnRay(address)([Order((KMEANS,), "out", 5, "cpu")], Silent()))


@pytest.mark.skipif(RAY, reason="Ray is installed")
def test_without_ray_the_cure_is_named():
    with pytest.raises(InputError, match=r"pip install 'medi\[ray\]'"):
        list(OnRay("local")([Order((KMEANS,), "out", 5, "cpu")], Silent()))
