"""Encoders by their names."""

import numpy as np
import pytest

from medi.core.errors import InputError
from medi.photos.encoders import load_encoder


@pytest.mark.parametrize("name", ["conv4", "resnet18"])
def test_networks_trained_from_scratch_get_the_pixels_themselves(name):
    encoder = load_encoder(name, "cpu")
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    np.testing.assert_array_equal(encoder.encode(images), images)
    assert encoder.network == name
    assert (encoder.shape, encoder.dtype) == ((3, 32, 32), np.uint8)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"unknown encoder 'resnet19'.*did you mean 'resnet18'"):
        load_encoder("resnet19", "cpu")
