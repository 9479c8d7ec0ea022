"""Further classes made of the known ones."""

from dataclasses import replace

import pytest
import torch

from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.extra_classes import MOST_SPLICED, with_copies


def some_known(classes: int = 4, each: int = 6) -> ImageSet:
    """Every image has one value all over, so that a copy tells which image it was made of."""
    count = classes * each
    images = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(count, 3, 8, 8).clone()
    return ImageSet(images, torch.arange(count) % classes, tuple("abcdefghijklmnopqrstuvwxyz"[:classes]))


def test_turned_copies_are_four_kinds_of_each_class():
    known = some_known()
    assert with_copies(known, "none") is known
    assert with_copies(known, "turned").n_classes == 16
    assert torch.equal(with_copies(known, "turned").images, known.with_rotations().images)


def test_spliced_copies_show_the_upper_half_of_one_class_on_the_lower_half_of_another():
    known = some_known()
    copies = with_copies(known, "spliced")
    assert copies.n_classes == 4 * 16
    assert len(copies) == 4 * (24 + 12 * 6)
    assert torch.equal(copies.images[:24], known.images)
    assert torch.equal(copies.labels[:24], known.labels)
    pairs = {}
    for image, label in zip(copies.images[24:96], copies.labels[24:96].tolist(), strict=True):
        top, bottom = image[:, :4].unique(), image[:, 4:].unique()
        assert len(top) == len(bottom) == 1
        pair = (int(top) % 4, int(bottom) % 4)  # the class of a value is its remainder
        assert pairs.setdefault(label, pair) == pair
        assert copies.class_names[label] == f"{'abcd'[pair[0]]} on {'abcd'[pair[1]]}"
    assert len(set(pairs.values())) == 12
    assert all(above != below for above, below in pairs.values())
    upper = [int(image[0, 0, 0]) for image in copies.images[24:96]]
    assert sorted(upper) == sorted(3 * list(range(24))), "every image is the upper half of every pair once"


def test_crossed_copies_also_have_left_halves_beside_right_halves():
    known = some_known()
    spliced, crossed = with_copies(known, "spliced"), with_copies(known, "crossed")
    assert crossed.n_classes == 4 * 28
    assert torch.equal(crossed.images[:96], spliced.images[:96])
    assert len(set(crossed.class_names)) == crossed.n_classes
    for image, label in zip(crossed.images[96:168], crossed.labels[96:168].tolist(), strict=True):
        left, right = image[:, :, :4].unique(), image[:, :, 4:].unique()
        assert len(left) == len(right) == 1
        assert crossed.class_names[label] == f"{'abcd'[int(left) % 4]} beside {'abcd'[int(right) % 4]}"


def test_splicing_leaves_out_images_without_a_class_and_classes_without_images():
    known = some_known(3)
    without = replace(known, labels=torch.where(known.labels == 2, -1, known.labels))
    copies = with_copies(without, "spliced")
    assert copies.n_classes == 4 * (3 + 2)
    assert len(copies) == 4 * (18 + 12)


def test_too_many_classes_to_splice_are_refused():
    with pytest.raises(InputError, match="too many to splice"):
        with_copies(some_known(MOST_SPLICED + 1, 1), "spliced")
