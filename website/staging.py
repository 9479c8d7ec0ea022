"""The folder the site is built from: README.md, docs/, and every file of the repository that these pages link to.

Pages keep links that work where they are read in the repository (`../results/mp/table.md`, `../CONTRIBUTING.md`).
On the site docs/ is the root, so files from elsewhere are copied below it and links are rewritten on the way.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|/")


class MissingFile(Exception):
    """A page links to a file that is not there."""


def stage(into: Path) -> None:
    """Write the folder anew, with everything that can be reached from README.md and docs/."""
    shutil.rmtree(into, ignore_errors=True)
    waiting = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*") if path.is_file())]
    seen = set(waiting)
    while waiting:
        source = waiting.pop()
        target = into / place(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text, linked = rewritten(source)
            if not text.startswith("# "):  # tables that are made from rows have no title
                text = f"# {source.relative_to(ROOT)}\n\n{text}"
            target.write_text(text)
            waiting.extend(file for file in linked if file not in seen)
            seen.update(linked)
        elif source.suffix == ".py":
            target.write_text(
                f"# {source.name}\n\n`{source.relative_to(ROOT)}`\n\n````python\n{source.read_text()}````\n"
            )
        else:
            shutil.copyfile(source, target)


def place(source: Path) -> PurePosixPath:
    """Where a file of the repository is on the site, relative to its root; code is shown on a page."""
    inside = PurePosixPath(source.relative_to(DOCS if source.is_relative_to(DOCS) else ROOT))
    if inside == PurePosixPath("README.md"):
        return PurePosixPath("index.md")
    return inside.with_suffix(".md") if inside.suffix == ".py" else inside


def rewritten(page: Path) -> tuple[str, set[Path]]:
    """A page with the site's links, and the files that it links to; code blocks stay as they are."""
    linked: set[Path] = set()

    def link(match: re.Match[str]) -> str:
        before, address, after = match.groups()
        if _ELSEWHERE.match(address):
            return match[0]
        path, mark, anchor = address.partition("#")
        file = Path(os.path.normpath(page.parent / path))
        if not file.is_file() or not file.is_relative_to(ROOT):
            raise MissingFile(f"{page.relative_to(ROOT)}: no file {address}")
        linked.add(file)
        return before + os.path.relpath(place(file), place(page).parent) + mark + anchor + after

    text, parts, end = page.read_text(), [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(link, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(link, text[end:])]), linked
