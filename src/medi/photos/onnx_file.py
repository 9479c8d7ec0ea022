"""Write ONNX files: as much of the format as a convolutional network needs, without the package `onnx`.

An ONNX file is a protocol buffer (onnx.proto3). The first argument of `_number`, `_bytes` and `_text` is the number of
a field there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION, OPSET = 8, 13
"""Of ONNX 1.8 to 1.12: every ONNX Runtime of the last years reads them."""

_TYPES: Mapping[Any, int] = {np.float32: 1, np.uint8: 2, np.int8: 3, np.int32: 6}

Attribute = int | Sequence[int]


class Graph:
    """A network under construction: every method returns the name of its result."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, values: NDArray[Any]) -> str:
        """An array that is part of the file."""
        name = f"constant{len(self._constants)}"
        array = np.ascontiguousarray(values)
        content = b"".join(_number(1, size) for size in values.shape) + _number(2, _TYPES[array.dtype.type])
        self._constants.append(_bytes(5, content + _text(8, name) + _bytes(9, array.tobytes())))
        return name

    def add(self, operation: str, *inputs: str, **attributes: Attribute) -> str:
        """The result of an operation of ONNX on earlier results."""
        name = f"result{len(self._nodes)}"
        content = b"".join(_text(1, one) for one in inputs) + _text(2, name) + _text(4, operation)
        content += b"".join(_bytes(5, _attribute(key, value)) for key, value in attributes.items())
        self._nodes.append(_bytes(1, content))
        return name

    def file(self, source: str, shape: Sequence[int], result: str, size: int) -> bytes:
        """The file of a network from uint8 (n, *shape), named `source`, to float32 (n, size), named `result`."""
        graph = b"".join(self._nodes) + _text(2, "network") + b"".join(self._constants)
        graph += _bytes(11, _tensor(source, np.uint8, shape)) + _bytes(12, _tensor(result, np.float32, [size]))
        return _number(1, IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, OPSET))


def _tensor(name: str, kind: type, shape: Sequence[int]) -> bytes:
    """Name, type and shape of a batch."""
    sizes = _bytes(1, _text(2, "n")) + b"".join(_bytes(1, _number(1, size)) for size in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, _TYPES[kind]) + _bytes(2, sizes)))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, 7)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the highest bit set."""
    low = []
    while value > 127:
        low.append(value & 127 | 128)
        value >>= 7
    return bytes([*low, value])
