"""What is in a page: an HTML reader that insists on well-formed nesting."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "img", "input", "br", "link"}


class Outline(HTMLParser):
    """The tags of a page in order, the text of each element, and what is wrong with it.

    Attributes:
        tags: (name, attributes) of every element, in order.
        texts: The text inside of every element, its children's included, in the same order.
        faults: What a browser would have to guess at; empty for a good page.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        self._open: list[int] = []
        self.feed(html)
        self.close()
        self.faults += [f"<{self.tags[i][0]}> is never closed" for i in self._open]
        self.faults += [f"id {name} twice" for name, times in Counter(self.ids()).items() if times > 1]
        known = set(self.ids())
        for tag, attributes in self.tags:
            wanted = [
                (attributes.get("href") or "").removeprefix("#"),
                *(attributes.get("aria-labelledby") or "").split(),
            ]
            self.faults += [
                f"<{tag}> points at {name}, which is not there" for name in wanted if name and name not in known
            ]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")
        if tag not in VOID:
            self._open.append(len(self.tags) - 1)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        if not self._open or self.tags[self._open[-1]][0] != tag:
            self.faults.append(f"</{tag}> closes nothing")
        else:
            self._open.pop()

    def handle_data(self, data):
        for i in self._open:
            self.texts[i] += data

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if attributes.get("id")]

    def find(self, tag: str = "", **wanted: str) -> list[int]:
        """Indices of elements of a name whose attributes contain these words (class_ for class)."""
        return [
            i
            for i, (name, attributes) in enumerate(self.tags)
            if (not tag or name == tag)
            and all(value in (attributes.get(key.rstrip("_")) or "").split() for key, value in wanted.items())
        ]

    def text(self, tag: str = "", **wanted: str) -> str:
        """The text of the only such element, with single spaces."""
        (found,) = self.find(tag, **wanted)
        return " ".join(self.texts[found].split())
