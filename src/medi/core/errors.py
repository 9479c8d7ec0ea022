"""Errors that are the input's fault, the hints that come with them, and how commands end: exit codes, last words."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import IntEnum

ALL_NAMES = 10
"""So many names are all listed in an error; of more names only the nearest."""
NEAR_NAMES = 5
STOPPED = "medi: stopped; what was finished is kept: repeat the command to go on (`medi bench`: with --resume)."


class Exit(IntEnum):
    """Exit codes of every command (docs/programs.md)."""

    DONE = 0
    FAILED = 1
    """A part was lost, a repeated result differs, or the program is at fault (then with a traceback)."""
    INPUT = 2
    STOPPED = 130
    """Ctrl-C; 128 and the number of the signal, as shells have it."""
    CLOSED_PIPE = 141
    """Whoever read the output went away; 128 and the number of SIGPIPE."""


class InputError(Exception):
    """The input is at fault: one line that names the culprit and the cure.

    The command line prints the message without a traceback and exits with 2.
    """


class LostError(Exception):
    """A part of the job was lost (another process, a machine): one line that says what is kept and how to go on.

    Nobody's input is at fault; the command line prints the message without a traceback and exits with 1.
    """


def reason_of(error: BaseException) -> str:
    """What the system, or another library, says of a fault: as part of a line."""
    text = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
    if error.args and isinstance(error.args[0], bytes):  # LibRaw's
        text = error.args[0].decode(errors="replace")
    return " ".join(text.split())[:200].rstrip(".:") or type(error).__name__


def refuse_unknown(kind: str, name: str, names: Collection[str]) -> None:
    """Refuse a name that is not among these, and suggest the nearest."""
    if name not in names:
        raise unknown_name(kind, name, names)


def unknown_name(kind: str, name: str, names: Iterable[str]) -> InputError:
    """An error for a name that is not in a table, suggesting the nearest one that is."""
    from difflib import get_close_matches

    known = sorted(names)
    by_small_letters = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_small_letters, n=1)
    hint = f"did you mean '{by_small_letters[close[0]]}'?" if close else "choose one of them."
    shown = known
    if len(known) > ALL_NAMES:
        near = get_close_matches(name.lower(), by_small_letters, n=NEAR_NAMES, cutoff=0)
        shown = [*(by_small_letters[one] for one in near), f"… ({len(known)} in all)"]
    return InputError(f"unknown {kind} '{name}': there is {', '.join(shown) or 'none'}; {hint if known else 'add it.'}")
