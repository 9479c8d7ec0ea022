"""Photos change places all together or not at all, whatever stops the program.

The file `transfer` is on the disk before the first photo is touched, and goes when the last one is in its place. The
line of `review.jsonl` that it names decides: where that is written the transfer is finished, otherwise it is taken
back. No file is deleted unless the same content is in another place.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, NamedTuple

from medi.core.errors import InputError
from medi.core.files import read_journal, remove_leftovers, write_atomically
from medi.core.reading import input_errors, open_file, read_file
from medi.core.system import rename_to_new, sync_folder
from medi.discover.accepted import ACCEPTED, write_accepted
from medi.discover.output import REVIEW

TRANSFER = "transfer"
"""A digest of what follows, and a `Transfer` as JSON."""
BYTES_AT_ONCE = 2**20


class Copy(NamedTuple):
    """One content in two places."""

    source: str
    target: str
    sha256: str


@dataclass(frozen=True)
class Transfer:
    """What shall become of photos.

    Attributes:
        seq: Number of the line of `review.jsonl` that decides.
        discovery: Digest of the discovery that the line belongs to.
        copies: From where to where; nothing is there yet.
        drops: Each source is deleted in the end, where its target has the content.
        makes: Folders that are made for the copies, the outermost first.
        leaves: Folders that are deleted in the end where they are empty, the innermost first.
        accepted: What `accepted.json` holds in the end.
    """

    seq: int
    discovery: str
    copies: Sequence[Copy]
    drops: Sequence[Copy]
    makes: Sequence[str]
    leaves: Sequence[str]
    accepted: Mapping[str, Any]


@contextmanager
def transferring(out: Path, transfer: Transfer) -> Iterator[None]:
    """Make the copies, let the block write the line that decides, and finish, or take back what was begun."""
    settle(out)
    content = json.dumps(asdict(transfer)).encode()
    write_atomically(out / TRANSFER, sha256(content).hexdigest().encode() + b"\n" + content)
    try:
        for folder in map(Path, transfer.makes):
            with input_errors(folder, "create the folder"):
                folder.mkdir(exist_ok=True)
        for copy in transfer.copies:
            _make(copy)
        _sync(transfer)
        yield
    finally:
        settle(out)


def settle(out: Path) -> bool:
    """Finish a transfer that was stopped, or take it back, before anything is done in an output folder.

    Returns:
        Whether there was one.
    """
    path = out / TRANSFER
    for name in (TRANSFER, ACCEPTED):
        remove_leftovers(out, name)
    if not path.exists():
        return False
    with input_errors(path, "read"):
        digest, _, content = read_file(path).partition(b"\n")
    if sha256(content).hexdigest().encode() != digest:
        raise InputError(f"{path} is damaged: look whether photos are missing or twice, then delete it.")
    transfer = Transfer(**json.loads(content))
    copies, drops = [Copy(*copy) for copy in transfer.copies], [Copy(*drop) for drop in transfer.drops]
    own = (line["seq"] for line in read_journal(out / REVIEW) if line["discovery"] == transfer.discovery)
    if transfer.seq in own:
        for drop in drops:
            _drop(Path(drop.source), Path(drop.target), drop.sha256)
        _remove_empty(transfer.leaves)
        write_accepted(out / ACCEPTED, transfer.accepted)
    else:
        for copy in copies:
            with input_errors(Path(copy.target), "delete"):
                _unfinished(copy).unlink(missing_ok=True)
            _drop(Path(copy.target), Path(copy.source), copy.sha256)
        _remove_empty(reversed(transfer.makes))
    _sync(transfer)
    with input_errors(path, "delete"):
        path.unlink()
        sync_folder(out)
    return True


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content."""
    with input_errors(path, "read"), open_file(path) as file:
        return file_digest(file, "sha256").hexdigest()


def holds(path: Path, digest: str) -> bool:
    """Whether a file is there and has some content."""
    return path.is_file() and digest_of(path) == digest


def missing_folders(folders: Iterable[Path]) -> list[str]:
    """Folders that have to be made, the outermost first."""
    missing = {one for folder in folders for one in (folder, *folder.parents) if not one.exists()}
    return [str(folder) for folder in sorted(missing, key=lambda folder: (len(folder.parts), folder))]


def _make(copy: Copy) -> None:
    """Copy a file under another name, and give it its own when all of it is on the disk."""
    source, target, partial, digest = Path(copy.source), Path(copy.target), _unfinished(copy), sha256()
    with input_errors(target, "write"), open_file(source) as read:
        with partial.open("wb") as written:
            while chunk := read.read(BYTES_AT_ONCE):
                digest.update(chunk)
                written.write(chunk)
            written.flush()
            os.fsync(written.fileno())
        if digest.hexdigest() != copy.sha256:
            raise InputError(f"{source} changed while it was copied: try again.")
        with suppress(OSError):
            shutil.copystat(source, partial)
        rename_to_new(partial, target)


def _unfinished(copy: Copy) -> Path:
    return Path(copy.target).with_name(f".medi-{copy.sha256[:16]}.tmp")


def _drop(path: Path, twin: Path, digest: str) -> None:
    """Delete a file, unless it is the last of its content, or another one by now."""
    with input_errors(path, "delete"):
        if holds(path, digest) and holds(twin, digest) and not path.samefile(twin):
            path.unlink()


def _remove_empty(folders: Iterable[str]) -> None:
    for folder in map(Path, folders):
        with input_errors(folder, "delete"):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def _sync(transfer: Transfer) -> None:
    """Make what was created, renamed and deleted durable."""
    places = [*(copy[1] for copy in transfer.copies), *(drop[0] for drop in transfer.drops), *transfer.makes]
    for folder in {Path(place).parent for place in places}:
        if folder.is_dir():
            with input_errors(folder, "write"):
                sync_folder(folder)
