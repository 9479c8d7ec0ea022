"""The state of a review: a pure function of `clusters.csv` and the lines of `review.jsonl`.

A line holds an action, its arguments, and under "effect" everything that it changed, so that replaying needs neither
the pool nor luck, and undoing is replaying without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from medi.discovery.result import Kind
from medi.errors import InputError
from medi.review.constraints import Word
from medi.review.discovery_folder import Start

UNDO, REDO = "undo", "redo"


@dataclass(frozen=True)
class State:
    """Where every photo is, and what a person said.

    Attributes:
        groups: Group of each item; -1 where it is in none.
        known: The known class of each item; empty where it is none.
        confidence: 0 to 1.
        names: Of groups that have one.
        words: What was said of pairs of items.
        aside: Items that were set aside: they stay alone.
        marked: Items that a person marked as a known class.
        refused: Items, each with the known class that a person said it is not.
        accepted: The class that an item was accepted into, by item.
        next_group: The number of the next new group.
        questions: Pairs worth asking about, the best first; None where they have not been looked for.
        note: What the last action did, in words.
    """

    groups: tuple[int, ...]
    known: tuple[str, ...]
    confidence: tuple[float, ...]
    names: Mapping[int, str] = field(default_factory=dict)
    words: tuple[Word, ...] = ()
    aside: frozenset[int] = frozenset()
    marked: frozenset[int] = frozenset()
    refused: frozenset[tuple[int, str]] = frozenset()
    accepted: Mapping[int, str] = field(default_factory=dict)
    next_group: int = 0
    questions: tuple[tuple[int, int, float], ...] | None = None
    note: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, start: Start) -> State:
        """As `clusters.csv` has it."""
        return cls(start.groups, start.known, start.confidence, next_group=max(start.groups, default=-1) + 1)

    def kind(self, item: int) -> Kind:
        """In a group, of a known class, or neither."""
        return "novel" if self.groups[item] >= 0 else "known" if self.known[item] else "alone"

    @cached_property
    def members(self) -> dict[int, list[int]]:
        """Items of each group, by number."""
        found: dict[int, list[int]] = defaultdict(list)
        for item, group in enumerate(self.groups):
            if group >= 0:
                found[group].append(item)
        return dict(sorted(found.items()))

    @cached_property
    def held(self) -> frozenset[int]:
        """Items whose place a person settled: grouping again leaves them alone."""
        return self.aside | self.marked | frozenset(i for word in self.words if word.same for i in (word.a, word.b))


def effect(before: State, after: State) -> dict[str, Any]:
    """Everything that differs, as JSON can hold it; `apply` turns it back."""
    changed: dict[str, Any] = {}
    places = [
        [i, *new]
        for i, (new, old) in enumerate(
            zip(zip(after.groups, after.known, strict=True), zip(before.groups, before.known, strict=True), strict=True)
        )
        if new != old
    ]
    sure = [
        [i, new] for i, (new, old) in enumerate(zip(after.confidence, before.confidence, strict=True)) if new != old
    ]
    if places:
        changed["places"] = places
    if sure:
        changed["confidence"] = sure
    if after.names != before.names:
        changed["names"] = {str(group): name for group, name in sorted(after.names.items())}
    if after.words != before.words:
        kept = sum(1 for _ in _common(before.words, after.words))
        changed["words"] = [kept, [[int(w.same), w.a, w.b, w.why] for w in after.words[kept:]]]
    if after.aside != before.aside:
        changed["aside"] = sorted(after.aside)
    if after.marked != before.marked:
        changed["marked"] = sorted(after.marked)
    if after.refused != before.refused:
        changed["refused"] = [list(pair) for pair in sorted(after.refused)]
    if after.accepted != before.accepted:
        changed["accepted"] = {str(item): name for item, name in sorted(after.accepted.items())}
    if after.next_group != before.next_group:
        changed["next_group"] = after.next_group
    if after.questions is not None:
        changed["questions"] = [list(question) for question in after.questions]
    if after.note:
        changed["note"] = dict(after.note)
    return changed


def apply(state: State, changed: Mapping[str, Any]) -> State:
    """The state after an effect."""
    groups, known, confidence = state.groups, state.known, state.confidence
    if places := changed.get("places"):
        new_groups, new_known = list(groups), list(known)
        for item, group, name in places:
            new_groups[item], new_known[item] = int(group), str(name)
        groups, known = tuple(new_groups), tuple(new_known)
    if sure := changed.get("confidence"):
        new_confidence = list(confidence)
        for item, value in sure:
            new_confidence[item] = float(value)
        confidence = tuple(new_confidence)
    words = state.words
    if "words" in changed:
        kept, more = changed["words"]
        words = words[:kept] + tuple(Word(bool(same), a, b, why) for same, a, b, why in more)
    questions = changed.get("questions")
    return replace(
        state,
        groups=groups,
        known=known,
        confidence=confidence,
        names={int(g): n for g, n in changed["names"].items()} if "names" in changed else state.names,
        words=words,
        aside=frozenset(changed["aside"]) if "aside" in changed else state.aside,
        marked=frozenset(changed["marked"]) if "marked" in changed else state.marked,
        refused=frozenset((i, n) for i, n in changed["refused"]) if "refused" in changed else state.refused,
        accepted={int(i): n for i, n in changed["accepted"].items()} if "accepted" in changed else state.accepted,
        next_group=changed.get("next_group", state.next_group),
        questions=None if questions is None else tuple((a, b, p) for a, b, p in questions),
        note=changed.get("note", {}),
    )


def _common(left: Sequence[Word], right: Sequence[Word]) -> Iterable[Word]:
    """The words that both begin with."""
    for one, other in zip(left, right, strict=False):
        if one != other:
            return
        yield one


KEPT_STATES = 64
"""Recent states kept in memory, so that undoing is immediate; older ones are replayed."""


class History:
    """The lines of a journal: which are in force, which were undone, and the state they make.

    Attributes:
        seq: Number of the last line.
        done: Lines in force.
        undone: Lines that can be redone, the next one last.
        state: What the lines in force make.
    """

    def __init__(self, start: Start, lines: Iterable[Mapping[str, Any]] = (), source: str = "the journal") -> None:
        self.seq = 0
        self.done: list[Mapping[str, Any]] = []
        self.undone: list[Mapping[str, Any]] = []
        self._start = State.of(start)
        self._states: list[tuple[int, State]] = []
        for line in lines:
            try:
                self.check(line)
                self.add(line, replaying=True)
            except (KeyError, IndexError, TypeError, ValueError) as error:
                number = self.seq + 1
                raise InputError(f"{source} line {number} is damaged ({error}): mend or delete that line.") from error
        self.state = self._replayed()
        self._keep()

    def check(self, line: Mapping[str, Any]) -> None:
        """Lines are numbered from 1 without gaps."""
        if line["seq"] != self.seq + 1:
            raise ValueError(f"its seq is {line['seq']}")
        if line["action"] not in (UNDO, REDO) and not isinstance(line["effect"], dict):
            raise ValueError("its effect is no object")

    def add(self, line: Mapping[str, Any], *, replaying: bool = False) -> None:
        """Take a line that is on the disk."""
        if line["action"] == UNDO:
            self.undone.append(self.done.pop())
        elif line["action"] == REDO:
            self.done.append(self.undone.pop())
        else:
            self.done.append(line)
            self.undone.clear()
        self.seq = line["seq"]
        if replaying:
            return
        if line["action"] == UNDO:
            self._states = [kept for kept in self._states if kept[0] <= len(self.done)]
            before = next((s for n, s in reversed(self._states) if n == len(self.done)), None)
            self.state = before if before is not None else self._replayed()
        else:
            self.state = apply(self.state, self.done[-1]["effect"])
        self._keep()

    def _replayed(self) -> State:
        state = self._start
        for line in self.done:
            state = apply(state, line["effect"])
        return state

    def _keep(self) -> None:
        self._states = [*self._states, (len(self.done), self.state)][-KEPT_STATES:]
