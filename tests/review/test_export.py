"""Exports, re-read by the libraries they are for."""

import codecs
import csv
import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from reviews import act, made_up_review, toy_pool
from systems import posix

from medi.core.errors import InputError
from medi.core.system import same_on_some_systems
from medi.review.acceptance import accept
from medi.review.export import as_folders, run_export
from medi.review.labelled import labelled


@pytest.fixture
def out(tmp_path) -> Path:
    """Group 0 has a name, 1 has not, 2 has a hostile one; two photos are known, two alone."""
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="sea holly")
    act(review, "name", group=2, name='<b>"&')
    return review.folder.path


EXPECTED = ["sea holly"] * 6 + ["group-1"] * 5 + ['<b>"&'] * 4 + ["rose"] * 2 + [None] * 2


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))


def test_a_table(out, tmp_path):
    run_export(out, "csv", tmp_path / "table.csv")
    rows = table(tmp_path / "table.csv")
    assert [row["label"] or None for row in rows] == EXPECTED
    assert [row["path"] for row in rows] == [f"{n:03}.jpg" for n in range(19)]
    assert [row["reviewed"] for row in rows[:11]] == ["yes"] * 6 + ["no"] * 5
    assert [row["by"] for row in rows] == ["person"] * 6 + ["program"] * 5 + ["person"] * 4 + ["program"] * 4
    assert {row["round"] for row in rows} == {"1"}


def test_a_table_opens_in_excel_with_umlauts_right(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="Gänseblümchen")
    run_export(review.folder.path, "csv", tmp_path / "table.csv")
    content = (tmp_path / "table.csv").read_bytes()
    assert content.startswith(codecs.BOM_UTF8)
    assert content.count(codecs.BOM_UTF8) == 1
    assert table(tmp_path / "table.csv")[0]["label"] == "Gänseblümchen"


def test_only_photos_that_a_person_confirmed_are_reviewed(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="holly", items=[0, 1])
    act(review, "move", items=[17], group=None)
    act(review, "known", items=[18], name="tulip")
    rows = labelled(review.folder.path)
    confirmed = {photo.path for photo in rows if photo.reviewed}
    assert {"000.jpg", "001.jpg", "017.jpg", "018.jpg"} <= confirmed
    assert confirmed == {photo.path for photo in rows if photo.number in review.history.state.held}
    assert {photo.confidence for photo in rows if photo.reviewed} == {1.0}
    assert [(rows[17].kind, rows[17].label, rows[17].by), rows[18].label] == [("alone", "", "person"), "tulip"]


NAMES = st.sampled_from(["unsorted", "Unsorted", "unsorted-2", "group-1", "group-2", "GROUP-1", "group-1-2", "round-1"])


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 4), NAMES, max_size=4))
def test_photos_alone_and_groups_without_a_name_are_never_mixed_with_named_ones(names):
    with TemporaryDirectory() as folder:
        review = made_up_review(Path(folder), toy_pool((3, 2, 2, 2, 1)), learning=False, photos=False)
        for group, name in names.items():
            act(review, "name", group=group, name=name)
        photos = labelled(review.folder.path)
        group_of = {same_on_some_systems(photo.label): photo.group for photo in photos if photo.group not in names}
        named = {same_on_some_systems(name) for name in names.values()}
        assert not named & group_of.keys() - {""}
        unnamed = {photo.group for photo in photos} - names.keys() - {None}
        assert len({photo.label for photo in photos if photo.group in unnamed}) == len(unnamed)
        try:
            layout = as_folders(photos)
        except InputError:  # two spellings of one name
            return
        alone = {place.partition("/")[0] for photo, place in layout.copies if not photo.label}
        assert not alone & {photo.label for photo in photos}


def test_photos_that_were_accepted_are_exported_from_where_they_are(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=2, name="aster")
    photos = {path.name: path.read_bytes() for path in (tmp_path / "novel").iterdir()}
    accept(review, [2], tmp_path / "known", move=True)
    run_export(review.folder.path, "folders", tmp_path / "sorted")
    assert {path.name: path.read_bytes() for path in (tmp_path / "sorted").rglob("*.jpg")} == photos
    assert len(list((tmp_path / "sorted" / "aster").iterdir())) == 4


