"""A grid on Ray: on a cluster of several node processes, one of which is killed in the middle."""

import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
import torch
from tiny import KMEANS_RUN

from medi.bench.run import run_grid
from medi.bench.setup import Setup
from medi.bench.work import RunBatch, do
from medi.core.errors import InputError, LostError
from medi.core.files import read_journal
from medi.core.progress import Silent
from medi.jobs.ray_workers import RayWorkers

RAY = importlib.util.find_spec("ray") is not None
with_ray = pytest.mark.skipif(not RAY, reason="Ray is not installed: pip install 'medi[ray]'")
RUNS = [replace(KMEANS_RUN, seed=seed) for seed in range(5)]
BATCH = RunBatch((KMEANS_RUN,), "out", 5, "cpu")


def on_ray(address: str, do: Callable[[str], str] = do) -> RayWorkers:
    return RayWorkers(address, 1, 0, do, what="trainings", again="go on with --resume")


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
    """Do a batch and note where; the first time on the second node, wait there for its end."""

    def do(item: str) -> str:
        import json
        import time

        import ray

        from medi.bench import work

        node = ray.get_runtime_context().get_node_id()
        with (folder / "begun").open("a") as file:
            file.write(f"{node} {json.loads(item)['runs'][0]['seed']}\n")
        if node == (folder / "doomed").read_text():
            time.sleep(600)
        return work.do(item)

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

    alone = run_grid(RUNS, Setup(tmp_path / "alone", 5, torch.device("cpu"), Silent()))
    killer = Thread(target=kill_once_it_is_at_work, daemon=True)
    killer.start()
    workers = on_ray(whole.address, noting(tmp_path))
    setup = Setup(tmp_path / "out", 5, torch.device("cpu"), Silent())
    rows = run_grid(RUNS, setup, workers=workers, worker_device="cpu")
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
    def do(item: str) -> str:
        return '{"error": "no such data: fetch it."}'

    whole, _ = cluster
    with pytest.raises(InputError, match="no such data"):
        list(on_ray(whole.address, do)([BATCH], Silent()))


@with_ray
@pytest.mark.slow
def test_an_exception_on_the_cluster_names_the_run_and_itself(cluster):
    def do(item: str) -> str:
        raise KeyError("unforeseen")

    whole, _ = cluster
    with pytest.raises(LostError, match=r"Ray lost rules kmeans .*unforeseen.*--resume"):
        list(on_ray(whole.address, do)([BATCH], Silent()))


@with_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_refused_by_its_address(address):
    with pytest.raises(InputError, match=f"--ray {address}: .*refused.*ray start --head"):
        list(on_ray(address)([BATCH], Silent()))


@pytest.mark.skipif(RAY, reason="Ray is installed")
def test_without_ray_the_cure_is_named():
    with pytest.raises(InputError, match=r'pip install "medi\[ray\]"'):
        list(on_ray("local")([BATCH], Silent()))
