"""Reports of discoveries that are made up, as outlines."""

from discoveries import made_up, patterns
from outline import Outline

from medi.report.page import render

COMMAND = "medi discover --known known --novel 'my pictures' --out out"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "' onmouseover='alert(1)",
    "a\nb\tc\r\0\x1b[31m\x7f",
    "{{ 7 * 7 }}{% raw %}",
    "not utf-8 \udcff",
    "\u202egpj.exe",
    "&lt;&amp;&#39;",
    "<!--",
    "]]>",
    "日本語 🐈\u200d⬛",
    "",
]
"""Names that a page could stumble over."""


def paths_of(discovery) -> list[str]:
    return [f"album/picture {number:03}.jpg" for number in range(len(discovery.kinds))]


def html_of(discovery, thumbnails=patterns, skipped=(), command=COMMAND, facts=None) -> str:
    return render(discovery, paths_of(discovery), thumbnails, skipped, command, facts or {"Seed": "0"})


def page(discovery=None, thumbnails=patterns, **more) -> Outline:
    return Outline(html_of(discovery or made_up([4, 3]), thumbnails, **more))


def blank(numbers) -> list[bytes]:
    return [b""] * len(numbers)
