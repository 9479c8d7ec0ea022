"""What commands print on stdout and stderr, for people and for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from typing import Any

from rich.console import Console


def say(console: Console, line: str) -> None:
    """Print one line as it is: not wrapped, coloured or interpreted as markup."""
    console.print(line, soft_wrap=True, highlight=False, markup=False)


def printable(text: str) -> str:
    """Without line breaks and control characters: file names may hold anything."""
    return "".join(c if c.isprintable() else "?" for c in text)


def strict_json(document: Any) -> str:
    """As JSON that any program reads: ASCII, because names may hold what UTF-8 cannot; null for NaN and infinity."""
    return json.dumps(plain(document), indent=1, allow_nan=False)


def plain(value: Any) -> Any:
    """The same as JSON can hold it: NaN and infinities as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def printing_aside(aside: bool) -> AbstractContextManager[object]:
    """Where `aside`, whatever is printed meanwhile goes to stderr: stdout is for one JSON document and nothing else.

    A user's own method may print, and so may libraries.
    """
    return redirect_stdout(sys.stderr) if aside else nullcontext()
