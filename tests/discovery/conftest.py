"""What the tests of the commands share."""

import sys

import pytest
from people import PALETTES, Result, tinted

import medi.cli
from medi.discovery import rehearsal


@pytest.fixture
def medi_(capsys, monkeypatch):
    """Run the program here and now, as `medi WORDS…`."""

    def run(*words) -> Result:
        monkeypatch.setattr(sys, "argv", ["medi", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            medi.cli.run()
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
