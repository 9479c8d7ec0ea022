import os
import sys
from dataclasses import replace

# One thread a worker, and in the programs that tests start: small tensors gain nothing from more, and on a busy machine
# threads that wait for each other cost a lot. Libraries read it when they are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
from people import PALETTES, Result, tinted

import medi.cli.main
from medi.core.system import keep_freed_memory
from medi.data.benchmarks import Benchmark, load
from medi.grouping import rehearsal
from medi.nn.loop import _Run


def pytest_configure() -> None:
    keep_freed_memory()  # as the program does


@pytest.fixture(scope="session")
def glyphs() -> Benchmark:
    return load("glyphs")


@pytest.fixture
def medi_(capsys, monkeypatch):
    """Run the program here and now, as `medi WORDS…`."""

    def run(*words) -> Result:
        monkeypatch.setattr(sys, "argv", ["medi", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            medi.cli.main.run()
        printed = capsys.readouterr()
        return Result(stop.value.code, printed.out, printed.err)

    return run


@pytest.fixture(scope="module")
def few_bags():
    """Rehearsals with few bags: quicker, where it does not matter what they say."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "SCALE_BAGS", 8)
        patch.setattr(rehearsal, "BAGS", 12)
        yield


@pytest.fixture
def hurry(monkeypatch):
    """From when it is called on, trainings have three steps, rehearsals are short, and few episodes are scored."""
    start = _Run.__init__

    def short(self, model, loss, schedule, *more):
        start(self, model, loss, replace(schedule, steps=min(3, schedule.steps)), *more)

    def begin():
        monkeypatch.setattr(_Run, "__init__", short)
        monkeypatch.setattr(rehearsal, "SCALE_BAGS", 8)
        monkeypatch.setattr(rehearsal, "BAGS", 12)
        monkeypatch.setitem(medi.evaluate.__kwdefaults__, "episodes", 5)

    return begin


@pytest.fixture(scope="session")
def kept_features(tmp_path_factory):
    return tmp_path_factory.mktemp("features")


@pytest.fixture(autouse=True)
def _cache(kept_features, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(kept_features))


@pytest.fixture
def folders(tmp_path):
    """Two known classes with three photos each, and photos of two others."""
    for number, name in enumerate(("reds", "greens")):
        for i in range(3):
            tinted(tmp_path / "known" / name / f"{i}.png", PALETTES[name], 10 * number + i)
    for number, name in enumerate(("blues", "greys")):
        for i in range(4):
            tinted(tmp_path / "novel" / f"{name} {i}.png", PALETTES[name], 100 + 10 * number + i)
    return tmp_path
