"""The encoders see what their authors meant them to see."""

import pytest
import torch

from medi.errors import InputError
from medi.photos.encoders import load_encoder

CPU = torch.device("cpu")


def blank(n, side=224):
    return torch.zeros(n, 3, side, side, dtype=torch.uint8)


@pytest.mark.parametrize("name", ["conv4", "resnet18"])
def test_networks_trained_from_scratch_get_pixels(name):
    encoder = load_encoder(name, CPU)
    images = torch.randint(0, 256, (2, *encoder.shape), dtype=torch.uint8)
    assert torch.equal(encoder.encode(images), images)
    assert encoder.network == name
    assert encoder.dtype == torch.uint8


def test_an_unknown_encoder_is_named():
    with pytest.raises(InputError, match="did you mean 'resnet18'"):
        load_encoder("resnet19", CPU)
