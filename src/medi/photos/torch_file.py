"""Read the weights in a file that torch wrote before 1.6, without torch.

Such a file is five pickles and then raw numbers. A pickle can run anything, so this reader knows only the names that
such a file needs. It reads no file of a user: only one that is known to the byte (medi.photos.lite0).
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Sequence
from io import SEEK_CUR, BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]
_KINDS = {"FloatStorage": np.dtype("<f4"), "LongStorage": np.dtype("<i8")}


def read_weights(content: bytes) -> dict[str, _Array]:
    """The arrays of a file by their names; `pickle.UnpicklingError` where it needs a name that is not allowed."""
    file, storages = BytesIO(content), dict[str, _Array]()
    for _ in ("magic number", "version", "sizes of numbers"):
        _Reader(file, storages).load()
    weights = _Reader(file, storages).load()
    for key in _Reader(file, storages).load():
        storage = storages[key]
        file.seek(8, SEEK_CUR)  # how many there are is known already
        storage[:] = np.frombuffer(file.read(storage.nbytes), storage.dtype)
    return {name: array.copy("C") for name, array in weights.items()}


class _Reader(pickle.Unpickler):
    """Makes views of storages; their numbers follow in the file."""

    def __init__(self, file: BytesIO, storages: dict[str, _Array]) -> None:
        super().__init__(file)
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        """One of the allowed names, and nothing else."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _array
        if module == "torch" and name in _KINDS:
            return _KINDS[name]
        raise pickle.UnpicklingError(f"{module}.{name} is not read from a file of weights")

    def persistent_load(self, pid: Any) -> _Array:
        """The numbers that one or more arrays are parts of."""
        _, kind, key, _, count, _ = pid
        return self._storages.setdefault(key, np.zeros(count, kind))


def _array(storage: _Array, offset: int, shape: Sequence[int], strides: Sequence[int], *_: object) -> _Array:
    size = storage.itemsize  # numpy itself refuses what lies outside
    return np.ndarray(shape, storage.dtype, storage, offset * size, [step * size for step in strides])
