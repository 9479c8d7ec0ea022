"""Errors that are the input's fault, and the hints that come with them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MOST_NAMES = 30
"""More names than these are not listed: a search has hundreds of candidates."""


class InputError(Exception):
    """The input is at fault: one line that names the culprit and the cure.

    The command line prints the message without a traceback and exits with 2.
    """


class LostError(Exception):
    """A part of the job was lost (another process, a machine): one line that says what is kept and how to go on.

    Nobody's input is at fault; the command line prints the message without a traceback and exits with 1.
    """


def unknown_name(kind: str, name: str, names: Iterable[str]) -> InputError:
    """An error for a name that is not in a table, suggesting the nearest one that is."""
    known = sorted(names)
    close = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "choose one of them."
    shown = known
    if len(known) > MOST_NAMES:  # then a few that are like it say more than the first of the alphabet
        near = get_close_matches(name.lower(), known, n=5, cutoff=0.4) if close else known[:MOST_NAMES]
        shown = [*near, f"… ({len(known)} in all)"]
    return InputError(f"unknown {kind} '{name}': there is {', '.join(shown)}; {hint}")
