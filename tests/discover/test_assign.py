"""`medi assign`, and models that serve as encoders."""

import json
import shutil

import numpy as np
import pytest
from outline import Outline
from people import PALETTES, discover, facts_of, refused, rows_of, tinted

from medi.discover.model_folder import choose_encoder, load_model
from medi.discover.result import is_doubtful
from medi.photos import encoders


@pytest.fixture
def model(folders, medi_):
    assert medi_(*discover(folders, "--classes", "2")).code == 0
    for number, name in enumerate(PALETTES):
        for i in range(2):
            tinted(folders / "new" / name / f"{i}.png", PALETTES[name], 500 + 10 * number + i)
    return folders / "out" / "model"


def assign(folders, *more, model="out/model", out="new.csv"):
    return ("assign", "--model", folders / model, "--images", folders / "new", "--out", folders / out, *more)


def test_new_photos_are_assigned_to_groups_and_known_classes(folders, medi_, model):
    (folders / "new" / "broken.jpg").write_text("not a photo")
    result = medi_(*assign(folders))
    assert result.code == 0, result.err
    rows = rows_of(folders / "new.csv")
    first, second = ("kind", "label", "confidence"), ("second_kind", "second_label", "second_confidence")
    assert list(rows[0]) == ["path", *first, *second, "confidence_means", "likeliest", "likeliest_confidence"]
    assert [row["path"] for row in rows] == sorted(f"{name}/{i}.png" for name in PALETTES for i in range(2))
    group_of = {row["path"].split()[0]: row["cluster"] for row in rows_of(folders / "out" / "clusters.csv")}
    for row in rows:
        name = row["path"].split("/")[0]
        assert 0 <= float(row["confidence"]) <= 1
        assert (row["label"] == "") == (row["kind"] == "none")
        assert (row["kind"], row["label"]) != (row["second_kind"], row["second_label"])
        assert 0 <= float(row["second_confidence"]) <= 1
        assert row["second_kind"] != "none" or row["kind"] != "none"
        assert "probable" in row["confidence_means"]
        assert (row["likeliest"], row["likeliest_confidence"]) == (row["label"], row["confidence"])
        if row["kind"] != "none":
            assert row["kind"] == ("known" if name in ("reds", "greens") else "novel"), row
            assert row["label"] == (name if row["kind"] == "known" else group_of[name]), row
    assert {"known", "novel"} <= {row["kind"] for row in rows}
    assert "1 file was skipped" in result.err
    assert "broken.jpg: not an image" in result.err


def test_the_rate_of_none_moves_the_trade_off(folders, medi_, model):
    counts = []
    for rate in ("0", "0.5", "1"):
        assert medi_(*assign(folders, "--none-rate", rate, "--force")).code == 0
        counts.append(sum(row["kind"] == "none" for row in rows_of(folders / "new.csv")))
    assert counts[0] == 0
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
    for bad in ("-0.1", "1.5", "nan"):
        refused(medi_(*assign(folders, f"--none-rate={bad}", "--force")), "--none-rate", "0 to 1")


def test_what_is_no_model_is_named(folders, medi_, model):
    assert medi_(*assign(folders, model="out", out="other.csv")).code == 0, "its folder will do"
    file = model / "recogniser.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    refused(medi_(*assign(folders)), "recogniser.safetensors")
    file.write_bytes(whole)
    refused(medi_(*assign(folders, model="known")), "no model", "medi discover")
    refused(medi_(*assign(folders, model="nowhere")), "no model")
    (model / "encoder.json").write_text("{half")
    refused(medi_(*assign(folders)), "damaged")
    (model / "encoder.json").write_text(json.dumps({"name": encoders.DEFAULT_ENCODER, "identity": "another"}))
    refused(medi_(*assign(folders)), "another", "discover again")


def test_images_that_are_not_there_are_named(folders, medi_, model):
    shutil.rmtree(folders / "new")
    refused(medi_(*assign(folders)), "--images")
    (folders / "new").mkdir()
    refused(medi_(*assign(folders)), "no photos")
    (folders / "new" / "a.jpg").write_text("text")
    refused(medi_(*assign(folders)), "none of the 1 files", "not an image")


def test_a_saved_model_is_an_encoder_and_needs_nothing_outside(folders, medi_, model):
    words = discover(folders, "--classes", "2", "--encoder", folders / "out", out="second")
    assert medi_(*words).code == 0
    assert facts_of(folders, "second")["encoder"]["identity"].startswith("saved-")
    (folders / "out").rename(folders / "moved")
    assert medi_(*assign(folders, model="second/model")).code == 0
    recogniser, encoder = load_model(folders / "second", "cpu")
    side = encoder.cut.side
    images = np.random.default_rng(0).integers(0, 256, (3, 3, side, side)).astype(np.uint8)
    first, inner = load_model(folders / "moved", "cpu")
    assert np.allclose(encoder.encode(images), first.representation(inner.encode(images)))
    assert encoder.identity == choose_encoder(str(folders / "moved"), "cpu").identity
    assert recogniser.representation.shape == encoder.shape


def test_a_page_shows_what_the_table_says(folders, medi_, model):
    page = folders / "pages" / "new.html"
    assert medi_(*assign(folders, "--page", page)).code == 0
    rows = rows_of(folders / "new.csv")
    outline = Outline(page.read_text(encoding="utf-8"))
    assert outline.faults == []
    pictures = [a for tag, a in outline.tags if tag == "img" and a["alt"]]
    assert sorted(a["alt"] for a in pictures) == [row["path"] for row in rows]
    assert all(len(a["src"]) > 200 for a in pictures), "each has its thumbnail"
    doubtful = sum(is_doubtful(float(row["confidence"])) for row in rows)
    assert len(outline.find("figure", class_="doubtful")) == doubtful


def test_files_that_exist_are_kept_unless_that_is_forced(folders, medi_, model):
    table, page = folders / "new.csv", folders / "new.html"
    for file in (table, page):
        file.write_text("mine")
        refused(medi_(*assign(folders, "--page", page)), file.name, "--force")
        assert {one.read_text() for one in (table, page) if one.exists()} == {"mine"}
        assert medi_(*assign(folders, "--page", page, "--force")).code == 0
        assert not any(one.read_text().startswith("mine") for one in (table, page))
        table.unlink()
    refused(medi_(*assign(folders, out="new")), "is a folder")
    refused(medi_(*assign(folders, out="new.html/x.csv")), "in the way")
    refused(medi_(*assign(folders, "--page", folders / "new")), "--page", "is a folder")
    refused(medi_(*assign(folders, "--page", page / "x.html")), "in the way")
    refused(medi_(*assign(folders, "--page", folders / "out" / ".." / "new.csv")), "--page", "--out")
