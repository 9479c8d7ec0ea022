"""What `medi` reads off networks: views, levels, blocks of equal weight."""

import numpy as np
import pytest
import torch
from small_sets import generator, patterns

from medi.core.errors import InputError
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.grouping.representation import unit
from medi.grouping.whitening import weighing, whitening
from medi.methods.readout import Readout, ReadoutEmbedding, levels_of, views_of
from medi.nn import Network, build

KNOWN = patterns(classes=3, each=8)


def conv4(seed: int = 0) -> Network:
    return build("conv4", (3, 16, 16), seed=seed).eval()


def test_views_are_the_image_four_corners_and_their_mirror_images():
    images = torch.rand(2, 1, 8, 8, generator=generator())
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), mode="reflect")
    windows = [padded[:, :, i : i + 8, j : j + 8] for i, j in ((2, 2), (0, 0), (0, 4), (4, 0), (4, 4))]
    expected = [view for window in windows for view in (window, window.flip(-1))]
    for view, other in zip(views_of(images, 2, flip=True), expected, strict=True):
        assert torch.equal(view, other)
    assert len(list(views_of(images, 0, flip=False))) == 1


@pytest.mark.parametrize(("name", "sizes"), [("resnet18", (512, 256, 128)), ("conv4", (256, 256, 256))])
def test_the_first_level_is_the_embedding_and_the_others_are_earlier_stages(name, sizes):
    network = build(name, (3, 32, 32)).eval()
    images = torch.randn(2, 3, 32, 32, generator=generator())
    with torch.inference_mode():
        levels = levels_of(network, images, 3)
        assert torch.allclose(levels[0], network(images), atol=1e-5)
    assert tuple(level.shape[1] for level in levels) == sizes


@pytest.mark.parametrize("weigh", [None, 0.1])
def test_features_are_averaged_over_views_whitened_weighed_centred_and_of_unit_length(weigh):
    network = conv4()
    labels, readout = KNOWN.labels.numpy(), Readout(flip=True, whiten=0.3, weigh=weigh)
    with torch.inference_mode():
        features = ((network(to_float(KNOWN.images)) + network(to_float(KNOWN.images.flip(-1)))) / 2).numpy()
    expected = features @ whitening(features, labels, 0.3)
    if weigh is not None:
        expected = expected @ weighing(expected, labels, weigh)
    expected = unit(expected - expected.mean(0))
    found = ReadoutEmbedding.fit([network], KNOWN, readout)(KNOWN.images)
    assert np.allclose(found.numpy(), expected, atol=1e-4)


def test_vectors_cannot_be_turned():
    vectors = ImageSet(torch.rand(6, 6), torch.arange(6) % 2, ("a", "b"))
    with pytest.raises(InputError, match="only images can be turned"):
        ReadoutEmbedding.fit([build("mlp", (6,))], vectors, Readout(turned=True))


def test_a_turned_image_is_a_block_of_its_own():
    network = conv4()
    one, four = (ReadoutEmbedding.fit([network], KNOWN, Readout(turned=turned)) for turned in (False, True))
    every = four(KNOWN.images)
    assert torch.allclose(every[:, :64], one(KNOWN.images), atol=1e-5)
    for turns, block in enumerate(every.chunk(4, dim=1)):
        turned = ImageSet(torch.rot90(KNOWN.images, turns, (-2, -1)), KNOWN.labels, KNOWN.class_names)
        alone = ReadoutEmbedding.fit([network], turned, Readout())(turned.images)
        assert torch.allclose(block, alone, atol=1e-4)


def test_blocks_weigh_the_same_for_known_images():
    networks = [conv4(0), conv4(1)]
    with torch.no_grad():
        networks[1].body.blocks[-1][1].weight.mul_(100)
    points = ReadoutEmbedding.fit(networks, KNOWN, Readout(levels=2))(KNOWN.images)
    for block in points.split(points.shape[1] // 4, dim=1):
        assert float(block.square().sum(1).mean()) == pytest.approx(1, rel=1e-4)


def test_an_image_is_read_on_its_own():
    embedding = ReadoutEmbedding.fit([conv4()], KNOWN, Readout(levels=2, shift=1, flip=True))
    alone = torch.cat([embedding(image[None]) for image in KNOWN.images[:3]])
    assert torch.allclose(embedding(KNOWN.images)[:3], alone, atol=1e-4)


def test_items_without_a_class_are_no_part_of_the_statistics():
    some = ImageSet(KNOWN.images, torch.where(torch.arange(24) < 18, KNOWN.labels, -1), KNOWN.class_names)
    labelled = ImageSet(KNOWN.images[:18], KNOWN.labels[:18], KNOWN.class_names)
    one, other = (ReadoutEmbedding.fit([conv4()], known, Readout())(KNOWN.images) for known in (some, labelled))
    assert torch.equal(one, other)


def test_readouts_that_cannot_be_say_what_to_change():
    with pytest.raises(InputError, match="whiten=0"):
        Readout(whiten=0.0)
    with pytest.raises(InputError, match="weigh=-1: give a shrinkage"):
        Readout(weigh=-1)
    with pytest.raises(InputError, match="levels=5"):
        levels_of(conv4(), torch.zeros(1, 3, 16, 16), 5)
    with pytest.raises(InputError, match="levels=1"):
        levels_of(build("mlp", (4,)), torch.zeros(1, 4), 2)
    with pytest.raises(InputError, match="plain vectors"):
        list(views_of(torch.zeros(2, 4), 1, flip=False))
