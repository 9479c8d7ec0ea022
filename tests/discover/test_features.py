"""`medi discover` and `medi assign` with features that were made elsewhere."""

import json
import shutil

import numpy as np
import pytest
from people import PALETTES, discover, facts_of, refused, rows_of, tinted
from PIL import Image

from medi.core.progress import Silent
from medi.discover import run
from medi.nn.devices import choose_device
from medi.photos import encode_folder
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import read_photos
from medi.photos.encoders import DEFAULT_ENCODER, load_encoder
from medi.photos.folders import find_photos
from medi.report import page


def colours(file, *roots):
    """A file with the mean colour of every photo in some folders."""
    paths, vectors = [], []
    for root in roots:
        for path in find_photos(root, "").paths:
            with Image.open(root / path) as image:
                vectors.append(np.asarray(image.convert("RGB"), dtype=np.float32).mean((0, 1)) / 255)
            paths.append(path)
    np.savez(file, path=np.array(paths), vector=np.stack(vectors))
    return file


@pytest.fixture
def features(folders):
    return colours(folders / "colours.npz", folders / "known", folders / "novel")


def words(folders, *files, more=(), out="out"):
    given = [word for file in files for word in ("--features", file)]
    return discover(folders, "--classes", "2", "--method", "kmeans", *given, *more, out=out)


def assign(folders, *more, images="new"):
    return ("assign", "--model", folders / "out", "--images", folders / images, "--out", folders / "new.csv", *more)


@pytest.fixture
def model(folders, medi_, features):
    """A discovery with features, and new photos with theirs."""
    assert medi_(*words(folders, features)).code == 0
    for number, name in enumerate(PALETTES):
        for i in range(5):
            tinted(folders / "new" / name / f"{i}.png", PALETTES[name], 500 + 10 * number + i)
    return colours(folders / "new.npz", folders / "new")


def test_an_encoders_own_features_from_two_files_give_the_same_groups(folders, medi_, monkeypatch):
    assert medi_(*discover(folders, "--classes", "2")).code == 0
    encoder, files = load_encoder(DEFAULT_ENCODER, choose_device("auto")), []
    for root, absolute in ((folders / "known", True), (folders / "novel", False)):
        found = find_photos(root, "")
        read = read_photos(found, encoder, PhotoCache(encoder.identity, Silent()), Silent())
        paths = [str(root / path) if absolute else path for path in reversed(read.paths)]
        files += ["--features", folders / f"{root.name}.npz"]
        np.savez_compressed(files[-1], path=paths, vector=read.arrays[::-1])
    refused(medi_(*assign(folders, *files, images="novel")), DEFAULT_ENCODER, "leave out --features")
    monkeypatch.setattr(run, "choose_encoder", None)
    assert medi_(*discover(folders, "--classes", "2", *files, out="again")).code == 0
    assert [one["file"] for one in facts_of(folders, "again")["features"]["sources"]] == ["known.npz", "novel.npz"]
    for name in ("clusters.csv", "model/recogniser.safetensors"):
        assert (folders / "out" / name).read_bytes() == (folders / "again" / name).read_bytes()


def test_results_name_the_file_and_its_digest(folders, medi_, features):
    assert medi_(*words(folders, features)).code == 0
    facts = facts_of(folders)
    (source,) = facts["features"]["sources"]
    assert source["file"] == "colours.npz"
    assert len(source["sha256"]) == 64
    assert facts["features"]["dimension"] == 3
    assert facts["arguments"]["features"] == [{"file": str(features.resolve()), "sha256": source["sha256"]}]
    assert facts["arguments"]["encoder"] is None
    assert "--encoder" not in facts["command"]
    assert str(features) in facts["command"]
    saved = json.loads((folders / "out" / "model" / "encoder.json").read_text())
    assert saved["features"] == facts["features"]
    report = (folders / "out" / "report.html").read_text()
    assert "colours.npz" in report
    assert source["sha256"][:16] in report
    assert "EfficientNet" not in report, "nothing of its weights was used"
    assert report.count("data:image/jpeg") >= 8


