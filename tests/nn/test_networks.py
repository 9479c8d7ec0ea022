"""Every network: sizes, seeds, formats, and what it says to items it cannot read."""

import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from medi.core.errors import InputError
from medi.nn import NETWORKS, build
from medi.nn.norm import BatchStatisticsNorm

NATIVE = {
    "conv4": 256,
    "conv4-wide": 1024,
    "vgg16": 512,
    "resnet18": 512,
    "resnet18-padded": 512,
    "mlp": 256,
}


@pytest.fixture(autouse=True)
def _the_same_draws_every_time():
    torch.manual_seed(0)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("channels", "embedding"), [(1, 7), (3, None)])
def test_every_network_embeds_every_benchmark(name, channels, embedding):
    network = build(name, (channels, 32, 32), embedding=embedding)
    assert network.width == (embedding or NATIVE[name])
    embedded = network(torch.randn(2, channels, 32, 32))
    assert embedded.shape == (2, network.width)
    assert (embedded.min() >= 0) == (embedding is None)  # a network's own features are ReLU'd


@pytest.mark.parametrize(
    ("name", "convolutions", "parameters"),
    [
        ("conv4", 4, 27 * 64 + 3 * 9 * 64 * 64 + 4 * 2 * 64),
        # torchvision's vgg16().features, with a norm's two numbers in place of each of the 4,224 biases
        ("vgg16", 13, 14_714_688 + 4_224),
        # torchvision's resnet18(), less its classifier and with a 3x3 stem in place of 7x7
        ("resnet18", 20, 11_689_512 - 513_000 - 64 * 3 * (49 - 9)),
    ],
)
def test_networks_have_the_layers_of_the_papers(name, convolutions, parameters):
    network = build(name, (3, 32, 32))
    assert sum(isinstance(layer, nn.Conv2d) for layer in network.modules()) == convolutions
    assert sum(p.numel() for p in network.parameters()) == parameters


def test_sizes_grow_with_the_image_where_they_should():
    assert build("conv4", (3, 84, 84)).width == 1600
    assert build("conv4", (1, 16, 50))(torch.randn(2, 1, 16, 50)).shape == (2, 192)
    assert build("vgg16", (1, 64, 64))(torch.randn(2, 1, 64, 64)).shape == (2, 512)


@pytest.mark.parametrize("hidden", [(5,), (8, 6, 4)])
def test_mlp_reads_vectors_through_the_layers_asked_for(hidden):
    network = build("mlp", (10,), hidden=hidden)
    assert network.width == hidden[-1]
    assert network(torch.randn(3, 10)).shape == (3, hidden[-1])


def test_the_seed_decides_the_weights_and_the_global_generator_stays_as_it_was():
    state = torch.get_rng_state()
    one, same, other = (build("conv4", (3, 32, 32), embedding=5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(state, torch.get_rng_state())
    for a, b in zip(one.parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.head.weight, other.head.weight)


def test_a_padded_shortcut_has_means_of_four_places_and_zeros_for_new_channels():
    shortcut = build("resnet18-padded", (3, 32, 32)).body.stages[2].shortcut
    x = torch.randn(2, 64, 5, 6)
    result = shortcut(x)
    assert result.shape == (2, 128, 3, 3)
    assert torch.allclose(result[:, :64, 1, 2], x[:, :, 2:4, 4:6].mean((2, 3)), atol=1e-6)
    assert (result[:, 64:] == 0).all()
    assert not list(shortcut.parameters())


def test_features_are_averaged_in_full_precision():
    network = build("resnet18", (3, 32, 32)).eval()
    with torch.autocast("cpu", torch.bfloat16):
        assert network(torch.randn(2, 3, 32, 32)).dtype == torch.float32
    assert network.double()(torch.randn(2, 3, 32, 32).double()).dtype == torch.float64


@pytest.mark.parametrize("name", ["resnet18", "mlp"])
@pytest.mark.parametrize("norm", ["running", "batch"])
def test_the_norm_asked_for_is_the_only_one(name, norm):
    network = build(name, (3, 32, 32), norm=norm)
    ours = any(isinstance(layer, BatchStatisticsNorm) for layer in network.modules())
    theirs = any(isinstance(layer, _BatchNorm) for layer in network.modules())
    assert (ours, theirs) == (norm == "batch", norm == "running")


@pytest.mark.parametrize(
    ("name", "shape", "settings", "message"),
    [
        ("conv5", (3, 32, 32), {}, "unknown network 'conv5'.*did you mean 'conv4'"),
        ("conv4", (3, 15, 32), {}, "conv4 reads images of 16 x 16 pixels or more, not 15 x 32: enlarge"),
        ("vgg16", (1, 28, 28), {}, "32 x 32 pixels or more, not 28 x 28"),
        ("resnet18", (64,), {}, r"not items of shape \(64,\): use mlp"),
        ("conv4", (32, 32), {}, "add or drop a dimension"),
        ("mlp", (), {}, "at least 1"),
        ("mlp", (0,), {}, "at least 1"),
        ("mlp", (4,), {"hidden": ()}, "one or more"),
        ("mlp", (4,), {"embedding": 0}, "embedding=0"),
        ("mlp", (4,), {"norm": "runing"}, "did you mean 'running'"),
    ],
)
def test_what_cannot_be_built_says_why_and_what_to_do(name, shape, settings, message):
    with pytest.raises(InputError, match=message):
        build(name, shape, **settings)