def test_copies_are_named(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    for name in ("003.jpg", "009.jpg"):
        (tmp_path / "novel" / name).write_bytes((tmp_path / "novel" / "001.jpg").read_bytes())
    named = {photo.path: photo.copy_of for photo in labelled(review.folder.path) if photo.copy_of}
    assert named == {"003.jpg": "001.jpg", "009.jpg": "001.jpg"}


SUBJECT = ".//{http://purl.org/dc/elements/1.1/}subject//{http://www.w3.org/1999/02/22-rdf-syntax-ns#}li"


def test_sidecars_hold_the_label_as_a_keyword(out, tmp_path):
    run_export(out, "xmp", tmp_path / "xmp")
    found = {}
    for path in (tmp_path / "xmp").rglob("*"):
        (keyword,) = ElementTree.parse(path).getroot().findall(SUBJECT)
        found[path.name] = keyword.text
    labels = {f"{number:03}.jpg.xmp": label for number, label in enumerate(EXPECTED) if label}
    assert found == labels


@pytest.mark.skipif(shutil.which("exiftool") is None, reason="no exiftool here")
def test_exiftool_reads_the_sidecars(out, tmp_path):
    run_export(out, "xmp", tmp_path / "xmp")
    words = ["exiftool", "-json", "-XMP-dc:Subject", str(tmp_path / "xmp")]
    read = json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
    found = {Path(one["SourceFile"]).name: one["Subject"] for one in read}
    assert found == {f"{number:03}.jpg.xmp": label for number, label in enumerate(EXPECTED) if label}


@posix
def test_folders(out, tmp_path):
    run_export(out, "folders", tmp_path / "sorted")
    counts = {folder.name: len(list(folder.iterdir())) for folder in (tmp_path / "sorted").iterdir()}
    assert counts == {"sea holly": 6, "group-1": 5, '<b>"&': 4, "rose": 2, "unsorted": 2}


def test_labels_that_some_systems_take_for_one_folder_are_refused(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="ROSE")  # two photos are of the known class `rose`
    with pytest.raises(InputError, match="one folder"):
        run_export(review.folder.path, "folders", tmp_path / "sorted")
    assert not (tmp_path / "sorted").exists()
    run_export(review.folder.path, "csv", tmp_path / "table.csv")


@pytest.mark.parametrize("form", ["folders", "huggingface", "labelstudio", "fiftyone"])
def test_nothing_is_overwritten_and_a_failed_export_leaves_nothing(out, tmp_path, form):
    there = tmp_path / "there"
    there.mkdir()
    (there / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        run_export(out, form, there)
    (tmp_path / "novel" / "018.jpg").unlink()
    with pytest.raises(InputError, match=r"018\.jpg is gone"):
        run_export(out, form, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert not list(tmp_path.glob(".*tmp"))


def test_label_studio_files_fit_together(out, tmp_path):
    run_export(out, "labelstudio", tmp_path / "ls")
    config = ElementTree.parse(tmp_path / "ls" / "config.xml").getroot()
    choices = {choice.get("value") for choice in config.iter("Choice")}
    assert choices == {label for label in EXPECTED if label}
    tasks = json.loads((tmp_path / "ls" / "tasks.json").read_text())
    found = []
    for task in tasks:
        place = task["data"]["image"].removeprefix("/data/local-files/?d=")
        with Image.open(tmp_path / "ls" / place) as image:
            image.verify()
        marks = task.get("annotations") or task.get("predictions") or [None]
        found.append(marks[0]["result"][0]["value"]["choices"][0] if marks[0] else None)
    assert found == EXPECTED


def test_label_studio_reads_its_tasks(out, tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface", reason="pip install label-studio-sdk")
    run_export(out, "labelstudio", tmp_path / "ls")
    reader = interface.LabelInterface((tmp_path / "ls" / "config.xml").read_text())
    for task in json.loads((tmp_path / "ls" / "tasks.json").read_text()):
        for annotation in task.get("annotations", ()):
            assert reader.validate_annotation(annotation)
        for prediction in task.get("predictions", ()):
            assert reader.validate_prediction(prediction)


def test_hugging_face_reads_its_folder(out, tmp_path):
    datasets = pytest.importorskip("datasets", reason="pip install datasets")
    run_export(out, "huggingface", tmp_path / "hf")
    read = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "hf"), split="train", cache_dir=str(tmp_path / "cache")
    )
    rows = sorted(read, key=lambda row: row["path"])
    assert [row["label"] for row in rows] == EXPECTED
    assert {row["image"].size for row in rows} == {(24, 18)}


def test_fiftyone_reads_its_dataset(out, tmp_path):
    importers = pytest.importorskip("fiftyone.utils.data.importers", reason="pip install fiftyone")
    run_export(out, "fiftyone", tmp_path / "fo")
    importer = importers.FiftyOneImageClassificationDatasetImporter(dataset_dir=str(tmp_path / "fo"))
    with importer:
        found = {Path(path).stem: label and label.label for path, _, label in importer}
    assert [label for _, label in sorted(found.items())] == EXPECTED


def test_fiftyone_files_fit_together(out, tmp_path):
    run_export(out, "fiftyone", tmp_path / "fo")
    labels = json.loads((tmp_path / "fo" / "labels.json").read_text())["labels"]
    assert set(labels) == {path.stem for path in (tmp_path / "fo" / "data").iterdir()}
    assert [labels[key] and labels[key]["label"] for key in sorted(labels)] == EXPECTED