def test_photos_are_decoded_for_the_report_only(folders, medi_, features, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(folders / "cache"))
    decoded, real = [], encode_folder.read_photo
    monkeypatch.setattr(
        encode_folder, "read_photo", lambda file, *a, **b: decoded.append(file.name) or real(file, *a, **b)
    )
    assert medi_(*words(folders, features)).code == 0
    assert sorted(decoded) == sorted(str(path) for path in (folders / "novel").iterdir())


def test_what_cannot_be_read_and_has_no_vector_is_skipped_and_listed(folders, medi_, features):
    (folders / "novel" / "letter.jpg").write_text("not a photo")
    (folders / "known" / "reds" / "letter.jpg").write_text("not a photo")
    (folders / "novel" / "film.mov").write_bytes(b"x")
    shutil.copy(folders / "novel" / "blues 0.png", folders / "novel" / "copy.png")
    refused(medi_(*words(folders, features)), "colours.npz", "copy.png")
    assert not (folders / "out").exists()
    (folders / "novel" / "copy.png").unlink()
    result = medi_(*words(folders, features))
    assert result.code == 0, result.err
    assert "3 files were skipped" in result.err
    assert len(rows_of(folders / "out" / "clusters.csv")) == 8


def test_arguments_that_do_not_go_together_are_refused(folders, medi_, features):
    refused(medi_(*words(folders, features, more=("--encoder", DEFAULT_ENCODER))), "--features", "--encoder")
    refused(medi_(*words(folders, features, more=("--ray",))), "--ray", "--features")
    refused(medi_(*words(folders, folders / "absent.npz")), "absent.npz")
    assert not (folders / "out").exists()


def test_an_unfinished_run_goes_on_with_the_same_features_only(folders, medi_, features, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(page, "render", stop)
        assert medi_(*words(folders, features)).code == 130
    before = features.read_bytes()
    with np.load(features) as arrays:
        np.savez(features, path=arrays["path"], vector=1 - arrays["vector"])
    refused(medi_(*words(folders, features)), "other arguments", "--force")
    features.write_bytes(before)
    assert medi_(*words(folders, features)).code == 0
    refused(medi_(*words(folders, features)), "finished discovery", "--force")
    assert medi_(*words(folders, features, more=("--force",))).code == 0


def test_new_photos_are_recognised_by_their_features(folders, medi_, model):
    (folders / "new" / "broken.jpg").write_text("not a photo")
    result = medi_(*assign(folders, "--features", model))
    assert result.code == 0, result.err
    assert "broken.jpg: not an image" in result.err
    rows = rows_of(folders / "new.csv")
    assert [row["path"] for row in rows] == sorted(f"{name}/{i}.png" for name in PALETTES for i in range(5))
    group_of = {row["path"].split()[0]: row["cluster"] for row in rows_of(folders / "out" / "clusters.csv")}
    for row in rows:
        name = row["path"].split("/")[0]
        known = name in ("reds", "greens")
        if row["kind"] != "none":
            assert (row["kind"], row["label"]) == (("known", name) if known else ("novel", group_of[name]))
    assert {"known", "novel"} <= {row["kind"] for row in rows}


def test_a_model_needs_features_of_its_own_kind(folders, medi_, model):
    refused(medi_(*assign(folders)), "colours.npz", "3 numbers", "--features")
    wide = folders / "wide.npz"
    with np.load(model) as arrays:
        np.savez(wide, path=arrays["path"], vector=np.tile(arrays["vector"], 2))
    refused(medi_(*assign(folders, "--features", wide)), "wide.npz", "6 numbers", "3 numbers")
    tinted(folders / "new" / "more.png", (1, 2, 3), 4)
    refused(medi_(*assign(folders, "--features", model)), "new.npz", "more.png")
    refused(medi_(*assign(folders, "--features", model, "--ray")), "--ray")
    refused(medi_(*discover(folders, "--encoder", folders / "out", out="second")), "--encoder", "colours.npz")
    assert not (folders / "new.csv").exists()
    assert not (folders / "second").exists()
    file = folders / "out" / "model" / "encoder.json"
    saved = json.loads(file.read_text())
    for change in ({"features": None}, {"identity": 5}, {"features": {"dimension": 3, "sources": [{"file": {}}]}}):
        file.write_text(json.dumps(saved | change))
        refused(medi_(*assign(folders, "--features", model)), "damaged")
