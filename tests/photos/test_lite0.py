"""The default encoder: the features its authors meant, on every engine."""

import io
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_sample_images
from torch import nn
from torch.nn.functional import cosine_similarity

from medi.errors import InputError
from medi.photos import lite0
from medi.photos.decode import decoding, read_photo
from medi.photos.encoders import DEFAULT, INT8, load_encoder
from medi.photos.lite0 import by_onnxruntime, by_torch, folded
from medi.photos.lite0_graph import _Integers, _Numbers
from medi.photos.onnx_file import Graph, _varint

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def network():
    return lite0.network()


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(DEFAULT, CPU)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """The two photos of scikit-learn, a palace and a flower, as the default encoder gets them."""
    squares = []
    for image in load_sample_images().images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        buffer.seek(0)
        with decoding():
            squares.append(read_photo(buffer, load_encoder(DEFAULT, CPU).cut).pixels)
    return torch.from_numpy(np.stack(squares))


def test_the_default_encoder_recognises_imagenet_classes(encoder, network, photos):
    with torch.inference_mode():
        scores = network._fc(encoder.encode(photos))
        whole = network((photos.float() - 127) / 128)
    # Folding batch norms and the order of memory change nothing but the last digits.
    assert torch.allclose(scores, whole, atol=1e-3)
    assert scores.argmax(1).tolist() == [698, 985]  # palace, daisy


def test_a_photo_has_the_same_features_whatever_it_is_encoded_with(encoder, photos):
    alone = torch.cat([encoder.encode(photos[:1]), encoder.encode(photos[1:])])
    assert torch.allclose(encoder.encode(photos), alone, atol=1e-4)
    assert alone.shape == (2, *encoder.shape)
    assert alone.dtype == encoder.dtype


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
    (tmp_path / "models" / lite0._WEIGHTS).write_bytes(b"something else")
    package = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(lite0.importlib.util, "find_spec", lambda name: package)
    with pytest.raises(InputError, match="not the file its package was published with"):
        load_encoder(DEFAULT, CPU)
    (tmp_path / "models" / lite0._WEIGHTS).unlink()
    with pytest.raises(InputError, match="reinstall"):
        load_encoder(DEFAULT, CPU)


@pytest.fixture(scope="module")
def varied(photos):
    """Photos, parts of them, mirrored, dark and bright ones, and noise."""
    noise = torch.randint(0, 256, (2, 3, 224, 224), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    blank = torch.zeros(1, 3, 224, 224, dtype=torch.uint8)
    return torch.cat(
        [photos, photos.flip(-1), photos.roll(60, -1), photos // 3, 255 - photos, noise, blank, blank + 255]
    )


def test_engines_agree(encoder, network, varied):
    assert encoder.engine == "ONNX Runtime"
    assert torch.allclose(encoder.encode(varied), by_torch(network, CPU)(varied), atol=1e-5)


def test_threads_may_encode_at_once(encoder, varied):
    alone = encoder.encode(varied)
    with ThreadPoolExecutor(4) as pool:
        assert all(torch.equal(features, alone) for features in pool.map(encoder.encode, [varied] * 8))


def test_without_onnx_runtime_torch_makes_the_same_features(encoder, photos, monkeypatch):
    monkeypatch.setattr(lite0, "_has_onnxruntime", lambda: False)
    plain = load_encoder(DEFAULT, CPU)
    assert (plain.engine, plain.identity) == ("torch", encoder.identity)
    assert torch.allclose(plain.encode(photos), encoder.encode(photos), atol=1e-5)
    with pytest.raises(InputError, match="pip install onnxruntime"):
        load_encoder(INT8, CPU)


def test_integers_come_near_and_are_kept_apart(encoder, varied):
    small = load_encoder(INT8, CPU)
    assert small.identity != encoder.identity
    exact, rounded = encoder.encode(varied[:10]), small.encode(varied[:10])
    assert cosine_similarity(exact, rounded).min() > 0.97
    centred = cosine_similarity(exact - exact.mean(0), rounded - exact.mean(0))
    assert centred.mean() > 0.97


def test_the_mean_of_clipped_numbers_is_that_of_many_draws():
    bn = nn.BatchNorm2d(4)
    with torch.no_grad():
        bn.bias.copy_(torch.tensor([-1.0, 0.5, 5.0, 9.0]))
        bn.weight.copy_(torch.tensor([1.0, -2.0, 3.0, 0.1]))
    graph = _Integers()
    expected = graph.clipped(_Numbers("x"), bn).mean
    draws = np.random.default_rng(0).normal(size=(200_000, 4)) * bn.weight.detach().numpy() + bn.bias.detach().numpy()
    np.testing.assert_allclose(expected, draws.clip(0, 6).mean(0), atol=0.02)


def test_a_written_graph_computes_what_it_says():
    generator = np.random.default_rng(0)
    weight, bias = (generator.normal(size=shape).astype(np.float32) for shape in ((5, 3, 3, 3), (5,)))
    graph = Graph()
    x = graph.add("Cast", "pixels", to=1)
    x = graph.add("Conv", x, graph.constant(weight), graph.constant(bias), strides=(2, 1), pads=(0, 1, 2, 0))
    result = graph.add("Flatten", graph.add("GlobalAveragePool", x), axis=1)
    images = torch.from_numpy(generator.integers(0, 256, (2, 3, 9, 7), dtype=np.uint8))
    padded = nn.functional.pad(images.float(), (1, 0, 0, 2))
    theirs = nn.functional.conv2d(padded, torch.from_numpy(weight), torch.from_numpy(bias), stride=(2, 1))
    ours = by_onnxruntime(graph.file("pixels", (3, 9, 7), result, 5))(images)
    torch.testing.assert_close(ours, theirs.mean((2, 3)), rtol=1e-4, atol=1e-3)


@given(st.integers(0, 2**63 - 1))
def test_numbers_are_written_seven_bits_a_byte(number):
    written = _varint(number)
    assert sum((byte & 127) << 7 * place for place, byte in enumerate(written)) == number
    assert [byte >> 7 for byte in written] == [1] * (len(written) - 1) + [0]
    assert len(written) == 1 or written[-1]


def test_integers_run_on_a_processor_whatever_device_is_asked_for(photos):
    encoder = load_encoder(INT8, torch.device("cuda"))
    assert encoder.in_threads
    assert encoder.encode(photos).shape == (2, 1280)
