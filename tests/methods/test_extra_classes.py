"""Further classes made of the known ones."""

from dataclasses import replace

import pytest
import torch

from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods.medi import MOST_SPLICED, with_extra_classes


def some_known(classes: int = 4, each: int = 6) -> ImageSet:
    """Every image has one value all over, so that a half of it tells which image it came from."""
    count = classes * each
    images = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(count, 3, 8, 8).clone()
    return ImageSet(images, torch.arange(count) % classes, tuple("abcdefghijklmnopqrstuvwxyz"[:classes]))


def test_turned_classes_are_four_for_each_known_one():
    known = some_known()
    assert with_extra_classes(known, "none") is known
    turned = with_extra_classes(known, "turned")
    assert turned.n_classes == 16
    assert torch.equal(turned.images, known.with_rotations().images)


def test_spliced_classes_show_the_upper_half_of_one_class_on_the_lower_half_of_another():
    known = some_known()
    extra = with_extra_classes(known, "spliced")
    assert extra.n_classes == 4 * 16
    assert len(extra) == 4 * (24 + 12 * 6)
    assert torch.equal(extra.images[:24], known.images)
    assert torch.equal(extra.labels[:24], known.labels)
    pairs = {}
    for image, label in zip(extra.images[24:96], extra.labels[24:96].tolist(), strict=True):
        top, bottom = image[:, :4].unique(), image[:, 4:].unique()
        assert len(top) == len(bottom) == 1
        pair = (int(top) % 4, int(bottom) % 4)  # the class of a value is its remainder
        assert pairs.setdefault(label, pair) == pair
        assert extra.class_names[label] == f"{'abcd'[pair[0]]} on {'abcd'[pair[1]]}"
    assert len(set(pairs.values())) == 12
    assert all(above != below for above, below in pairs.values())
    upper = [int(image[0, 0, 0]) for image in extra.images[24:96]]
    assert sorted(upper) == sorted(3 * list(range(24))), "every image is the upper half of every pair once"


def test_splicing_leaves_out_images_without_a_class_and_classes_without_images():
    known = some_known(3)
    without = replace(known, labels=torch.where(known.labels == 2, -1, known.labels))
    extra = with_extra_classes(without, "spliced")
    assert extra.n_classes == 4 * (3 + 2)
    assert len(extra) == 4 * (18 + 12)


def test_too_many_classes_to_splice_are_refused():
    with pytest.raises(InputError, match="too many to splice"):
        with_extra_classes(some_known(MOST_SPLICED + 1, 1), "spliced")
