"""Readers give back exactly what was written in the official formats, and refuse anything cut."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from official import CIFAR10, CIFAR100, OMNIGLOT, SVHN, png, random_images, write_cifar, write_omniglot, write_svhn
from scipy.io import savemat

from medi.core.errors import InputError
from medi.data.formats import READERS, DamagedFile, read_omniglot, read_svhn

# Each example overwrites the files of the last, so that one folder serves them all.
ONE_FOLDER = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ONE_FOLDER
@given(n=st.integers(1, 8), seed=st.integers(0, 2**32 - 1), coarse=st.booleans())
def test_any_number_of_whole_cifar_records_reads_back_exactly(tmp_path: Path, n: int, seed: int, coarse: bool) -> None:
    facts, read = (CIFAR100, READERS["cifar100"]) if coarse else (CIFAR10, READERS["cifar10"])
    images = random_images(n, seed)
    labels = np.random.default_rng(seed).integers(0, facts.known + facts.novel, n)
    write_cifar(tmp_path / "batch.bin", images, labels, coarse)
    records = read(facts, tmp_path / "batch.bin")
    np.testing.assert_array_equal(records.images, images)
    np.testing.assert_array_equal(records.labels, labels)


@ONE_FOLDER
@given(n=st.integers(1, 3), cut=st.integers(1, 3072))
def test_a_cut_cifar_record_is_refused(tmp_path: Path, n: int, cut: int) -> None:
    path = tmp_path / "batch.bin"
    write_cifar(path, random_images(n), [0] * n)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(DamagedFile) as error:
        READERS["cifar10"](CIFAR10, path)
    why = f"{3073 - cut} byte{'s' * (cut < 3072)} after the last whole record"
    assert str(error.value) == f"{path} is damaged: {why}; run `medi data fetch cifar10` to replace it."


def test_a_label_beyond_the_classes_is_refused(tmp_path: Path) -> None:
    write_cifar(tmp_path / "batch.bin", random_images(1), [10])
    with pytest.raises(DamagedFile, match="label 10 in a set of 10 classes"):
        READERS["cifar10"](CIFAR10, tmp_path / "batch.bin")


@pytest.mark.parametrize(
    ("listed", "name"), [(None, "3"), ("cat\ndog\n", "3"), ("\n".join("abcdefghij") + "\n\n", "d")]
)
def test_cifar_classes_are_named_by_a_list_that_has_all_of_them(tmp_path: Path, listed: str | None, name: str) -> None:
    write_cifar(tmp_path / "batch.bin", random_images(1), [3])
    if listed:
        (tmp_path / "batches.meta.txt").write_text(listed)
    assert READERS["cifar10"](CIFAR10, tmp_path / "batch.bin").class_names[3] == name


@ONE_FOLDER
@given(n=st.integers(1, 8), seed=st.integers(0, 2**32 - 1), compress=st.booleans())
def test_any_number_of_svhn_records_reads_back_exactly(tmp_path: Path, n: int, seed: int, compress: bool) -> None:
    images, digits = random_images(n, seed), np.random.default_rng(seed).integers(0, 10, n)
    write_svhn(tmp_path / "train_32x32.mat", images, digits, compress)
    records = read_svhn(SVHN, tmp_path / "train_32x32.mat")
    np.testing.assert_array_equal(records.images, images)
    np.testing.assert_array_equal(records.labels, digits)  # written as 1 to 10, where 10 means the digit 0
    assert records.class_names[0] == "0"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"X": np.zeros((32, 32, 3, 2), np.uint8)}, "no variable y"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[1]]}, "for 1 labels"),
        ({"X": np.zeros((32, 32, 3, 2)), "y": [[1], [2]]}, "X is float64"),
        ({"X": np.zeros((32, 32, 3, 1), np.uint8), "y": [[11]]}, "label 11"),
    ],
)
def test_a_mat_file_of_something_else_is_refused(tmp_path: Path, content: dict[str, object], why: str) -> None:
    savemat(tmp_path / "train_32x32.mat", content)
    with pytest.raises(DamagedFile, match=why):
        read_svhn(SVHN, tmp_path / "train_32x32.mat")


def test_omniglot_is_read_at_32_pixels_with_bright_ink(tmp_path: Path) -> None:
    left_half = np.zeros((105, 105), bool)
    left_half[:, :55] = True
    write_omniglot(tmp_path / "images_background.zip", [("Greek/character01/0001_01.png", left_half)])
    image = read_omniglot(OMNIGLOT, tmp_path / "images_background.zip").images[0, 0]
    assert image.shape == (32, 32)
    assert image.dtype == np.uint8
    assert (image[:, :16] == 255).all()
    assert ((image[:, 16] > 0) & (image[:, 16] < 255)).all()  # the edge of the ink is smooth
    assert (image[:, 17:] == 0).all()


@pytest.mark.parametrize(("file", "first"), [("images_background.zip", 0), ("images_evaluation.zip", 964)])
def test_omniglot_classes_are_characters_in_sorted_order(tmp_path: Path, file: str, first: int) -> None:
    blank = np.zeros((105, 105), bool)
    folders = ["Latin/character01", "Greek/character02", "Greek/character01", "Latin/character01"]
    write_omniglot(tmp_path / file, [(f"{folder}/{i}.png", blank) for i, folder in enumerate(folders)])
    records = read_omniglot(OMNIGLOT, tmp_path / file)
    assert [records.class_names[label] for label in records.labels] == sorted(folders)
    assert list(records.class_names) == [first, first + 1, first + 2]


def test_what_macos_adds_to_a_zip_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "images_background.zip"
    write_one_drawing(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/images_background/Greek/character01/._0001_01.png", b"no image")
        archive.writestr("images_background/.DS_Store", b"no image")
    assert len(read_omniglot(OMNIGLOT, path)) == 1


def write_one_drawing(path: Path) -> None:
    write_omniglot(path, [("Greek/character01/0001_01.png", np.zeros((105, 105), bool))])


@pytest.mark.parametrize(
    ("facts", "write"),
    [
        (SVHN, lambda path: write_svhn(path, random_images(2), [0, 1], compress=True)),
        (SVHN, lambda path: write_svhn(path, random_images(2), [0, 1], compress=False)),
        (OMNIGLOT, write_one_drawing),
    ],
)
@ONE_FOLDER
@given(data=st.data())
def test_a_mat_file_or_a_zip_cut_anywhere_is_refused(tmp_path: Path, facts, write, data: st.DataObject) -> None:
    path = tmp_path / facts.splits["train"][0]
    write(path)
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1), label="bytes kept")])
    with pytest.raises(DamagedFile, match=f"{path.name} is damaged"):
        READERS[facts.name](facts, path)


@pytest.mark.parametrize("spoil", [lambda image: image[:60], lambda image: b"no image"])
def test_a_drawing_that_is_no_png_is_refused_by_name(tmp_path: Path, spoil) -> None:
    path = tmp_path / "images_background.zip"
    ink = np.random.default_rng(0).random((105, 105)) < 0.5
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("images_background/Greek/character01/0001_01.png", spoil(png(ink)))
    with pytest.raises(DamagedFile, match=r"character01/0001_01\.png in it is not a readable PNG"):
        read_omniglot(OMNIGLOT, path)


@pytest.mark.parametrize("name", READERS)
def test_an_empty_file_is_damaged_and_a_missing_one_is_named_with_the_cure(tmp_path: Path, name: str) -> None:
    facts = {facts.name: facts for facts in (CIFAR10, CIFAR100, SVHN, OMNIGLOT)}[name]
    path = tmp_path / facts.splits["train"][0]
    with pytest.raises(InputError, match=f"is missing: run `medi data fetch {name}`, or set MEDI_DATA"):
        READERS[name](facts, path)
    path.touch()
    with pytest.raises(DamagedFile):
        READERS[name](facts, path)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        READERS[name](facts, path)


class Trap:
    """Springs when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return pytest.fail, ("a pickle was loaded",)


@pytest.mark.parametrize("name", READERS)
def test_no_reader_loads_a_pickle(tmp_path: Path, name: str) -> None:
    facts = {facts.name: facts for facts in (CIFAR10, CIFAR100, SVHN, OMNIGLOT)}[name]
    path = tmp_path / facts.splits["train"][0]
    array = io.BytesIO()
    np.save(array, np.array([Trap()], dtype=object), allow_pickle=True)
    for content in (pickle.dumps(Trap()), array.getvalue()):
        path.write_bytes(content)
        with pytest.raises(DamagedFile):
            READERS[name](facts, path)
