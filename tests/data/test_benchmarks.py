"""`load` splits classes and data as the benchmark says, from whole, partial and generated sets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from official import CIFAR10, CIFAR100, OMNIGLOT, SVHN, random_images, write_cifar, write_tiny

from medi.core.errors import InputError
from medi.data.benchmarks import load

TRAIN, TEST = CIFAR10.splits["train"], CIFAR10.splits["test"][0]

on_real_data = pytest.mark.skipif("MEDI_DATA" not in os.environ, reason="MEDI_DATA is not set: no real data at hand")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDI_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("facts", [CIFAR10, CIFAR100, SVHN], ids=lambda facts: facts.name)
def test_known_classes_come_from_the_training_split_and_novel_ones_from_the_test_split(folder: Path, facts) -> None:
    write_tiny(folder, facts)
    benchmark = load(facts.name)
    files = len(facts.splits["train"])
    written = torch.from_numpy(random_images(20))
    assert benchmark.facts.known == benchmark.known.n_classes == 5
    assert benchmark.facts.novel == benchmark.novel.n_classes == 5
    # Labels were written 0 to 9 twice (75 to 84 for CIFAR-100); of each ten the first five are known.
    assert benchmark.known.labels.tolist() == [0, 1, 2, 3, 4] * 2 * files
    assert benchmark.novel.labels.tolist() == [0, 1, 2, 3, 4] * 2
    assert benchmark.known.images[:5].equal(written[:5])
    assert benchmark.novel.images[:5].equal(written[5:10])
    assert benchmark.novel_train is not None
    assert benchmark.novel_train.images[:5].equal(written[5:10])
    assert benchmark.known.images.dtype == torch.uint8
    assert benchmark.known.images.is_contiguous()


def test_omniglot_has_background_characters_known_and_evaluation_characters_novel(folder: Path) -> None:
    write_tiny(folder, OMNIGLOT)
    benchmark = load("omniglot")
    assert benchmark.known.images.shape == benchmark.novel.images.shape == (20, 1, 32, 32)
    assert benchmark.known.class_names[1] == benchmark.novel.class_names[1] == "Greek/character01"
    assert benchmark.novel.labels.max() == 9
    assert benchmark.novel_train is None


def test_classes_without_images_are_left_out(folder: Path) -> None:
    for file in TRAIN:
        write_cifar(folder / CIFAR10.folder / file, random_images(2), [1, 4])
    write_cifar(folder / CIFAR10.folder / TEST, random_images(3), [9, 6, 0])
    benchmark = load("cifar10")
    assert benchmark.known.class_names == ("1", "4")
    assert benchmark.known.labels.tolist() == [0, 1] * 5
    assert benchmark.novel.class_names == ("6", "9")
    assert benchmark.novel.labels.tolist() == [1, 0]
    assert (benchmark.facts.known, benchmark.facts.novel) == (2, 2)
    assert benchmark.novel_train is None


@pytest.mark.parametrize(("train", "test", "kind"), [(7, 7, "known"), (2, 2, "novel")])
def test_a_split_without_its_classes_is_refused(folder: Path, train: int, test: int, kind: str) -> None:
    for file in TRAIN:
        write_cifar(folder / CIFAR10.folder / file, random_images(1), [train])
    write_cifar(folder / CIFAR10.folder / TEST, random_images(1), [test])
    with pytest.raises(InputError, match=f"no image of a {kind} class in .*medi data fetch cifar10"):
        load("cifar10")


def test_a_missing_file_is_named_with_the_cure(folder: Path) -> None:
    with pytest.raises(InputError, match=r"cifar-10-batches-bin.*run `medi data fetch cifar10`, or set MEDI_DATA"):
        load("cifar10")


@pytest.mark.parametrize("name", ["glyphs", "rules"])
def test_generated_sets_need_no_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(f"medi.data.{name}")
    monkeypatch.setenv("MEDI_DATA", str(tmp_path / "nowhere"))
    benchmark = load(name)
    assert benchmark.facts.known == benchmark.known.n_classes > 0
    assert benchmark.facts.novel == benchmark.novel.n_classes > 0
    assert benchmark.known.images.shape[1:] == (benchmark.facts.channels, 32, 32)
    assert benchmark.novel_train is None


@on_real_data
@pytest.mark.parametrize(
    ("name", "known", "novel", "per_known_class"),
    [("cifar10", 5, 5, 5000), ("cifar100", 80, 20, 500), ("svhn", 5, 5, None), ("omniglot", 964, 659, 20)],
)
def test_real_data_has_the_classes_of_the_paper(name: str, known: int, novel: int, per_known_class: int | None) -> None:
    try:
        benchmark = load(name)
    except InputError as error:
        pytest.skip(str(error))
    assert (benchmark.known.n_classes, benchmark.novel.n_classes) == (known, novel)
    if per_known_class:
        assert set(benchmark.known.labels.bincount().tolist()) == {per_known_class}
    if name == "omniglot":
        assert benchmark.known.images.float().mean() < 64  # most of a page is empty, so ink is what is bright
        assert benchmark.known.images.amax() == 255
