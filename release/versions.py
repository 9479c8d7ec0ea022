"""The version as each file has it; they must agree."""

from __future__ import annotations

import re
from pathlib import Path

from archives import ReleaseError

_RELEASE = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def package_version(root: Path) -> str:
    """Of `src/medi/__init__.py`, without importing it."""
    return _only(root / "src/medi/__init__.py", r'^__version__ = "([^"]+)"$')


def citation(root: Path) -> tuple[str, str]:
    """Version and date of `CITATION.cff`."""
    path = root / "CITATION.cff"
    return _only(path, r"^version: (\S+)$"), _only(path, r"^date-released: (\S+)$")


def changelog(root: Path) -> list[tuple[str, str]]:
    """The sections of `CHANGELOG.md`, newest first: version and date, which is empty for `Unreleased`."""
    return _RELEASE.findall((root / "CHANGELOG.md").read_text(encoding="utf-8"))


def agreed_version(root: Path, tag: str = "") -> str:
    """The version that everything names.

    Args:
        root: Of the repository.
        tag: The one that is released, such as v0.2.0; empty for none.
    """
    version = package_version(root)
    sections = changelog(root)
    if not sections or sections[0] != ("Unreleased", ""):
        raise ReleaseError("CHANGELOG.md does not begin with ## [Unreleased].")
    if len(sections) < 2 or sections[1][0] != version or not sections[1][1]:
        raise ReleaseError(f"CHANGELOG.md has no ## [{version}] - YYYY-MM-DD below [Unreleased].")
    if citation(root) != sections[1]:
        raise ReleaseError(f"CITATION.cff says {citation(root)}, CHANGELOG.md {sections[1]}.")
    if tag and tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, and the version {version}: tag v{version}.")
    return version


def _only(path: Path, pattern: str) -> str:
    found = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if len(found) != 1:
        raise ReleaseError(f"{path.name} has {len(found)} lines like {pattern}.")
    return str(found[0])
