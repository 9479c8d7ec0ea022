"""Scripts of `benchmarks` run at their smallest; they and `experiments` answer an unknown option in one line."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import clustering
import numpy as np
import pytest
import reading
from blobs import blobs
from discover_draws import Source, draw
from official import CIFAR100, random_images, write_cifar
from people import tinted
from script import read_json, run

import discover

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    path.stem
    for folder in ("benchmarks", "experiments", "experiments/theory")
    for path in (ROOT / folder).glob("*.py")
    if "\ndef main(parser: Parser)" in path.read_text()
)
proc_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def answer(main, capsys, monkeypatch, *words: object) -> tuple[int, str]:
    """Exit code and stderr of a script."""
    monkeypatch.setattr(sys, "argv", ["script.py", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        run(main, "what it does")
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("name", SCRIPTS)
def test_unknown_arguments_are_one_line(name, capsys, monkeypatch):
    code, said = answer(import_module(name).main, capsys, monkeypatch, "--out", "nowhere", "--nonsense")
    assert code == 2
    assert "--nonsense" in said or "required" in said
    assert said.count("\n") == 1


SMALLEST = {
    "maml": "--device cpu --network mlp --side 4 --tasks 2 --steps 1 --repeats 1",
    "speed": "--device cpu --dataset glyphs --episodes 2",
    "pool": "--sizes 40 --only assign,known",
    "scaling": "--repeats 1 --steps 1",
}
FOUND = {
    "maml": lambda found: max(way["relative difference of gradients"] for way in found["ways"]) < 1e-3,
    "speed": lambda found: found["scoring 5-way, honest: ratio to scikit-learn"] > 0,
    "pool": lambda found: (found["assign"]["40"]["rows"], found["known"]["40"]["rows"]) == (40, 200),
    "scaling": lambda found: all({"1", "2"} >= set(one) for one in found["min, median and max over repeats"].values()),
}


@pytest.mark.slow
@proc_only
@pytest.mark.parametrize("name", SMALLEST)
def test_a_script_runs_at_its_smallest(name, tmp_path):
    words = [
        sys.executable,
        ROOT / "benchmarks" / f"{name}.py",
        *SMALLEST[name].split(),
        "--out",
        tmp_path / "out.json",
    ]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert FOUND[name](read_json(tmp_path / "out.json"))


@pytest.mark.slow
@proc_only
def test_a_command_is_timed_alone_and_beside_a_busy_process(tmp_path):
    for number in range(260):
        tinted(tmp_path / "photos" / f"{number // 10:02}" / f"{number}.png", (number // 2, 80, 160), number)
    words = ["--photos", tmp_path / "photos", "--only", "discover", "--rounds", "1", "--out", tmp_path / "out.json"]
    subprocess.run([sys.executable, ROOT / "benchmarks" / "beside.py", *words], check=True, timeout=600)
    found = read_json(tmp_path / "out.json")["discover"]
    for way in ("alone", "beside"):
        assert found[way][0]["seconds"] >= found[way][0]["processor seconds"] / (os.cpu_count() or 1) > 0
    assert found["times"]["seconds"] == round(found["beside"][0]["seconds"] / found["alone"][0]["seconds"], 2)


def test_every_search_is_compared_with_the_true_grouping(monkeypatch):
    monkeypatch.setattr(clustering, "EPISODES", 3)
    found = clustering.measure(way=3, width=8, scale=10.0)
    assert found.keys() == clustering.SEARCHES.keys()
    ours = found["balanced, default (annealed swaps)"]
    assert (ours["acc"], ours["share above the true grouping's cost"]) == (1, 0)


def test_every_pool_of_a_draw_is_scored(few_bags):
    points, labels = blobs(range(12), each=14)
    source = Source(points, labels, points, labels, shared=True)
    pure, mixed = (draw(source, 0, 5, unequal=False, mixed=mixed) for mixed in (False, True))
    rows = dict(discover.measure(pure, mixed, seed=0))
    assert tuple(rows) == discover.POOLS
    assert rows["only"]["acc given"] == rows["only"]["acc whitened Ward"] == 1
    assert 0 <= rows["mixed"]["known found"] <= 1
    assert rows["only"]["further"]["0.0"]["recognised"] > 0.7
    assert sum(rows["mixed"]["bins"]["lines"]) == len(mixed.truth)


def test_photos_are_read_by_both_engines(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_DATA", str(tmp_path))
    for file in CIFAR100.records:
        labels = np.resize([*range(8), 80, 81], 20)
        write_cifar(tmp_path / CIFAR100.folder / file, random_images(20), labels, coarse=True)
    exact, integers = reading.reading(tmp_path, photos=16, rounds=1).values()
    assert exact["photos a second"] > 0
    assert (exact["largest difference"], exact["mean cosine"]) == (0, pytest.approx(1))
    assert integers["largest difference"] > 0
