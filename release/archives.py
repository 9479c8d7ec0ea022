"""What a wheel and a source archive hold, and what they must not."""

from __future__ import annotations

import re
import tarfile
from email import message_from_bytes
from email.message import Message
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

WHEEL_BYTES = 1_000_000
"""The code is under half of it, and weights are a package of their own: a larger wheel has caught data."""
NOT_IN_A_WHEEL = re.compile(
    r"(^|/)(tests?|results|docs|experiments|benchmarks|release|__pycache__|\.[^/]*)/"
    r"|\.(py[co]|jsonl|csv|npz|npy|parquet|safetensors|pth?|onnx|png|jpe?g|ttf|otf|so|pyd|dll)$"
)
IN_AN_SDIST = (
    *("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "constraints.txt"),
    *("src/medi/__init__.py", "tests/conftest.py", "tests/support/tiny.py", "results/render.py", "docs/discover.md"),
    *("release/check.py", ".github/workflows/test.yml"),
)


class ReleaseError(Exception):
    """Why there is no release."""


def wheel_members(path: Path) -> dict[str, str]:
    """The files of a wheel with the digests of their contents."""
    with ZipFile(path) as archive:
        return {name: sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def sdist_members(path: Path) -> set[str]:
    """The files of a source archive, below its only folder."""
    with tarfile.open(path) as archive:
        return {member.name.partition("/")[2] for member in archive if member.isfile()}


def metadata(path: Path) -> Message:
    """The metadata of a wheel."""
    with ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def check_wheel(path: Path, sources: set[str]) -> None:
    """Refuse a wheel that is too large, lacks a source file, or carries anything but code and its licence.

    Args:
        path: The wheel.
        sources: The files of the package, such as `medi/cli.py`.
    """
    size = path.stat().st_size
    if size > WHEEL_BYTES:
        raise ReleaseError(f"{path.name} has {size:,} bytes, more than {WHEEL_BYTES:,}: what has got into it?")
    members = set(wheel_members(path))
    if unwanted := sorted(name for name in members if NOT_IN_A_WHEEL.search(name)):
        raise ReleaseError(f"{path.name} carries {', '.join(unwanted[:5])}: keep data and caches out of src/medi.")
    code = {name for name in members if ".dist-info/" not in name}
    if code != sources:
        lacking, extra = sorted(sources - code)[:5], sorted(code - sources)[:5]
        raise ReleaseError(f"{path.name} is not src/medi: it lacks {lacking or 'nothing'}, adds {extra or 'nothing'}.")
    if not any(re.search(r"\.dist-info/licenses/LICENSE$", name) for name in members):
        raise ReleaseError(f"{path.name} lacks its LICENSE.")


def check_same(one: Path, other: Path) -> None:
    """Refuse two wheels that differ in any file."""
    first, second = wheel_members(one), wheel_members(other)
    if differing := sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)):
        raise ReleaseError(
            f"the wheel made from the source archive differs from that of the checkout: {', '.join(differing[:5])}."
        )


def check_sdist(path: Path) -> None:
    """Refuse a source archive that cannot build or test itself, or that carries caches."""
    members = sdist_members(path)
    if lacking := [name for name in IN_AN_SDIST if name not in members]:
        raise ReleaseError(f"{path.name} lacks {', '.join(lacking)}: see tool.hatch.build.targets.sdist.")
    if caches := sorted(name for name in members if "__pycache__" in name or name.endswith(".pyc")):
        raise ReleaseError(f"{path.name} carries {', '.join(caches[:5])}.")


def check_metadata(wheel: Path, version: str) -> Message:
    """Refuse metadata of another version, or without what an index and a lawyer look for; return it."""
    facts = metadata(wheel)
    wanted = {"Name": "medi", "Version": version, "License-Expression": "MIT", "License-File": "LICENSE"}
    for key, value in wanted.items():
        if facts[key] != value:
            raise ReleaseError(f"{wheel.name} has {key}: {facts[key]}, not {value}.")
    for key in ("Summary", "Author", "Requires-Python", "Keywords", "Description-Content-Type"):
        if not facts[key]:
            raise ReleaseError(f"{wheel.name} has no {key}.")
    return facts
