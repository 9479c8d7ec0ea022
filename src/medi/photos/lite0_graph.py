"""EfficientNet-Lite0 as an ONNX file, in float32 or in 8-bit integers.

In integers no photo is needed to find the ranges of numbers: a batch norm knows mean and deviation of what leaves it
(data-free quantisation, Nagel et al. 2019). Rounding weights shifts means; the biases take that back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from medi.photos.onnx_file import Graph

Floats = NDArray[np.float32]

SIX = 6.0
"""Where the network clips."""
REACH = 4.0
"""Deviations from the mean that numbers without a clip may have; farther ones are clipped in integers."""
_SOURCE = "images"


def onnx_of(folded: Any) -> bytes:
    """The file of a network whose batch norms are part of its convolutions; it takes uint8 (n, 3, 224, 224)."""
    return _file(_Floats(), folded, folded)


def quantised_onnx_of(network: Any, folded: Any) -> bytes:
    """The same in 8-bit integers; `network` still has the batch norms, which tell the ranges of numbers."""
    return _file(_Integers(), network, folded)


def _file(arithmetic: _Arithmetic, network: Any, folded: Any) -> bytes:
    """Walk through the network; batch norms are looked up in `network`, convolutions in `folded`."""
    x = arithmetic.start()
    x = arithmetic.clipped(arithmetic.convolved(x, folded._conv_stem), network._bn0)
    for block, convolutions in zip(network._blocks, folded._blocks, strict=True):
        sizes, before = block._block_args, x
        if sizes.expand_ratio != 1:
            x = arithmetic.clipped(arithmetic.convolved(x, convolutions._expand_conv), block._bn0)
        x = arithmetic.clipped(arithmetic.convolved(x, convolutions._depthwise_conv), block._bn1)
        x = arithmetic.linear(arithmetic.convolved(x, convolutions._project_conv), block._bn2)
        if block.id_skip and sizes.stride == 1 and sizes.input_filters == sizes.output_filters:
            x = arithmetic.added(x, before)
    x = arithmetic.clipped(arithmetic.convolved(x, folded._conv_head), network._bn1)
    graph = arithmetic.graph
    pooled = graph.add("Flatten", graph.add("GlobalAveragePool", x.name), axis=1)
    return graph.file(_SOURCE, (3, 224, 224), pooled, folded._conv_head.out_channels)


@dataclass(frozen=True)
class _Numbers:
    """A result in the graph; all but its name is needed in integers alone.

    Attributes:
        name: Of the result.
        mean: (channels,) what is expected of it.
        variance: (channels,) likewise.
        scale: What one step of an integer is worth.
    """

    name: str
    mean: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    variance: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    scale: float = 1.0


class _Arithmetic(ABC):
    """How the operations of the network are written into a graph."""

    def __init__(self) -> None:
        self.graph = Graph()

    def start(self) -> _Numbers:
        """The pixels, as (x - 127) / 128."""
        pixels = self.graph.add("DequantizeLinear", _SOURCE, self.scalar(1 / 128), self.scalar(127, np.uint8))
        return _Numbers(pixels, np.zeros(3, np.float32), scale=1 / 128)

    @abstractmethod
    def weights(self, x: _Numbers, convolution: Any) -> tuple[str, str]:
        """Weights and bias of a convolution of x."""

    @abstractmethod
    def clipped(self, x: _Numbers, bn: Any) -> _Numbers:
        """What leaves a batch norm, between 0 and 6."""

    @abstractmethod
    def linear(self, x: _Numbers, bn: Any) -> _Numbers:
        """What leaves a batch norm, as it is."""

    @abstractmethod
    def added(self, x: _Numbers, y: _Numbers) -> _Numbers:
        """The sum of both."""

    def convolved(self, x: _Numbers, convolution: Any) -> _Numbers:
        """A convolution, padded as TensorFlow does: before strides more on the right and below."""
        left, right, top, bottom = getattr(convolution.static_padding, "padding", (0, 0, 0, 0))
        name = self.graph.add(
            "Conv",
            x.name,
            *self.weights(x, convolution),
            kernel_shape=convolution.kernel_size,
            strides=convolution.stride,
            pads=(top, left, bottom, right),
            group=convolution.groups,
        )
        return _Numbers(name)

    def scalar(self, value: float, kind: type = np.float32) -> str:
        """A constant without dimensions."""
        return self.graph.constant(np.array(value, kind))


class _Floats(_Arithmetic):
    def weights(self, x: _Numbers, convolution: Any) -> tuple[str, str]:
        constant = self.graph.constant
        return constant(convolution.weight.detach().numpy()), constant(convolution.bias.detach().numpy())

    def clipped(self, x: _Numbers, bn: Any) -> _Numbers:
        return _Numbers(self.graph.add("Clip", x.name, self.scalar(0), self.scalar(SIX)))

    def linear(self, x: _Numbers, bn: Any) -> _Numbers:
        return x

    def added(self, x: _Numbers, y: _Numbers) -> _Numbers:
        return _Numbers(self.graph.add("Add", x.name, y.name))


class _Integers(_Arithmetic):
    """Every result is rounded to 8 bits; ONNX Runtime then computes with these."""

    def weights(self, x: _Numbers, convolution: Any) -> tuple[str, str]:
        weight, bias = (value.detach().numpy() for value in (convolution.weight, convolution.bias))
        largest = np.abs(weight).max((1, 2, 3)) / 127
        scale = np.maximum(largest, np.abs(bias) / (x.scale * 2**30)).astype(np.float32)  # a bias has 32 bits
        rounded = np.round(weight / scale[:, None, None, None]).clip(-127, 127).astype(np.int8)
        error = (rounded * scale[:, None, None, None] - weight).sum((2, 3))
        bias = bias - (error[:, 0] * x.mean if convolution.groups > 1 else error @ x.mean)
        of_bias = (scale * x.scale).astype(np.float32)
        return self._constant(rounded, scale), self._constant(np.round(bias / of_bias).astype(np.int32), of_bias)

    def clipped(self, x: _Numbers, bn: Any) -> _Numbers:
        mean, deviation = _statistics(bn)
        low, high = -mean / deviation, (SIX - mean) / deviation
        inside = norm.cdf(high) - norm.cdf(low)
        expected = mean * inside + deviation * (norm.pdf(low) - norm.pdf(high)) + SIX * norm.sf(high)
        scale = SIX / 255  # 0 to 255 are 0 to 6: rounding clips
        return _Numbers(self._rounded(x.name, scale, 0), expected.astype(np.float32), scale=scale)

    def linear(self, x: _Numbers, bn: Any) -> _Numbers:
        mean, deviation = _statistics(bn)
        return self._around_zero(x.name, mean, deviation**2)

    def added(self, x: _Numbers, y: _Numbers) -> _Numbers:
        return self._around_zero(self.graph.add("Add", x.name, y.name), x.mean + y.mean, x.variance + y.variance)

    def _around_zero(self, name: str, mean: Floats, variance: Floats) -> _Numbers:
        scale = float((np.abs(mean) + REACH * np.sqrt(variance)).max()) / 127
        return _Numbers(self._rounded(name, scale, 128), mean, variance, scale)

    def _rounded(self, name: str, scale: float, zero: int) -> str:
        step, nothing = self.scalar(scale), self.scalar(zero, np.uint8)
        return self.graph.add("DequantizeLinear", self.graph.add("QuantizeLinear", name, step, nothing), step, nothing)

    def _constant(self, values: NDArray[Any], scale: Floats) -> str:
        """Integers that are worth `scale` each, a scale for each output channel."""
        graph = self.graph
        zeros = np.zeros(len(scale), values.dtype)
        names = (graph.constant(values), graph.constant(scale), graph.constant(zeros))
        return graph.add("DequantizeLinear", *names, axis=0)


def _statistics(bn: Any) -> tuple[Floats, Floats]:
    """Mean and deviation of each channel that leaves a batch norm."""
    return bn.bias.detach().numpy(), np.abs(bn.weight.detach().numpy()) + np.float32(1e-9)
