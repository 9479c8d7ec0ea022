"""What `medi discover --json` and `medi assign --json` print, as programs read it."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from contracts import check, check_printed, validator
from people import discover, facts_of, tinted
from processes import end, start

from medi.cli import main as cli
from medi.core.errors import Exit


def test_a_discovery_prints_what_it_wrote(folders, medi_):
    tinted(folders / "novel" / os.fsdecode(b"caf\xe9.png"), (200, 40, 200), 1)
    (folders / "novel" / "broken.png").write_text("no photo")
    result = medi_(*discover(folders, "--classes", "2", "--export", "--json"))
    assert result.code == 0, result.err
    facts = check_printed("discovery", result.out)
    assert facts == facts_of(folders)
    assert facts["exported"]
    assert [Path(item["path"]).name for item in facts["skipped"]] == ["broken.png"]
    check("discovery", {key: value for key, value in facts.items() if key != "exported"})
    for key in facts.keys() - {"exported"}:
        assert not validator("discovery").is_valid({k: v for k, v in facts.items() if k != key}), key
    assert not validator("discovery").is_valid(facts | {"more": 1})


@pytest.mark.usefixtures("few_bags")
def test_a_discovery_from_features_with_known_classes_enough_prints_its_figures(tmp_path, medi_):
    rng, paths, vectors = np.random.default_rng(0), [], []
    for number in range(8):
        folder = Path("known") / f"class {number}" if number < 6 else Path("novel")
        centre = rng.normal(size=16)
        for i in range(5):
            path = tinted(tmp_path / folder / f"{number} {i}.png", (40 * (number % 6), 90, 90), 10 * number + i)
            paths.append(str(path))
            vectors.append(centre + 0.2 * rng.normal(size=16))
    np.savez(tmp_path / "features.npz", path=np.array(paths), vector=np.array(vectors, dtype=np.float32))
    words = ("--features", tmp_path / "features.npz", "--method", "kmeans", "--json")
    result = medi_(*discover(tmp_path, *words))
    assert result.code == 0, result.err
    facts = check_printed("discovery", result.out)
    assert facts["features"]["dimension"] == 16
    assert facts["diagnostics"]["calibrated"]
    assert facts["diagnostics"]["rehearsed"] is not None
    assert sum(facts["kinds"].values()) == 10


def test_assign_prints_its_counts(folders, medi_):
    assert medi_(*discover(folders, "--classes", "2")).code == 0
    (folders / "novel" / "broken.png").write_text("no photo")
    out = folders / "new.csv"
    words = ("assign", "--model", folders / "out" / "model", "--images", folders / "novel", "--out", out)
    result = medi_(*words, "--json")
    assert result.code == 0, result.err
    found = check_printed("assign", result.out)
    assert (found["photos"], sum(found["kinds"].values()), found["out"]) == (8, 8, str(out))
    assert found["skipped"][0]["path"] == "broken.png"
    assert len(out.read_text().splitlines()) == 9


def test_whatever_prints_there_is_one_document_on_stdout(folders, medi_):
    (folders / "own.py").write_text("from medi.methods.kmeans import *\nclass Own(KMeans): ...\nprint('I am loud')\n")
    words = ("--classes", "2", "--method", f"{folders / 'own.py'}:Own", "--json")
    result = medi_(*discover(folders, *words))
    assert result.code == 0, result.err
    check_printed("discovery", result.out)
    assert "I am loud" in result.err


def without_a_reader(words, folder):
    """The program, for a process of its own, with a stdout that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    sys.stdout, sys.stderr = os.fdopen(writing, "w"), (folder / "stderr").open("w")
    sys.argv = ["medi", *map(str, words)]
    cli.run()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_the_results_are_complete_where_nobody_reads_the_document(folders):
    process = start(without_a_reader, discover(folders, "--classes", "2", "--json"), folders)
    assert end(process) == Exit.CLOSED_PIPE
    assert "Traceback" not in (folders / "stderr").read_text()
    check("discovery", facts_of(folders))
    assert not (folders / "out" / "unfinished").exists()
