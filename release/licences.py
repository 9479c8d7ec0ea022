"""Print the licence of every package in the environment that runs this; fail where one is unknown or not permissive.

Binaries may bundle libraries under other licences than their package's: where a licence file speaks of the GPL or LGPL,
it is named.

python release/licences.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions

PERMISSIVE = re.compile(
    r"\b(MIT|MIT-CMU|BSD|Apache|ISC|PSF|PSFL|Python Software Foundation|MPL-2\.0|Mozilla Public License 2\.0|HPND|"
    r"Historical Permission|Zlib|0BSD|CC0|Unlicense|public domain|NVIDIA)\b",
    re.IGNORECASE,
)
"""Licences that ask no more than to be named; NVIDIA's come with builds of torch for its GPUs."""
COPYLEFT = re.compile(r"\b[AL]?GPL|GENERAL PUBLIC LICENSE", re.IGNORECASE)


def licence_of(package: Distribution) -> str:
    """The licence that a package states, in its metadata or else in its licence file; empty where it states none."""
    facts = package.metadata
    if stated := facts.get("License-Expression"):
        return stated
    classified = [c.rpartition(" :: ")[2] for c in facts.get_all("Classifier", []) if c.startswith("License ::")]
    if named := [name for name in classified if name != "OSI Approved"]:
        return "; ".join(named)
    text = (facts.get("License") or "").strip()
    if text in ("", "UNKNOWN"):
        text = next((text.strip() for _, text in licence_files(package)), "")
    return text.splitlines()[0][:60] if text else ""


def licence_files(package: Distribution) -> Iterator[tuple[str, str]]:
    """Names and texts of the licence files that came with a package."""
    for path in package.files or ():
        if ".dist-info" in path.parts[0] and re.search(r"licen[cs]e|copying", path.name, re.IGNORECASE):
            yield path.name, path.read_text(encoding="utf-8")


def main() -> None:
    """Print a table, and name what a person has to look at."""
    packages = sorted(distributions(), key=lambda package: package.metadata["Name"].lower())
    odd = []
    for package in packages:
        name, licence = package.metadata["Name"], licence_of(package)
        bundled = [file for file, text in licence_files(package) if COPYLEFT.search(text)]
        note = f" [GPL or LGPL in {bundled[0]}]" if bundled else ""
        print(f"{name:36} {package.version:16} {licence or 'not stated'}{note}")
        if not PERMISSIVE.search(licence):
            odd.append(name)
    if odd:
        sys.exit(f"look at the licences of {', '.join(odd)}: they are unknown, or not permissive.")


if __name__ == "__main__":
    main()
