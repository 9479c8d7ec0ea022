"""Exports, re-read by the libraries they are for."""

import csv
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image
from reviews import act, made_up_review, toy_pool
from systems import posix

from medi.errors import InputError
from medi.review.export import run_export


@pytest.fixture
def out(tmp_path) -> Path:
    """Group 0 has a name, 1 has not, 2 has a hostile one; two photos are known, two alone."""
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="sea holly")
    act(review, "name", group=2, name='<b>"&')
    return review.folder.path


EXPECTED = ["sea holly"] * 6 + ["group-1"] * 5 + ['<b>"&'] * 4 + ["rose"] * 2 + [None] * 2


def test_a_table(out, tmp_path):
    run_export(out, "csv", tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] or None for row in rows] == EXPECTED
    assert [row["path"] for row in rows] == [f"{n:03}.jpg" for n in range(19)]
    assert {row["reviewed"] for row in rows[:6]} == {"yes"}
    assert {row["reviewed"] for row in rows[6:11]} == {"no"}


@posix
def test_folders(out, tmp_path):
    run_export(out, "folders", tmp_path / "sorted")
    counts = {folder.name: len(list(folder.iterdir())) for folder in (tmp_path / "sorted").iterdir()}
    assert counts == {"sea holly": 6, "group-1": 5, '<b>"&': 4, "rose": 2, "unsorted": 2}


def test_labels_that_some_systems_take_for_one_folder_are_refused(tmp_path):
    review = made_up_review(tmp_path, toy_pool(), learning=False)
    act(review, "name", group=0, name="ROSE")  # two photos are of the known class `rose`
    with pytest.raises(InputError, match="“rose” and “ROSE” are one folder"):
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
        found = {
            Path(path).stem: None if label is None else (label.label, label.confidence) for path, _, label in importer
        }
    assert [label and label[0] for _, label in sorted(found.items())] == EXPECTED


def test_fiftyone_files_fit_together(out, tmp_path):
    run_export(out, "fiftyone", tmp_path / "fo")
    labels = json.loads((tmp_path / "fo" / "labels.json").read_text())["labels"]
    assert set(labels) == {path.stem for path in (tmp_path / "fo" / "data").iterdir()}
    assert [labels[key] and labels[key]["label"] for key in sorted(labels)] == EXPECTED
