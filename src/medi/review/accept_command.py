"""`medi accept`: groups by number and name, without the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from medi.errors import InputError
from medi.review.accept import folder_name
from medi.review.requests import RefusedError, name_of
from medi.review.session import Review, opened


def run_accept(path: Path, into: Path, specifications: Sequence[str], *, move: bool) -> list[str]:
    """Name and merge groups where that is asked for, accept them, and say what was done, a line a class.

    Args:
        path: The folder that `medi discover` wrote.
        into: The folder of known classes.
        specifications: Such as `8+9=celosia`; none for all groups that have a name.
        move: Take the photos out of the pool.
    """
    wanted = [_parsed(text) for text in specifications]
    twice = [group for group, count in Counter(g for groups, _ in wanted for g in groups).items() if count > 1]
    if twice:
        raise InputError(f"group {twice[0]} is named twice: give each group once.")
    with opened(path, learning=False) as review:
        state = review.history.state
        for group in (g for groups, _ in wanted for g in groups):
            if group not in state.members:
                has = ", ".join(map(str, state.members)) or "none"
                raise InputError(f"{path} has no group {group}: its groups are {has}.")
        if not wanted and not state.names and not state.marked:
            raise InputError(f"no group of {path} has a name: name some with `medi review {path}`, or say 2=NAME.")
        try:
            chosen = [_named(review, groups, name) for groups, name in wanted] or None
            done = review.accept(chosen, into, move=move)
        except RefusedError as error:
            raise InputError(str(error)) from error
    counts = Counter(done.names.values())
    verb = "moved" if move else "copied"
    return [f"{count} photo{'s' * (count != 1)} {verb} to {into / name}" for name, count in sorted(counts.items())]


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


def _named(review: Review, groups: list[int], name: str) -> int:
    """Merge and name groups in the journal, where they are not so already."""
    if len(groups) > 1:
        review.act({"seq": review.history.seq, "action": "merge", "groups": groups})
    group = next(group for group in groups if group in review.history.state.members)
    if review.history.state.names.get(group) != name:
        review.act({"seq": review.history.seq, "action": "name", "group": group, "name": name})
    return group
