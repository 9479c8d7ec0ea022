"""Augmentation against numpy and scipy, and its promise: each image in its own way, the same for the same seed."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from small_sets import generator as seeded

from medi.core.errors import InputError
from medi.data.augment import affine, augment, crop, cut_out, paste, recolour, shuffle_channels, to_float
from medi.data.facts import BENCHMARKS, Augmentation

EVERYTHING = Augmentation(
    crop=3, flip=True, rotate=15, scale=0.2, shear=0.2, shift=0.1, colour=0.4, grey=0.3, invert=0.3
)
STRONG = replace(EVERYTHING, shuffle=0.5, cutout=3)


def some_images(*shape, seed=0):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=seeded(seed))


def copies(n, shape=(3, 8, 8)):
    return some_images(*shape).expand(n, *shape)


@pytest.mark.parametrize("change", [EVERYTHING, STRONG, *{facts.augmentation for facts in BENCHMARKS.values()}])
@pytest.mark.parametrize("lead", [(), (0,), (5,), (2, 3)])
@pytest.mark.parametrize("channels", [1, 3])
def test_shape_and_range_stay_and_the_input_is_left_alone(change, lead, channels):
    images = some_images(*lead, channels, 8, 10)
    before = images.clone()
    result = augment(images, change, seeded())
    assert result.shape == images.shape
    assert result.dtype == torch.float32
    assert ((result >= -2.0001) & (result <= 2.0001)).all()
    assert torch.equal(images, before)


def test_the_generator_decides_everything():
    images = some_images(20, 3, 8, 8)
    assert torch.equal(augment(images, EVERYTHING, seeded(1)), augment(images, EVERYTHING, seeded(1)))
    assert not torch.equal(augment(images, EVERYTHING, seeded(1)), augment(images, EVERYTHING, seeded(2)))


@pytest.mark.parametrize(
    "change",
    [{"crop": 2}, {"rotate": 9}, {"scale": 0.2}, {"shear": 0.2}, {"shift": 0.1}, {"colour": 0.3}],
    ids=lambda change: next(iter(change)),
)
def test_samples_of_one_batch_are_changed_differently(change):
    result = augment(copies(40), Augmentation(**change), seeded())
    assert len(result.unique(dim=0)) > 10


def test_nothing_switched_on_equals_to_float():
    images = some_images(4, 3, 8, 8)
    assert torch.equal(augment(images, Augmentation(), seeded()), to_float(images))
    assert torch.allclose(to_float(images), (images / 255 - 0.5) / 0.25)


@settings(max_examples=30, deadline=None)
@given(pad=st.integers(0, 5), h=st.integers(6, 9), w=st.integers(6, 9), seed=st.integers(0, 9))
def test_crop_equals_numpy_reflect_padding_and_a_slice(pad, h, w, seed):
    top, left = torch.randint(0, 2 * pad + 1, (2, 3), generator=seeded(seed))
    images = torch.rand(3, 2, h, w, generator=seeded(seed))
    padded = np.pad(images.numpy(), ((0, 0), (0, 0), (pad, pad), (pad, pad)), mode="reflect")
    for i, result in enumerate(crop(images, pad, top, left).numpy()):
        assert np.array_equal(result, padded[i, :, top[i] : top[i] + h, left[i] : left[i] + w])


def test_random_crops_use_every_shift_and_no_other():
    images = copies(400, (1, 8, 8))
    padded = torch.nn.functional.pad(to_float(images[:1]), (2, 2, 2, 2), mode="reflect")
    windows = {padded[0, :, i : i + 8, j : j + 8].numpy().tobytes() for i in range(5) for j in range(5)}
    seen = {image.numpy().tobytes() for image in augment(images, Augmentation(crop=2), seeded())}
    assert len(windows) == 25
    assert seen == windows


def test_about_half_the_images_are_mirrored():
    images = copies(1000)
    result, plain = augment(images, Augmentation(flip=True), seeded()), to_float(images)
    same = (result == plain).all((1, 2, 3))
    mirrored = (result == plain.flip(-1)).all((1, 2, 3))
    assert (same ^ mirrored).all()
    assert 400 < mirrored.sum() < 600


def test_switching_on_inversion_leaves_the_crops_as_they_were():
    images = some_images(30, 1, 8, 8)
    geometry = augment(images, Augmentation(crop=2, flip=True), seeded())
    inverted = augment(images, Augmentation(crop=2, flip=True, invert=1.0), seeded())
    assert torch.allclose(inverted, -geometry, atol=1e-5)


@pytest.mark.parametrize("degrees", [-30, 0, 10, 90])
def test_rotation_equals_scipy(degrees):
    images = torch.rand(2, 1, 21, 21, generator=seeded())
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    matrices = torch.tensor([[cos, -sin, 0.0], [sin, cos, 0.0]]).expand(2, 2, 3)
    expected = ndimage.rotate(images.numpy(), degrees, axes=(-1, -2), reshape=False, order=1, mode="nearest")
    assert np.abs(affine(images, matrices).numpy() - expected).max() < 1e-4


def test_rotation_does_not_distort_an_oblong_image():
    images = torch.zeros(20, 1, 16, 40, dtype=torch.uint8)
    images[:, :, 5:11, 17:23] = 255  # a square: as it turns, its spread stays the same across and down
    ink = (augment(images, Augmentation(rotate=45), seeded()) / 4 + 0.5)[:, 0]
    assert (ink - ink[0]).abs().max() > 0.5
    down = (ink.sum(2) * (torch.arange(16) - 7.5) ** 2).sum(1)
    across = (ink.sum(1) * (torch.arange(40) - 19.5) ** 2).sum(1)
    assert torch.allclose(down, across, rtol=0.02)


def test_shift_is_a_share_of_the_side_and_repeats_the_border():
    images = torch.rand(1, 1, 10, 10)
    a_fifth_to_the_right = torch.tensor([[[1.0, 0.0, 0.4], [0.0, 1.0, 0.0]]])
    result = affine(images, a_fifth_to_the_right)
    assert torch.allclose(result[..., :8], images[..., 2:], atol=1e-5)
    assert torch.allclose(result[..., 8:], images[..., 9:].expand(-1, -1, -1, 2), atol=1e-5)


def a_recolouring(images, brightness=1.0, contrast=1.0, saturation=1.0):
    factors = (torch.full((len(images),), value) for value in (brightness, contrast, saturation))
    return recolour(images, *factors)


def test_each_colour_change_does_what_its_name_says():
    images = torch.rand(5, 3, 6, 6, generator=seeded()) * 0.4 + 0.3  # nothing is clamped
    mean = images.mean((1, 2, 3), keepdim=True)
    grey = images.mean(1, keepdim=True)
    assert torch.allclose(a_recolouring(images), images, atol=1e-6)
    assert torch.allclose(a_recolouring(images, brightness=1.2), images * 1.2, atol=1e-6)
    assert torch.allclose(a_recolouring(images, contrast=0.5), (images + mean) / 2, atol=1e-6)
    assert torch.allclose(a_recolouring(images, saturation=0.0), grey.expand(-1, 3, -1, -1), atol=1e-6)
    assert a_recolouring(images, brightness=9.0).max() == 1


@pytest.mark.parametrize("name", ["grey", "invert"])
def test_probabilities_are_kept(name):
    images = copies(1000)
    changed = (augment(images, Augmentation(**{name: 0.3}), seeded()) - to_float(images)).abs().amax((1, 2, 3)) > 1e-4
    assert 230 < changed.sum() < 370


def test_vectors_come_back_unchanged():
    vectors = torch.randn(4, 7)
    assert torch.equal(augment(vectors, EVERYTHING, seeded()), vectors)
    assert torch.equal(augment(vectors.expand(2, 4, 7), Augmentation(), seeded()), vectors.expand(2, 4, 7))


@pytest.mark.parametrize(
    ("images", "change", "why"),
    [
        (torch.rand(2, 3, 8, 8), EVERYTHING, r"not torch.float32 of shape \(2, 3, 8, 8\)"),
        (some_images(8, 8), EVERYTHING, r"not torch.uint8 of shape \(8, 8\)"),
        (torch.zeros(3, dtype=torch.int64), Augmentation(), r"uint8 \(0 to 255\), not torch.int64"),
        (some_images(1, 8, 8), Augmentation(crop=8), "crop=8"),
    ],
)
def test_what_cannot_be_augmented_says_why_and_what_to_do(images, change, why):
    with pytest.raises(InputError, match=why):
        augment(images, change, seeded())


@pytest.mark.parametrize("change", [EVERYTHING, STRONG, Augmentation()])
@pytest.mark.parametrize("lead", [(7,), (5, 3)])
def test_a_part_of_a_batch_looks_as_it_does_among_all(change, lead):
    images = some_images(*lead, 3, 8, 8, seed=3)
    generator = seeded()
    whole = augment(images, change, generator)
    for part in (slice(0, 2), slice(2, 5), slice(4, 5)):
        other = seeded()
        assert torch.equal(augment(images, change, other, part), whole[part])
        assert torch.equal(other.get_state(), generator.get_state()), "it takes as many draws as all"


@pytest.mark.parametrize("channels", [1, 3])
def test_shuffled_channels_and_painted_squares_leave_the_other_changes_as_they_were(channels):
    images = some_images(12, channels, 8, 8)
    plain = augment(images, EVERYTHING, seeded())
    shuffled = augment(images, replace(EVERYTHING, shuffle=1.0), seeded())
    assert torch.equal(shuffled.sort(1).values, plain.sort(1).values)
    assert torch.equal(shuffled, plain) == (channels == 1)
    painted = augment(images, replace(EVERYTHING, cutout=3), seeded())
    squares = (painted != plain).any(1)
    assert (painted[squares[:, None].expand_as(painted)] == 0).all()
    assert ((squares.sum((1, 2)) >= 1) & (squares.sum((1, 2)) <= 9)).all()


def test_channels_come_in_every_order_and_order_zero_changes_nothing():
    images = torch.rand(1, 3, 4, 4, generator=seeded()).expand(6, 3, 4, 4)
    assert torch.equal(shuffle_channels(images, torch.zeros(6, dtype=torch.int64)), images)
    shuffled = shuffle_channels(images, torch.arange(6))
    assert len(shuffled.unique(dim=0)) == 6
    assert torch.equal(shuffled.sort(1).values, images.sort(1).values)
    seen = augment(copies(600), Augmentation(shuffle=0.5), seeded())
    unchanged = (seen == to_float(copies(600))).all((1, 2, 3)).float().mean()
    assert len(seen.unique(dim=0)) == 6
    assert abs(unchanged - (0.5 + 0.5 / 6)) < 0.07


@settings(max_examples=30, deadline=None)
@given(side=st.integers(1, 6), row=st.integers(0, 6), column=st.integers(0, 8))
def test_cutout_paints_the_square_that_a_slice_does(side, row, column):
    images = torch.rand(1, 2, 7, 9, generator=seeded())
    expected = images.clone()
    top, left = row - side // 2, column - side // 2
    expected[:, :, max(top, 0) : top + side, max(left, 0) : left + side] = 0.5
    assert torch.equal(cut_out(images, side, torch.tensor([row]), torch.tensor([column])), expected)


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0, 1), row=st.floats(0, 1), column=st.floats(0, 1))
def test_a_pasted_box_is_the_others_and_the_share_counts_what_is_left(share, row, column):
    images, others = torch.zeros(1, 1, 20, 20, dtype=torch.uint8), torch.ones(1, 1, 20, 20, dtype=torch.uint8)
    mixed, own = paste(images, others, *(torch.tensor([value]) for value in (share, row, column)))
    assert mixed.dtype == torch.uint8
    assert float(own) == pytest.approx(1 - float(mixed.float().mean()))
    assert float(mixed.float().mean()) <= share + 0.12  # up to a pixel more on each side
