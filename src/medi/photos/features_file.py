"""Features that were made elsewhere and come in a file, in the place of an encoder.

An .npz file holds the arrays `path` (n,) and `vector` (n, d), a .parquet file columns of these names. A path is
absolute, or relative to the folder in which the photo is looked for. Photos are not decoded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn
from zipfile import is_zipfile

import numpy as np
import numpy.typing as npt

from medi.core.arrays import Singles
from medi.core.errors import InputError, reason_of
from medi.core.progress import Reporter
from medi.core.reading import open_file
from medi.core.system import portable
from medi.jobs import ranks
from medi.photos.decode import Cut, UnreadableError, decoding, read_photo
from medi.photos.encode_folder import SHARD, EncodedPhotos
from medi.photos.encoders import Encoder
from medi.photos.folders import Found, Skipped

OLDEST_PYARROW = 15
"""Versions before 14.0.1 unpickle what a file may hold."""


@dataclass(frozen=True)
class Source:
    """A file that features came from: its name, and its SHA-256 in hexadecimal."""

    file: str
    sha256: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Features(Encoder):
    """Vectors found by the path of a photo; nothing is computed."""

    sources: tuple[Source, ...]
    vectors: Singles  # (n, d) float32; none where only the kind of the features is known, as in a saved model
    rows: Mapping[str, int]  # from a path, as the files have it, to its row

    @classmethod
    def of(cls, sources: Sequence[Source], vectors: Singles, rows: Mapping[str, int]) -> Features:
        """Vectors that were read from files."""
        digest = sha256("".join(source.sha256 for source in sources).encode()).hexdigest()
        return cls(
            name=", ".join(source.file for source in sources),
            identity=f"features-{digest[:16]}",
            cut=Cut(1),
            shape=tuple(vectors.shape[1:]),
            encode=_not_computed,
            sources=tuple(sources),
            vectors=vectors,
            rows=rows,
        )

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Features:
        """What `facts` told, without vectors; KeyError, TypeError or ValueError where it is damaged."""
        sources = [Source(str(source["file"]), str(source["sha256"])) for source in facts["sources"]]
        return cls.of(sources, np.zeros((0, int(facts["dimension"])), np.float32), {})

    def facts(self) -> dict[str, Any]:
        """Where they came from, for JSON."""
        return {"dimension": self.shape[0], "sources": [asdict(source) for source in self.sources]}

    def describe(self) -> str:
        """Where they came from, for people."""
        files = ", ".join(f"{source.file} with SHA-256 {source.sha256[:16]}…" for source in self.sources)
        return f"made elsewhere ({self.shape[0]} numbers a photo in {files})"

    def check(self, *folders: Found) -> None:
        """Refuse photos without a vector, unless they cannot be read anyway, and a vector that would serve for two."""
        owner: dict[int, Path] = {}
        for found in folders:
            paired = list(zip(found.paths, self._rows(found.root, found.paths), strict=True))
            missing = [found.root / path for path, row in paired if row is None]
            with decoding():
                first = next((number for number, path in enumerate(missing) if not _fault(path)), None)
            if first is not None:
                raise InputError(
                    f"no vector in {self.name} for {missing[first]}{_more(len(missing) - first - 1)}: paths there are "
                    f"absolute or relative to the folder of photos (the first one is {next(iter(self.rows))})."
                )
            own = {row: found.root / path for path, row in paired if row is not None}
            if shared := sorted(owner.keys() & own.keys()):
                both = f"{owner[shared[0]]} and {own[shared[0]]}"
                raise InputError(f"one path in {self.name} would mean {both}: give these two as absolute paths there.")
            owner |= own

    def read(self, found: Found, reporter: Reporter, *, title: str) -> EncodedPhotos:
        """The vectors of photos that `check` has seen; what has none or cannot be opened is listed with the reason."""
        return EncodedPhotos.joined(self.shards(found, reporter, title=title), len(found.paths), self)

    def shards(self, found: Found, reporter: Reporter, *, title: str) -> Iterator[EncodedPhotos]:
        """The same, a shard at a time."""
        root, paths = found.root, found.paths
        with decoding(), reporter.track(title, len(paths)) as tick, ThreadPoolExecutor() as pool:
            for start in range(0, len(paths), SHARD):
                names = paths[start : start + SHARD]
                rows = self._rows(root, names)
                looked = list(pool.map(partial(_look, root), names, rows))
                together = zip(names, rows, looked, strict=True)
                used = [(name, row, seen) for name, row, seen in together if isinstance(seen, bytes)]
                yield EncodedPhotos(
                    self.vectors[np.array([row for _, row, _ in used], np.int64)],
                    [name for name, _, _ in used],
                    [digest for _, _, digest in used],
                    [seen for seen in looked if isinstance(seen, Skipped)],
                )
                tick(start + len(names))

    def _rows(self, root: Path, paths: Sequence[str]) -> list[int | None]:
        """The row of each photo; an absolute path counts before a relative one, which may mean another folder."""
        folders = dict.fromkeys((portable(f"{root.absolute()}/"), portable(f"{root.resolve()}/"), ""))
        return [next((self.rows[way + path] for way in folders if way + path in self.rows), None) for path in paths]


def read_features(files: Sequence[Path], ray: str | None = None) -> Features:
    """The vectors of all .npz and .parquet files together; whatever is wrong with them is an error that names the file.

    What `--ray` was given is refused, like torchrun, because there is nothing to share.
    """
    if ray is not None or ranks.asked_for() > 1:
        raise InputError("torchrun and --ray share the work of an encoder, and --features needs none: leave them out.")
    tables = [_read_table(file) for file in files]
    for file, (_, vectors) in zip(files, tables, strict=True):
        if vectors.shape[1] != (expected := tables[0][1].shape[1]):
            lengths = f"{vectors.shape[1]}, but {files[0]} of length {expected}"
            raise InputError(f"--features {file} has vectors of length {lengths}: make them in the same way.")
    sources = [Source(file.name, _digest(file).hex()) for file in files]
    vectors = tables[0][1] if len(tables) == 1 else np.concatenate([vectors for _, vectors in tables])
    rows: dict[str, int] = {}
    for row, path in enumerate(chain.from_iterable(paths for paths, _ in tables)):
        if (first := rows.setdefault(path, row)) != row and not np.array_equal(vectors[first], vectors[row]):
            raise InputError(
                f"--features {', '.join(map(str, files))}: two different vectors for {path}; keep one, or give "
                "absolute paths if they are two photos."
            )
    return Features.of(sources, vectors, rows)


def _read_table(file: Path) -> tuple[list[str], Singles]:
    """Paths and finite vectors (n, d) of one file, n and d at least 1."""
    read = {".npz": _read_npz, ".parquet": _read_parquet}.get(file.suffix.lower())
    if read is None:
        raise InputError(f"--features {file}: give an .npz or a .parquet file.")
    try:
        paths, vectors = read(file)
    except InputError:
        raise
    except Exception as error:  # a broken file makes zipfile, numpy and pyarrow raise almost anything
        if isinstance(error, ValueError) and "allow_pickle" in str(error):
            raise InputError(
                f"--features {file} holds Python objects, which are never loaded: save `path` as np.array(paths, "
                "dtype=str) and `vector` as np.array(vectors, dtype=np.float32)."
            ) from error
        raise InputError(f"--features {file} cannot be read ({reason_of(error)}): give another file.") from error
    if not vectors.size:
        raise InputError(f"--features {file} has no vectors: make it again.")
    finite = np.isfinite(vectors).all(1)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        where = f"{paths[bad[0]]}{_more(len(bad) - 1)}"
        raise InputError(f"--features {file}: NaN or infinite numbers in the vector of {where}; make it again.")
    return paths, vectors


def _read_npz(file: Path) -> tuple[list[str], Singles]:
    with open_file(file) as content:
        if not is_zipfile(content):
            raise _unfit(file, "is not made by np.savez")
        content.seek(0)
        with np.load(content, allow_pickle=False) as arrays:
            if not {"path", "vector"} <= set(arrays.files):
                raise _unfit(file, f"has {', '.join(arrays.files) or 'nothing'}")
            paths, vectors = arrays["path"], arrays["vector"]
    if not isinstance(paths, np.ndarray) or paths.ndim != 1 or paths.dtype.kind not in "US":
        raise _unfit(file, "has a `path` that is not a list of strings")
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise _unfit(file, "has a `vector` that is not a table of numbers")
    if len(paths) != len(vectors):
        raise _unfit(file, f"has {len(paths)} paths and {len(vectors)} vectors")
    return [_path(path) for path in paths.tolist()], np.ascontiguousarray(_singles(file, vectors))


def _read_parquet(file: Path) -> tuple[list[str], Singles]:
    """A batch at a time, so that memory holds the vectors only once."""
    try:
        import pyarrow
        from pyarrow import compute, parquet

        if int(pyarrow.__version__.split(".")[0]) < OLDEST_PYARROW:
            raise ImportError(f"pyarrow {pyarrow.__version__}")
    except ImportError as error:
        raise InputError(f"--features {file} needs pyarrow: pip install --upgrade 'medi[parquet]'.") from error
    paths: list[str] = []
    vectors = np.zeros((0, 0), np.float32)
    with open_file(file) as content, parquet.ParquetFile(content, pre_buffer=False, buffer_size=2**20) as table:
        kinds = {field.name: field.type for field in table.schema_arrow}
        if not {"path", "vector"} <= kinds.keys():
            raise _unfit(file, f"has {', '.join(kinds) or 'nothing'}")
        number = getattr(kinds["vector"], "value_type", None)
        if number is None or not (pyarrow.types.is_floating(number) or pyarrow.types.is_integer(number)):
            raise _unfit(file, f"has a `vector` that is a column of {kinds['vector']}")
        for batch in table.iter_batches(1024, use_threads=False, columns=["path", "vector"]):
            column, names = batch.column("vector"), batch.column("path").to_pylist()
            if not all(isinstance(name, str | bytes) for name in names):
                raise _unfit(file, "has a `path` that is not text")
            lengths = compute.unique(compute.list_value_length(column)).to_pylist()
            if not paths and lengths:
                vectors = np.empty((table.metadata.num_rows, lengths[0] or 0), np.float32)
            values = column.flatten()
            if column.null_count or values.null_count or any(length != vectors.shape[1] for length in lengths):
                raise _unfit(file, "has vectors of different lengths, or with gaps")
            rows = slice(len(paths), len(paths) + len(names))
            numbers = values.to_numpy(zero_copy_only=False).reshape(len(names), vectors.shape[1])
            vectors[rows] = _singles(file, numbers)
            paths += map(_path, names)
    return paths, vectors


def _singles(file: Path, vectors: npt.NDArray[Any]) -> Singles:
    """Vectors (n, d) as float32; refused where they all become the same, as numbers of 1e-160 or about 1e10 do."""
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
        singles = vectors.astype(np.float32)
    if len(vectors) and (vectors != vectors[0]).any() and (singles == singles[0]).all():
        raise InputError(
            f"--features {file}: vectors differ by less than 32-bit floats can hold; subtract their mean, and divide "
            "them by their usual size."
        )
    return singles


def _path(name: str | bytes) -> str:
    return portable(os.fsdecode(name))


def _unfit(file: Path, what: str) -> InputError:
    return InputError(f"--features {file} {what}: it needs `path`, n strings, and `vector`, n lists of d numbers.")


def _more(others: int) -> str:
    return f" and {others} more" if others else ""


def _look(root: Path, path: str, row: int | None) -> bytes | Skipped:
    """The digest of a photo's content, or why it is left out."""
    if row is None:
        return Skipped(path, _fault(root / path) or "without a vector")
    try:
        return _digest(root / path)
    except OSError as error:
        return Skipped(path, reason_of(error))


def _fault(photo: Path) -> str:
    """Why a photo cannot be read; empty where it can."""
    try:
        with open_file(photo) as file:
            read_photo(file, Cut(1))
    except (UnreadableError, OSError) as error:
        return reason_of(error)
    return ""


def _digest(path: Path) -> bytes:
    with open_file(path) as file:
        return file_digest(file, "sha256").digest()


def _not_computed(images: npt.NDArray[np.uint8]) -> NoReturn:
    raise RuntimeError("features from a file are found, not computed")
