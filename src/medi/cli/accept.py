"""`medi accept`: groups by number and name, without the page, or through it where it is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from medi.core.errors import InputError
from medi.core.files import InUseError
from medi.review.accept import folder_name
from medi.review.acceptance import Accepted, Wish, accept_named
from medi.review.actions import RefusedError, name_of
from medi.review.open_page import through_page
from medi.review.session import opened


def run_accept(
    path: Path, into: Path, specifications: Sequence[str], *, move: bool = False, doubtful: bool = False
) -> Accepted:
    """Name and merge groups as specifications such as `8+9=celosia` say; without any, accept all that have a name."""
    groups = [_parsed(text) for text in specifications]
    twice = [group for group, count in Counter(g for numbers, _ in groups for g in numbers).items() if count > 1]
    if twice:
        raise InputError(f"group {twice[0]} is named twice: give each group once.")
    wish = Wish(groups, into.absolute(), move, doubtful)
    try:
        with opened(path, "medi accept", learning=False) as review:
            return accept_named(review, wish)
    except RefusedError as error:
        raise InputError(str(error)) from error
    except InUseError as error:
        accepted = through_page(path, wish)
        if accepted is None:
            raise error
        return accepted


def in_words(accepted: Accepted, path: Path, into: Path, *, move: bool) -> list[str]:
    """What was done, a line a class, and what was not."""
    verb = "moved" if move else "copied"
    lines = [f"{_photos(count)} {verb} to {into / name}" for name, count in sorted(accepted.now.items())]
    if accepted.before and not accepted.now:
        lines.append(f"Nothing is new: {_photos(accepted.before)} had been accepted before.")
    lines += [f"{photo} was left out: the same photo is {place}." for photo, place in accepted.elsewhere]
    if accepted.doubtful:
        left = f"{_photos(accepted.doubtful, 'doubtful ')} left out: look with `medi review {path}`, or add --doubtful."
        lines.append(left)
    return lines


def _photos(count: int, kind: str = "") -> str:
    return f"{count} {kind}photo{'s' * (count != 1)}"


def _parsed(text: str) -> tuple[list[int], str]:
    """`8+9=celosia` as ([8, 9], "celosia")."""
    numbers, equals, name = text.partition("=")
    groups = [part.strip() for part in numbers.split("+")]
    if not equals or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in groups):
        raise InputError(f"“{text}” names no group: write 2=NAME, or 8+9=NAME to merge two.")
    try:
        return list(dict.fromkeys(map(int, groups))), folder_name(name_of(name))
    except RefusedError as error:
        raise InputError(f"“{text[:60]}” names no group: {error}") from error
