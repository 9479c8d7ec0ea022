"""Download a benchmark: checksummed, unpacked out of sight, and given its final names only when all is well."""

from __future__ import annotations

import shutil
import tarfile
import zlib
from collections.abc import Collection
from hashlib import md5
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from medi.core.errors import InputError
from medi.core.extras import imported
from medi.core.progress import Reporter
from medi.data.check import State, check
from medi.data.facts import Archive, Facts
from medi.data.store import data_folder


def fetch(facts: Facts, reporter: Reporter) -> list[Path]:
    """Download the files that are absent or damaged; whole and partial ones stay as they are.

    Returns:
        The files put in place; none if nothing was to be done.
    """
    wanted = {file.path.name for file in check(facts) if file.state in (State.ABSENT, State.DAMAGED)}
    placed: list[Path] = []
    for archive in facts.archives:
        if wanted and (archive.extract or archive.name in wanted):
            placed += _fetch_archive(facts, archive, wanted, reporter)
    return placed


def _fetch_archive(facts: Facts, archive: Archive, wanted: set[str], reporter: Reporter) -> list[Path]:
    root = data_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        # Beside its destination, so that the last step is a rename on one file system.
        with TemporaryDirectory(prefix=".fetch-", dir=root) as temporary:
            downloaded = _download(facts, archive, Path(temporary), reporter)
            arrived = _unpack(facts, downloaded, wanted) if archive.extract else [downloaded]
            return _place(arrived, root / facts.folder, wanted)
    except OSError as error:
        raise InputError(
            f"cannot write into {root}: {error.strerror or error}; "
            "free some space, or set MEDI_DATA to a folder that you may write to."
        ) from error


def _download(facts: Facts, archive: Archive, folder: Path, reporter: Reporter) -> Path:
    """The archive in `folder`, its checksum checked."""
    requests = imported("train", "requests", "medi data fetch")
    path, digest = folder / archive.name, md5(usedforsecurity=False)
    try:
        with (
            requests.get(archive.url, stream=True, timeout=30) as answer,
            path.open("wb") as file,
            reporter.track(f"{archive.name}, MB", archive.megabytes) as tick,
        ):
            answer.raise_for_status()
            for part in answer.iter_content(2**16):
                digest.update(part)
                file.write(part)
                tick(file.tell() // 10**6)
    except requests.RequestException as error:
        raise _failed(facts, archive, _network_reason(archive, error)) from error
    if digest.hexdigest() != archive.md5:
        raise _failed(facts, archive, f"what came does not have the md5 checksum {archive.md5}")
    return path


def _network_reason(archive: Archive, error: Exception) -> str:
    """What went wrong in a few words; the error's own are three layers of wrapped addresses."""
    from requests import HTTPError, Timeout

    host = urlsplit(archive.url).hostname
    if isinstance(error, HTTPError) and error.response is not None:
        return f"{host} answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, Timeout):
        return f"{host} did not answer in time"
    return f"there is no connection to {host}, or it broke off"


def _failed(facts: Facts, archive: Archive, reason: str) -> InputError:
    by_hand = f"unpack it in {data_folder()}" if archive.extract else f"put it into {data_folder() / facts.folder}"
    return InputError(
        f"download of {archive.url} failed: {reason}; "
        f"check the network and try again, or get {archive.name} by other means and {by_hand}."
    )


def _unpack(facts: Facts, downloaded: Path, wanted: set[str]) -> list[Path]:
    """The files of a tar archive, unpacked beside it; one that would write elsewhere is refused."""
    try:
        with tarfile.open(downloaded) as archive:
            _extract(archive, downloaded.parent.resolve())
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise InputError(f"{downloaded.name} cannot be unpacked: {error}; nothing of it was kept.") from error
    files = {file.name: file for file in (downloaded.parent / facts.folder).glob("*") if file.is_file()}
    if lacking := wanted - files.keys():
        raise InputError(f"{downloaded.name} lacks {', '.join(sorted(lacking))}; nothing of it was kept.")
    return list(files.values())


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack the plain files of an archive, all below a folder; `extractall(filter=…)` is not in every Python 3.11."""
    for member in archive:
        target = (folder / member.name.lstrip("/")).resolve()
        if not target.is_relative_to(folder):
            raise tarfile.TarError(f"{member.name} would be written elsewhere")
        if source := archive.extractfile(member) if member.isfile() else None:
            target.parent.mkdir(parents=True, exist_ok=True)
            with source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)


def _place(arrived: Collection[Path], folder: Path, wanted: set[str]) -> list[Path]:
    """Move what is wanted, and what was never there, to its final name."""
    folder.mkdir(exist_ok=True)
    placed = []
    for file in arrived:
        target = folder / file.name
        if file.name in wanted or not target.exists():
            placed.append(file.replace(target))
    return placed
