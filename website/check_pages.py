"""Every link of the built site leads somewhere (nothing is fetched), and no Markdown is left unread."""

from __future__ import annotations

import re
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src", "iframe": "src"}
_LOADED = {"img", "script", "source", "iframe"}
_LOADED_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload"}


class _Page(HTMLParser):
    """The anchors of a page, and its links with whether following them takes a click."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors = {"", "top"}
        self.links: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors.update(filter(None, (given.get("id"), given.get("name"))))
        address = given.get(_ADDRESSES.get(tag, ""))
        if address is not None:
            relations = set((given.get("rel") or "").split())
            self.links.append((address, tag in _LOADED or bool(relations & _LOADED_RELATIONS)))


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text())
    return page


def faults(site: Path) -> list[str]:
    """What is wrong with the links of a site, one line each."""
    found = []
    for path in sorted(site.rglob("*.html")):
        for address, loaded in dict.fromkeys(_read(path).links):
            reason = _fault(site.resolve(), path.resolve(), address, loaded)
            if reason:
                found.append(f"{path.relative_to(site)}: {address}: {reason}")
    return found


def _fault(site: Path, path: Path, address: str, loaded: bool) -> str | None:
    parts = urlsplit(address)
    if parts.scheme in ("data", "javascript"):
        return None
    if parts.scheme == "mailto":
        return None if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", parts.path) else "no address of mail"
    if parts.scheme or parts.netloc:
        if loaded:
            return "the page would need the network to be shown"
        fine = parts.scheme in ("http", "https") and re.fullmatch(r"[\w.-]+\.\w+(:\d+)?", parts.netloc)
        return None if fine else "not an address"
    start = site if parts.path.startswith("/") else path.parent
    target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_relative_to(site) or not target.is_file():
        return "no such file"
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _read(target).anchors:
        return "no such anchor"
    return None


def unread_markdown(site: Path) -> list[str]:
    """Lists, tables and headings that came out as text: GitHub needs no empty line before a list, the site does."""
    found = []
    for path in sorted(site.rglob("*.html")):
        text = re.sub(r"<pre.*?</pre>", "", path.read_text(), flags=re.DOTALL)
        for paragraph in re.findall(r"<p>(.*?)</p>", text, re.DOTALL):
            line = re.search(r"^(?:- |\d+\. |\| |```|#+ ).*", paragraph, re.MULTILINE)
            if line:
                found.append(f"{path.relative_to(site)}: Markdown that is shown as text: {line[0][:60]}")
    return found


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1])) + unread_markdown(Path(sys.argv[1]))
    sys.exit("\n".join(lines) if lines else 0)
