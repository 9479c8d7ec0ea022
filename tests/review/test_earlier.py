"""What version 0.2.0 wrote (commit ce1ffb1, `--method kmeans --features`) still opens: folder, model and review."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from people import rows_of
from pictures import noise
from reviews import act

from medi.grouping.saved_pool import SavedPool
from medi.review.discovery_folder import read_folder
from medi.review.session import Review

WRITTEN = Path(__file__).parent / "earlier"


@pytest.fixture
def earlier(tmp_path) -> Path:
    """The folder that was written then, with its photos where it says."""
    out = shutil.copytree(WRITTEN, tmp_path / "out")
    facts = json.loads((out / "discovery.json").read_text())
    facts["arguments"] |= {"novel": str(tmp_path / "novel"), "known": str(tmp_path / "known")}
    (out / "discovery.json").write_text(json.dumps(facts))
    for number in range(12):
        noise(tmp_path / "novel" / f"{number}.png", seed=number)
    return out


def test_a_review_of_an_earlier_version_shows_what_was_said_and_goes_on(earlier):
    review = Review(read_folder(earlier), SavedPool.load(earlier / "model"))
    groups = {group["name"]: group["items"] for group in review.state()["groups"]}
    assert groups["lily"] == [1, 3, 4, 7, 10]
    assert review.state()["seq"] == 5
    state = act(review, "undo")
    assert 1 not in next(group["items"] for group in state["groups"] if group["name"] == "lily")
    act(review, "regroup")
    assert Review(read_folder(earlier), None).state()["seq"] == review.state()["seq"]


def test_groups_of_an_earlier_version_can_be_accepted_and_exported(earlier, medi_):
    assert medi_("accept", earlier, "--into", earlier.parent / "known", "--doubtful").code == 0
    assert len(list((earlier.parent / "known" / "lily").iterdir())) == 5
    assert medi_("export", earlier, "--format", "csv", "--out", earlier.parent / "names.csv").code == 0


def test_a_model_of_an_earlier_version_assigns(earlier, medi_):
    names, rng = [f"{number}.png" for number in range(12)], np.random.default_rng(0)
    np.savez(earlier.parent / "made.npz", path=np.array(names), vector=rng.normal(size=(12, 4)).astype(np.float32))
    found, file = earlier.parent / "new.csv", earlier.parent / "made.npz"
    words = ("--images", earlier.parent / "novel", "--features", file, "--out", found)
    assert medi_("assign", "--model", earlier / "model", *words).code == 0
    assert len(rows_of(found)) == 12


def test_a_finished_folder_of_an_earlier_version_is_not_written_over(earlier, medi_):
    noise(earlier.parent / "known" / "a" / "0.png", seed=50)
    found = medi_(
        "discover", "--known", earlier.parent / "known", "--novel", earlier.parent / "novel", "--out", earlier
    )
    assert found.code == 2
    assert "--force" in found.err
