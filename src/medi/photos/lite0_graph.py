"""The operations of EfficientNet-Lite0 in an ONNX file, in float32 or in 8-bit integers.

In integers no photo is needed to find the ranges of numbers: a batch norm knows mean and deviation of what leaves it
(data-free quantisation, Nagel et al. 2019). Rounding weights shifts means; the biases take that back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from medi.core.arrays import Singles
from medi.photos.onnx_file import Graph

SIX = 6.0
"""Where the network clips."""
REACH = 4.0
"""Deviations from the mean that numbers without a clip may have; farther ones are clipped in integers."""
_SOURCE = "images"


@dataclass(frozen=True)
class Layer:
    """A convolution that does the work of the batch norm after it."""

    weight: Singles  # (outputs, inputs / groups, k, k)
    bias: Singles  # (outputs,)
    stride: int  # down and across
    padding: tuple[int, int]  # rows before and after, columns likewise
    mean: Singles  # (outputs,) of what leaves the batch norm, as far as it knows
    deviation: Singles  # (outputs,) likewise, never 0

    @property
    def depthwise(self) -> bool:
        """Whether each output looks at one input only."""
        return bool(self.weight.shape[1] == 1)


@dataclass(frozen=True)
class Node:
    """A result in the graph; all but its name is needed in integers alone."""

    name: str  # of the result
    mean: Singles = field(default_factory=lambda: np.zeros(0, np.float32))  # (channels,) what is expected of it
    variance: Singles = field(default_factory=lambda: np.zeros(0, np.float32))  # (channels,) likewise
    scale: float = 1.0  # what one step of an integer is worth


class FloatGraph:
    """How the operations of the network are written into a graph."""

    def __init__(self) -> None:
        self.graph = Graph()

    def start(self) -> Node:
        """The pixels, as (x - 127) / 128."""
        pixels = self.graph.add("DequantizeLinear", _SOURCE, self.scalar(1 / 128), self.scalar(127, np.uint8))
        return Node(pixels, np.zeros(3, np.float32), scale=1 / 128)

    def weights(self, x: Node, layer: Layer) -> tuple[str, str]:
        """Weights and bias of a convolution of x, as names of constants."""
        return self.graph.constant(layer.weight), self.graph.constant(layer.bias)

    def clipped(self, x: Node, layer: Layer) -> Node:
        """What leaves a batch norm, between 0 and 6."""
        return Node(self.graph.add("Clip", x.name, self.scalar(0), self.scalar(SIX)))

    def linear(self, x: Node, layer: Layer) -> Node:
        """What leaves a batch norm, as it is."""
        return x

    def added(self, x: Node, y: Node) -> Node:
        """The sum of both."""
        return Node(self.graph.add("Add", x.name, y.name))

    def convolved(self, x: Node, layer: Layer) -> Node:
        """A convolution."""
        before, after = layer.padding
        name = self.graph.add(
            "Conv",
            x.name,
            *self.weights(x, layer),
            kernel_shape=layer.weight.shape[2:],
            strides=(layer.stride, layer.stride),
            pads=(before, before, after, after),
            group=len(layer.weight) if layer.depthwise else 1,
        )
        return Node(name)

    def scalar(self, value: float, kind: type = np.float32) -> str:
        """A constant without dimensions."""
        return self.graph.constant(np.array(value, kind))

    def file(self, x: Node, width: int) -> bytes:
        """The file of a network that takes uint8 (n, 3, 224, 224) and gives the mean of its last result (n, width)."""
        pooled = self.graph.add("Flatten", self.graph.add("GlobalAveragePool", x.name), axis=1)
        return self.graph.file(_SOURCE, (3, 224, 224), pooled, width)


class IntegerGraph(FloatGraph):
    """The same in 8 bits: every result is rounded; ONNX Runtime then computes with these."""

    def weights(self, x: Node, layer: Layer) -> tuple[str, str]:
        """Both rounded, a scale for each output channel."""
        weight, bias = layer.weight, layer.bias
        largest = np.abs(weight).max((1, 2, 3)) / 127
        scale = np.maximum(largest, np.abs(bias) / (x.scale * 2**30)).astype(np.float32)  # a bias has 32 bits
        rounded = np.round(weight / scale[:, None, None, None]).clip(-127, 127).astype(np.int8)
        error = (rounded * scale[:, None, None, None] - weight).sum((2, 3))
        bias = bias - (error[:, 0] * x.mean if layer.depthwise else error @ x.mean)
        of_bias = (scale * x.scale).astype(np.float32)
        return self._constant(rounded, scale), self._constant(np.round(bias / of_bias).astype(np.int32), of_bias)

    def clipped(self, x: Node, layer: Layer) -> Node:
        """Rounded to 256 steps from 0 to 6, with the mean of a clipped normal distribution."""
        mean, deviation = layer.mean, layer.deviation
        low, high = (edge.astype(np.float64) for edge in (-mean / deviation, (SIX - mean) / deviation))
        inside = ndtr(high) - ndtr(low)
        expected = mean * inside + deviation * (_density(low) - _density(high)) + SIX * ndtr(-high)
        scale = SIX / 255  # 0 to 255 are 0 to 6: rounding clips
        return Node(self._rounded(x.name, scale, 0), expected.astype(np.float32), scale=scale)

    def linear(self, x: Node, layer: Layer) -> Node:
        """Rounded around zero."""
        return self._around_zero(x.name, layer.mean, layer.deviation**2)

    def added(self, x: Node, y: Node) -> Node:
        """The sum of both, rounded around zero."""
        return self._around_zero(self.graph.add("Add", x.name, y.name), x.mean + y.mean, x.variance + y.variance)

    def _around_zero(self, name: str, mean: Singles, variance: Singles) -> Node:
        scale = float((np.abs(mean) + REACH * np.sqrt(variance)).max()) / 127
        return Node(self._rounded(name, scale, 128), mean, variance, scale)

    def _rounded(self, name: str, scale: float, zero: int) -> str:
        step, nothing = self.scalar(scale), self.scalar(zero, np.uint8)
        return self.graph.add("DequantizeLinear", self.graph.add("QuantizeLinear", name, step, nothing), step, nothing)

    def _constant(self, values: NDArray[Any], scale: Singles) -> str:
        """Integers that are worth `scale` each, a scale for each output channel."""
        graph = self.graph
        zeros = np.zeros(len(scale), values.dtype)
        names = (graph.constant(values), graph.constant(scale), graph.constant(zeros))
        return graph.add("DequantizeLinear", *names, axis=0)


def _density(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the standard normal distribution; `scipy.stats` has it too, and takes half a second to import."""
    return np.exp(-(x**2) / 2.0) / np.sqrt(2 * np.pi)  # type: ignore[no-any-return]
