"""Print the licence of every package in the environment that runs this; fail where one is unknown or not permissive.

python release/licences.py
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions

PERMISSIVE = re.compile(
    r"\b(MIT|MIT-CMU|BSD|Apache|ISC|PSF|PSFL|Python Software Foundation|MPL-2\.0|Mozilla Public License 2\.0|HPND|"
    r"Historical Permission|Zlib|0BSD|CC0|Unlicense|public domain|NVIDIA|Matplotlib)\b",
    re.IGNORECASE,
)
"""Licences that ask no more than to be named; NVIDIA's come with builds of torch for its GPUs."""
STATED_ELSEWHERE = {"efficientnet-lite-pytorch": "Apache-2.0"}
"""Licences that a project states in its repository, not in its metadata."""


def licence_of(package: Distribution) -> str:
    """The licence that a package's metadata states, in a few words; empty where it states none."""
    facts = package.metadata
    if stated := facts.get("License-Expression"):
        return stated
    classified = [c.rpartition(" :: ")[2] for c in facts.get_all("Classifier", []) if c.startswith("License ::")]
    if named := [name for name in classified if name != "OSI Approved"]:
        return "; ".join(named)
    text = (facts.get("License") or "").strip()
    return text.splitlines()[0][:60] if text else STATED_ELSEWHERE.get(facts["Name"], "")


def main() -> None:
    """Print a table, and name what a person has to look at."""
    rows = sorted((p.metadata["Name"].lower(), p.version, licence_of(p)) for p in distributions())
    for name, version, licence in rows:
        print(f"{name:36} {version:16} {licence or 'not stated'}")
    odd = [name for name, _, licence in rows if not PERMISSIVE.search(licence)]
    if odd:
        sys.exit(f"look at the licences of {', '.join(odd)}: they are unknown, or not permissive.")


if __name__ == "__main__":
    main()
