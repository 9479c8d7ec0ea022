"""What `medi` reads off networks: views, levels, blocks of equal weight."""

import pytest
import torch

from medi.cluster.whitening import weighing, whitening
from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods.readout import Readout, ReadoutEncoder, levels_of, views_of
from medi.nets import build

CPU = torch.device("cpu")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_known(n: int = 24) -> ImageSet:
    images = torch.randint(0, 256, (n, 3, 16, 16), dtype=torch.uint8, generator=seeded())
    return ImageSet(images, torch.arange(n) % 3, tuple("abc"))


def test_views_are_the_image_four_corners_and_their_mirror_images():
    images = torch.rand(2, 1, 8, 8, generator=seeded())
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2), mode="reflect")
    windows = [padded[:, :, i : i + 8, j : j + 8] for i, j in ((2, 2), (0, 0), (0, 4), (4, 0), (4, 4))]
    expected = [view for window in windows for view in (window, window.flip(-1))]
    views = list(views_of(images, 2, flip=True))
    assert len(views) == 10
    assert all(torch.equal(view, other) for view, other in zip(views, expected, strict=True))
    assert len(list(views_of(images, 0, flip=False))) == 1


@pytest.mark.parametrize(("name", "sizes"), [("resnet18", (512, 256, 128)), ("conv4", (256, 256, 256))])
def test_the_first_level_is_the_embedding_and_the_others_are_earlier_stages(name, sizes):
    network = build(name, (3, 32, 32)).eval()
    images = torch.randn(2, 3, 32, 32, generator=seeded())
    with torch.inference_mode():
        levels = levels_of(network, images, 3)
        assert torch.allclose(levels[0], network(images), atol=1e-5)
    assert tuple(level.shape[1] for level in levels) == sizes


def test_features_are_the_mean_over_views():
    known, network = some_known(), build("conv4", (3, 16, 16)).eval()
    encoder = ReadoutEncoder([network], known, Readout(flip=True), CPU)
    with torch.inference_mode():
        images = to_float(known.images)
        mean = (network(images) + network(images.flip(-1))) / 2
    features = encoder(known.images)
    assert torch.allclose(features * mean.norm() / features.norm(), mean, atol=1e-5)


def test_vectors_cannot_be_turned():
    known = ImageSet(torch.rand(6, 6), torch.arange(6) % 2, ("a", "b"))
    with pytest.raises(InputError, match="only images can be turned"):
        ReadoutEncoder([build("mlp", (6,))], known, Readout(turned=True), CPU)


def test_a_turned_image_is_a_block_of_its_own():
    known, network = some_known(), build("conv4", (3, 16, 16)).eval()
    one, four = (ReadoutEncoder([network], known, Readout(turned=turned, unit=True), CPU) for turned in (False, True))
    upright, every = one(known.images), four(known.images)
    assert every.shape == (24, 4 * upright.shape[1])
    for turns, block in enumerate(every.chunk(4, dim=1)):
        by_hand = one(torch.rot90(known.images, turns, (-2, -1)).contiguous())
        assert torch.allclose(block, by_hand, atol=1e-5)


@pytest.mark.parametrize("readout", [Readout(), Readout(power=0.5, whiten=0.3, centred=True, unit=True, levels=2)])
def test_blocks_weigh_the_same_for_known_images(readout):
    known = some_known()
    networks = [build("conv4", (3, 16, 16), seed=seed) for seed in (0, 1)]
    with torch.no_grad():
        networks[1].body.blocks[-1][1].weight.mul_(100)
    features = ReadoutEncoder(networks, known, readout, CPU)(known.images)
    blocks = features.chunk(2 * readout.levels, dim=1)
    for block in blocks:
        assert float(block.square().sum(1).mean()) == pytest.approx(1, rel=1e-4)


def test_an_image_is_read_on_its_own():
    known = some_known()
    readout = Readout(levels=2, shift=1, flip=True, power=0.5, whiten=0.5, centred=True, unit=True)
    encoder = ReadoutEncoder([build("conv4", (3, 16, 16))], known, readout, CPU)
    alone = torch.cat([encoder(image[None]) for image in known.images[:5]])
    assert torch.allclose(encoder(known.images)[:5], alone, atol=1e-4)


def test_readouts_that_cannot_be_say_what_to_change():
    with pytest.raises(InputError, match="whiten=0"):
        Readout(whiten=0.0)
    with pytest.raises(InputError, match="weigh=-1: give a shrinkage"):
        Readout(whiten=0.5, weigh=-1)
    with pytest.raises(InputError, match="give whiten, too"):
        Readout(weigh=0.5)
    with pytest.raises(InputError, match="levels=5"):
        levels_of(build("conv4", (3, 16, 16)), torch.zeros(1, 3, 16, 16), 5)
    with pytest.raises(InputError, match="levels=1"):
        levels_of(build("mlp", (4,)), torch.zeros(1, 4), 2)
    with pytest.raises(InputError, match="plain vectors"):
        list(views_of(torch.zeros(2, 4), 1, flip=False))


def test_known_images_are_whitened_and_then_weighed():
    known, network = some_known(60), build("conv4", (3, 16, 16), seed=0).eval()
    readout = Readout(whiten=0.5, weigh=0.1)
    features = ReadoutEncoder([network], known, Readout(), CPU)(known.images)
    white = features @ whitening(features, known.labels, 0.5)
    expected = white @ weighing(white, known.labels, 0.1)
    read = ReadoutEncoder([network], known, readout, CPU)(known.images)
    assert torch.allclose(read, expected * (read.norm() / expected.norm()), atol=1e-4)
    assert not torch.allclose(read, white * (read.norm() / white.norm()), atol=1e-2)


def test_weights_shrunk_all_the_way_read_as_none_do():
    known, network = some_known(60), build("conv4", (3, 16, 16), seed=0).eval()
    read, plain = (
        ReadoutEncoder([network], known, Readout(whiten=0.5, weigh=weigh), CPU)(known.images) for weigh in (1.0, None)
    )
    assert torch.allclose(read, plain, atol=1e-4)
