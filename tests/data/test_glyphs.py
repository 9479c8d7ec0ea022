from __future__ import annotations

import unicodedata
from itertools import chain
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont, ImageOps
from scipy.ndimage import gaussian_filter

from medi.core.errors import InputError
from medi.data import glyphs as module
from medi.data.glyphs import FACES, IMAGES_PER_CLASS, glyphs
from medi.data.imageset import ImageSet


@pytest.fixture(scope="module")
def both() -> tuple[ImageSet, ImageSet]:
    return glyphs()


@pytest.fixture
def known(both: tuple[ImageSet, ImageSet]) -> ImageSet:
    return both[0]


@pytest.fixture
def novel(both: tuple[ImageSet, ImageSet]) -> ImageSet:
    return both[1]


@pytest.fixture(params=[0, 1], ids=["known", "novel"])
def part(request: pytest.FixtureRequest, both: tuple[ImageSet, ImageSet]) -> ImageSet:
    return both[request.param]


@pytest.fixture
def letters(known: ImageSet, novel: ImageSet) -> list[str]:
    return [unicodedata.lookup(name.upper()) for name in chain(known.class_names, novel.class_names)]


def test_there_are_enough_classes_of_twenty_small_grey_images(known: ImageSet, novel: ImageSet, part: ImageSet) -> None:
    assert known.n_classes >= 150
    assert novel.n_classes >= 80
    assert part.images.shape == (part.n_classes * IMAGES_PER_CLASS, 1, 32, 32)
    assert part.images.dtype == torch.uint8
    assert part.labels.bincount().tolist() == [20] * part.n_classes
    for images in part.images.view(part.n_classes, IMAGES_PER_CLASS, -1).numpy():
        assert len(np.unique(images, axis=0)) == IMAGES_PER_CLASS


def test_ink_is_bright_and_the_edge_is_paper(part: ImageSet) -> None:
    images = part.images[:, 0].float()
    edge = torch.cat([images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]], dim=1)
    assert (edge.mean(dim=1) < 0.1 * images.amax(dim=(1, 2))).all()
    assert (images.amax(dim=(1, 2)) > 150).all()
    assert (images.mean(dim=(1, 2)) < 128).all()


def test_a_class_is_drawn_in_at_least_ten_typefaces(part: ImageSet) -> None:
    for faces in part.attributes["face"].view(part.n_classes, IMAGES_PER_CLASS).tolist():
        assert len(set(faces)) >= 10
        assert set(faces) <= set(range(len(FACES)))


def test_the_seed_decides_the_images_of_the_same_classes(known: ImageSet) -> None:
    before = known.images.clone()
    known.images.zero_()  # what is done to one set leaves the next alone
    module.distinct_letters.cache_clear()  # from scratch, or the cache would be compared with itself
    (again, _), (other, _) = glyphs(), glyphs(seed=1)
    known.images.copy_(before)
    assert torch.equal(again.images, before)
    assert not torch.equal(other.images, before)
    assert again.class_names == other.class_names == known.class_names


def test_class_names_are_unique_and_say_the_script(known: ImageSet, novel: ImageSet) -> None:
    names = known.class_names + novel.class_names
    assert len(set(names)) == len(names)
    assert {name.split()[0] for name in known.class_names} == {"Latin", "Cyrillic"}
    assert {name.split()[0] for name in novel.class_names} == {"Greek", "Armenian", "Georgian"}
    assert "Greek small letter xi" in novel.class_names


@pytest.mark.parametrize("alike", ["cCсСϲϹ", "oOоОοΟօՕ", "IlıіІΙӀ", "KкКκΚ", "HнНΗ", "ЖжӜ", "nПпΠ", "UuսՍ", "ΛɅ", "tʈ"])
def test_of_look_alikes_one_is_kept(alike: str, letters: list[str]) -> None:
    assert len(set(alike) & set(letters)) == 1


@pytest.mark.parametrize("different", ["OQDC", "EFPR", "NИHM", "AΔ", "TIJL", "ЦЩЪ", "ΨΩξλ", "ԱՁՖ", "ლყჰ"])
def test_letters_that_can_be_told_apart_are_kept(different: str, letters: list[str]) -> None:
    assert set(different) <= set(letters)


def test_no_two_classes_look_alike_when_compared_another_way(letters: list[str]) -> None:
    # The correlation of blurred upright letters; the module compares where their ink lies.
    font = ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", 60)
    blurred = []
    for letter in letters:
        canvas = Image.new("L", (200, 200))
        ImageDraw.Draw(canvas).text((50, 50), letter, fill=255, font=font)
        upright = ImageOps.pad(canvas.crop(canvas.getbbox()), (28, 28))
        blurred.append(gaussian_filter(np.asarray(upright, dtype=float), 1).ravel())
    correlation = np.corrcoef(blurred)
    assert correlation[np.triu_indices(len(letters), 1)].max() < 0.97  # the nearest, O and ʘ, differ by a dot


def test_a_missing_typeface_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "get_data_path", lambda: str(tmp_path))
    with pytest.raises(InputError, match=r"DejaVuSans\.ttf.*reinstall matplotlib"):
        module._path("DejaVuSans")
