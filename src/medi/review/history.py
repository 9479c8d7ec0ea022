"""The journal of a review: every line is checked when it is read; those in force make the state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from medi.core.errors import InputError
from medi.core.files import Journal
from medi.review.discovery_folder import Folder, Start
from medi.review.state import ReviewState, apply
from medi.schemas import fault, schema

UNDO, REDO = "undo", "redo"
OWN = "discovery"
"""The key of a line that holds the digest of the discovery that it belongs to."""
KEPT_STATES = 64
"""Recent states kept in memory, so that undoing is immediate; older ones are replayed."""


def numbered(seq: int, start: Start, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the journal."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"seq": seq, "at": at, **facts, OWN: start.digest}


class History:
    """The lines of a journal: which are in force, which were undone, and the state they make.

    Attributes:
        journal: The file with all of them.
        seq: Number of the last line.
        done: Lines in force.
        undone: Lines that can be redone, the next one last.
        state: What the lines in force make.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder, self.journal = folder, Journal(folder.journal)
        self.seq = 0
        self.done: list[Mapping[str, Any]] = []
        self.undone: list[Mapping[str, Any]] = []
        for line in self.journal.rows:
            if line.get(OWN) != folder.start.digest:
                raise InputError(
                    f"{folder.journal} belongs to another discovery than the clusters.csv beside it: move it away."
                )
            with self._damage(self.seq + 1):
                if (place := fault(rule(len(folder.start)), line)) is not None:
                    raise ValueError(f"{place or 'it'} is not as `medi schema review` has it")
                self._take(line)
        self.state = state = ReviewState.of(folder.start)
        for step, line in enumerate((*self.done, *reversed(self.undone)), 1):  # what can be redone, too
            with self._damage(line["seq"]):
                state = _consistent(apply(state, line["effect"]))
            if step == len(self.done):
                self.state = state
        self._states = {len(self.done): self.state}

    def write(self, facts: Mapping[str, Any]) -> None:
        """Number a line, write it to the disk, and only then take it."""
        line = numbered(self.seq + 1, self._folder.start, facts)
        self.journal.append(line)
        self._take(line)
        steps = len(self.done)
        if line["action"] != UNDO:
            self.state = self._states[steps] = apply(self.state, self.done[-1]["effect"])
        else:
            self.state = self._states[steps] = self._states.get(steps) or self._replayed()
        self._states = {n: state for n, state in self._states.items() if abs(n - steps) < KEPT_STATES}

    def _take(self, line: Mapping[str, Any]) -> None:
        """Put a line where it belongs; they are numbered from 1 without gaps."""
        if line["seq"] != self.seq + 1:
            raise ValueError(f"its seq is {line['seq']}")
        if line["action"] == UNDO:
            self.undone.append(self.done.pop())
        elif line["action"] == REDO:
            self.done.append(self.undone.pop())
        else:
            self.done.append(line)
            self.undone.clear()
        self.seq = line["seq"]

    @contextmanager
    def _damage(self, number: int) -> Iterator[None]:
        """Say of which line of the journal something is wrong."""
        try:
            yield
        except (IndexError, ValueError) as error:
            where = f"{self._folder.journal} line {number}"
            raise InputError(f"{where} is damaged ({error}): mend or delete that line.") from error

    def _replayed(self) -> ReviewState:
        state = ReviewState.of(self._folder.start)
        for line in self.done:
            state = apply(state, line["effect"])
        return state


@cache
def rule(photos: int) -> dict[str, Any]:
    """The schema of a line about so many photos."""
    whole = schema("review")
    item = whole["$defs"]["item"] | {"maximum": photos - 1}
    return whole | {"$defs": whole["$defs"] | {"item": item}}


def _consistent(state: ReviewState) -> ReviewState:
    """The same, if its parts fit together: nothing that follows asks again."""
    there = set(state.groups)
    faults = {
        "it names a group without photos": not state.names.keys() <= there,
        "it offers photos beside a group without any": any(offer.beside not in there for offer in state.offers),
        "a group has the number of the next one": max(there) >= state.next_group,
        "it accepts a photo that is not there": max(state.accepted, default=0) >= len(state.groups),
        "a settled photo is in no group": any(state.groups[item] < 0 for item in state.held - state.settled),
        "a photo that was set aside is somewhere": any(state.kind(item) != "alone" for item in state.aside),
        "a photo is marked as no class": not all(state.known[item] for item in state.marked),
    }
    if found := [fault for fault, is_so in faults.items() if is_so]:
        raise ValueError(found[0])
    return state
