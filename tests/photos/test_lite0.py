"""The default encoder: the features its authors meant, read and run without torch."""

import io
import pickle
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from sklearn.metrics.pairwise import cosine_similarity
from torch.nn import functional as F

from medi.core.errors import InputError
from medi.photos import lite0
from medi.photos.decode import decoding, read_photo
from medi.photos.encoders import DEFAULT_ENCODER, INT8, load_encoder
from medi.photos.lite0 import by_onnxruntime
from medi.photos.lite0_graph import IntegerGraph, Layer, Node
from medi.photos.onnx_file import Graph
from medi.photos.torch_file import read_weights


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(DEFAULT_ENCODER, "cpu")


@pytest.fixture(scope="module")
def weights():
    return lite0.weights()


@pytest.fixture(scope="module")
def photos(encoder):
    """The two photos of scikit-learn, a palace and a flower, as the default encoder gets them."""
    squares = []
    for image in load_sample_images().images:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "PNG")
        buffer.seek(0)
        with decoding():
            squares.append(read_photo(buffer, encoder.cut).pixels)
    return np.stack(squares)


@pytest.fixture(scope="module")
def varied(photos):
    """Photos, parts of them, mirrored, dark and bright ones, and noise."""
    noise = np.random.default_rng(0).integers(0, 256, (2, 3, 224, 224), dtype=np.uint8)
    blank = np.zeros((1, 3, 224, 224), np.uint8)
    views = (photos, photos[..., ::-1], np.roll(photos, 60, -1), photos // 3, 255 - photos, noise, blank, blank + 255)
    return np.concatenate(views)


def by_torch(weights, images):
    """The network as its authors describe it, layer by layer, batch norms apart: (n, 1280)."""
    weights = {name: torch.from_numpy(array) for name, array in weights.items()}

    def layer(x, convolution, norm, stride=1, clip=True):
        weight = weights[f"{convolution}.weight"]
        total = max((-(-x.shape[-1] // stride) - 1) * stride + weight.shape[-1] - x.shape[-1], 0)
        x = F.pad(x, (total // 2, total - total // 2) * 2)
        x = F.conv2d(x, weight, stride=stride, groups=x.shape[1] if weight.shape[1] == 1 else 1)
        statistics = (weights[f"{norm}.{name}"] for name in ("running_mean", "running_var", "weight", "bias"))
        x = F.batch_norm(x, *statistics, eps=1e-3)
        return x.clip(0, 6) if clip else x

    x = layer((torch.from_numpy(images).float() - 127) / 128, "_conv_stem", "_bn0", 2)
    # How often, kernel, stride, widening, channels in and out: "r1_k3_s11_e1_i32_o16" and so on.
    stages = [(1, 1, 1), (2, 2, 6), (2, 2, 6), (3, 2, 6), (3, 1, 6), (4, 2, 6), (1, 1, 6)]
    number = 0
    for repeats, first_stride, wider in stages:
        for repeat in range(repeats):
            prefix, before, stride = f"_blocks.{number}.", x, first_stride if repeat == 0 else 1
            if wider > 1:
                x = layer(x, f"{prefix}_expand_conv", f"{prefix}_bn0")
            x = layer(x, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride)
            x = layer(x, f"{prefix}_project_conv", f"{prefix}_bn2", clip=False)
            x = x + before if x.shape == before.shape else x
            number += 1
    return layer(x, "_conv_head", "_bn1").mean((2, 3)).numpy()


def test_features_are_those_of_the_network_with_its_batch_norms_apart(encoder, weights, varied):
    assert encoder.engine == "ONNX Runtime"
    np.testing.assert_allclose(encoder.encode(varied), by_torch(weights, varied), atol=1e-4)


def test_the_default_encoder_recognises_imagenet_classes(encoder, weights, photos):
    scores = encoder.encode(photos) @ weights["_fc.weight"].T + weights["_fc.bias"]
    assert scores.argmax(1).tolist() == [698, 985]  # palace, daisy


def test_a_photo_has_the_same_features_whatever_it_is_encoded_with_in_whatever_thread(encoder, varied):
    alone = np.concatenate([encoder.encode(photo[None]) for photo in varied])
    assert (alone.shape, alone.dtype) == ((len(varied), *encoder.shape), encoder.dtype)
    with ThreadPoolExecutor(4) as pool:
        for features in pool.map(encoder.encode, [varied] * 8):
            np.testing.assert_allclose(features, alone, atol=1e-4)


def test_weights_that_were_tampered_with_are_refused(tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / lite0._WEIGHTS).write_bytes(b"something else")
    package = types.SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(lite0.importlib.util, "find_spec", lambda name: package)
    photo = np.zeros((1, 3, lite0.SIDE, lite0.SIDE), np.uint8)
    with pytest.raises(InputError, match="not the file its package was published with"):
        load_encoder(DEFAULT_ENCODER, "cpu").encode(photo)
    (tmp_path / "models" / lite0._WEIGHTS).unlink()
    with pytest.raises(InputError, match="reinstall"):
        load_encoder(DEFAULT_ENCODER, "cpu").encode(photo)


def saved(state):
    buffer = io.BytesIO()
    torch.save(state, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def test_files_of_torch_are_read_as_torch_reads_them():
    storage = torch.arange(24.0)
    parts = {"rows": storage.view(4, 6), "turned": storage.view(4, 6).T, "end": storage[20:], "count": torch.tensor(7)}
    read = read_weights(saved(parts))
    assert read.keys() == parts.keys()
    for name, tensor in parts.items():
        np.testing.assert_array_equal(read[name], tensor.numpy())
        assert read[name].dtype == tensor.numpy().dtype


@pytest.mark.parametrize("name", ["posix.system", "builtins.eval", "torch.load", "torch.HalfStorage", "os.getcwd"])
def test_a_file_that_needs_any_other_name_is_refused(name):
    module, _, function = name.rpartition(".")
    harmful = f"c{module}\n{function}\n(S'echo'\ntR.".encode()
    with pytest.raises(pickle.UnpicklingError, match="is not read"):
        read_weights(harmful)
    with pytest.raises(pickle.UnpicklingError, match="is not read"):
        read_weights(b"".join(pickle.dumps(number, 2) for number in (1, 2, {})) + harmful)


def test_an_array_that_reaches_beyond_its_numbers_is_refused():
    content = saved({"x": torch.zeros(300)})
    assert content.count(b"M,\x01\x85") == 1  # its shape, (300,)
    with pytest.raises((TypeError, ValueError)):
        read_weights(content.replace(b"M,\x01\x85", b"M,\x02\x85"))


def test_integers_come_near_and_are_kept_apart(encoder, varied):
    small = load_encoder(INT8, "cuda")  # on a processor, whatever device is asked for
    assert small.identity != encoder.identity
    exact, rounded = encoder.encode(varied[:10]), small.encode(varied[:10])
    assert np.diag(cosine_similarity(exact, rounded)).min() > 0.97
    centred = np.diag(cosine_similarity(exact - exact.mean(0), rounded - exact.mean(0)))
    assert centred.mean() > 0.97


def test_the_mean_of_clipped_numbers_is_that_of_many_draws():
    mean, deviation = np.array([-1.0, 0.5, 5.0, 9.0], np.float32), np.array([1.0, 2.0, 3.0, 0.1], np.float32)
    layer = Layer(np.zeros((4, 1, 1, 1), np.float32), mean, 1, (0, 0), mean, deviation)
    expected = IntegerGraph().clipped(Node("x"), layer).mean
    draws = np.random.default_rng(0).normal(mean, deviation, (200_000, 4))
    np.testing.assert_allclose(expected, draws.clip(0, 6).mean(0), atol=0.02)


def test_a_written_graph_computes_what_it_says():
    generator = np.random.default_rng(0)
    weight, bias = (generator.normal(size=shape).astype(np.float32) for shape in ((5, 3, 3, 3), (5,)))
    graph = Graph()
    x = graph.add("Cast", "pixels", to=1)
    x = graph.add("Conv", x, graph.constant(weight), graph.constant(bias), strides=(2, 1), pads=(0, 1, 2, 0))
    result = graph.add("Flatten", graph.add("GlobalAveragePool", x), axis=1)
    images = generator.integers(0, 256, (2, 3, 9, 7), dtype=np.uint8)
    padded = F.pad(torch.from_numpy(images).float(), (1, 0, 0, 2))
    theirs = F.conv2d(padded, torch.from_numpy(weight), torch.from_numpy(bias), stride=(2, 1))
    ours = by_onnxruntime(graph.file("pixels", (3, 9, 7), result, 5))(images)
    np.testing.assert_allclose(ours, theirs.mean((2, 3)), rtol=1e-4, atol=1e-3)
