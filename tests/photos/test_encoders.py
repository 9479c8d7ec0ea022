"""The encoders see what their authors meant them to see."""

import sys
import types

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images
from torch import nn

from medi.errors import InputError
from medi.photos import encoders
from medi.photos.encoders import DEFAULT, folded, load_encoder

CPU = torch.device("cpu")


def blank(n, side=224):
    return torch.zeros(n, 3, side, side, dtype=torch.uint8)


@pytest.fixture(scope="module")
def lite0():
    return load_encoder(DEFAULT, CPU)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """The two photos of scikit-learn, a palace and a flower, as the default encoder gets them."""
    import io

    from PIL import Image

    from medi.photos.decode import decoding, read_photo

    squares = []
    for image in load_sample_images().images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        buffer.seek(0)
        with decoding():
            squares.append(read_photo(buffer, load_encoder(DEFAULT, CPU).cut).pixels)
    return torch.from_numpy(np.stack(squares))


def test_the_default_encoder_recognises_imagenet_classes(lite0, photos):
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(DEFAULT)
    network.load_state_dict(torch.load(encoders._checked_weights(), weights_only=True))
    network.eval()
    with torch.inference_mode():
        scores = network._fc(lite0.encode(photos))
        whole = network((photos.float() - 127) / 128)
    # Folding batch norms and the order of memory change nothing but the last digits.
    assert torch.allclose(scores, whole, atol=1e-3)
    assert scores.argmax(1).tolist() == [698, 985]  # palace, daisy


def test_a_photo_has_the_same_features_whatever_it_is_encoded_with(lite0, photos):
    alone = torch.cat([lite0.encode(photos[:1]), lite0.encode(photos[1:])])
    assert torch.allclose(lite0.encode(photos), alone, atol=1e-4)
    assert alone.shape == (2, *lite0.shape)
    assert alone.dtype == lite0.dtype


def test_folding_changes_no_output():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4))
    network.train()
    for _ in range(5):
        network(3 * torch.randn(16, 3, 9, 9) + 1)  # statistics that differ from the initial ones
    network.eval()
    x = torch.randn(4, 3, 9, 9)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded(network).modules())
    assert torch.allclose(folded(network)(x), network(x), atol=1e-5)
    assert any(isinstance(module, nn.BatchNorm2d) for module in network.modules())


def test_a_batch_norm_without_a_convolution_before_it_stays():
    network = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1), nn.ReLU(), nn.BatchNorm2d(2)).eval()
    assert sum(isinstance(module, nn.BatchNorm2d) for module in folded(network).modules()) == 2


def test_weights_that_were_tampered_with_are_refused(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / encoders._WEIGHTS).write_bytes(b"something else")
    package = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(encoders.importlib.util, "find_spec", lambda name: package)
    with pytest.raises(InputError, match="not the file its package was published with"):
        load_encoder(DEFAULT, CPU)
    (tmp_path / "models" / encoders._WEIGHTS).unlink()
    with pytest.raises(InputError, match="reinstall"):
        load_encoder(DEFAULT, CPU)


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


def test_timm_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"pip install 'medi\[timm\]'"):
        load_encoder("timm:vit", CPU)


@pytest.fixture
def fake_timm(monkeypatch):
    """A stand-in with timm's interface: one model, and the configuration that it is to be used with."""

    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x):
            return self.scale * x.mean((2, 3))

    def create_model(name, pretrained, num_classes):
        assert pretrained
        assert num_classes == 0
        if name == "offline":
            raise OSError("no route\nto the hub")
        return Tiny()

    configuration = {
        "input_size": (3, 64, 64),
        "crop_pct": 0.9,
        "interpolation": "bilinear",
        "mean": (0.5, 0.5, 0.5),
        "std": (0.25, 0.25, 0.25),
    }
    timm, data = types.ModuleType("timm"), types.ModuleType("timm.data")
    timm.__version__ = "1.0"
    timm.is_model = lambda name: name in ("tiny", "offline")
    timm.list_models = lambda pretrained: ["tiny", "offline"]
    timm.create_model = create_model
    data.resolve_model_data_config = lambda model: configuration
    timm.data = data
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)


def test_a_timm_model_gets_photos_as_its_configuration_says(fake_timm):
    encoder = load_encoder("timm:tiny", CPU)
    assert (encoder.cut.side, encoder.cut.fraction, encoder.cut.filter.name) == (64, 0.9, "BILINEAR")
    assert encoder.shape == (3,)
    assert torch.allclose(encoder.encode(blank(1, 64)), torch.full((1, 3), -2.0))
    assert torch.allclose(encoder.encode(blank(1, 64) + 255), torch.full((1, 3), 2.0))


def test_timm_models_that_cannot_be_had_are_named(fake_timm):
    with pytest.raises(InputError, match="did you mean 'timm:tiny'"):
        load_encoder("timm:tinny", CPU)
    with pytest.raises(InputError, match="no route to the hub"):
        load_encoder("timm:offline", CPU)
