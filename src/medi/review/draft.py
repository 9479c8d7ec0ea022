"""A state that is being changed: the moves that actions are made of. They keep what was said and what is shown in step.

Photos that were said to belong together are always in one group, those said to be apart never are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from typing import Any

from medi.discover.result import is_doubtful
from medi.grouping.constraints import Links
from medi.grouping.engine import GUESS
from medi.review.constraints import WHOLESALE, Bundles, Word, between, bundle, bundles, cut, detached, kept_apart
from medi.review.state import ReviewState, effect


class Draft(ReviewState):
    """A copy of a state that may be changed.

    Attributes:
        before: The state that it began as.
        touched: Items that the action was about: grouping again leaves them where they are.
        overruled: Earlier words that had to give way.
    """

    def __init__(self, state: ReviewState) -> None:
        super().__init__(**{one.name: copy(getattr(state, one.name)) for one in fields(ReviewState)})
        self.before = state
        self.touched: set[int] = set()
        self.overruled: list[Word] = []

    def effect(self) -> dict[str, Any]:
        """Everything that was changed; groups without photos are gone, and so are their names."""
        there = set(self.groups)
        self.names = {group: name for group, name in self.names.items() if group in there}
        return effect(self.before, self)

    def links(self) -> Links:
        """What was said, for the pool."""
        return Links(
            together=tuple((word.a, word.b) for word in self.words if word.same),
            apart=tuple((word.a, word.b) for word in self.words if not word.same),
            known={item: self.known[item] for item in sorted(self.marked)},
            aside=frozenset(self.aside),
        )

    def call(self, group: int) -> str:
        """A group's name in a sentence."""
        return f"“{self.names[group]}”" if group in self.names else f"group {group}"

    def anchor(self, items: Iterable[int]) -> int:
        """The item that stands for some: settled before others, then what most belong with, then the surest."""
        return self._surest(items, self.held, bundles(self.words))

    def anchors(self) -> dict[int, int]:
        """What stands for each group."""
        held, of = self.held, bundles(self.words)
        return {group: self._surest(items, held, of) for group, items in self.members.items()}

    def _surest(self, items: Iterable[int], held: Collection[int], of: Bundles) -> int:
        items = list(items)
        size = Counter(of[item] for item in items)
        return min(items, key=lambda item: (item not in held, -size[of[item]], -self.confidence[item], item))

    def new_group(self) -> int:
        """A number that no group had before."""
        self.next_group += 1
        return self.next_group - 1

    # What is said

    def together(self, items: Sequence[int], why: str) -> None:
        """Say that items of one group all belong together."""
        of = bundles(self.words)
        first, *rest = items
        seen = {of[first]}
        for item in rest:
            if of[item] not in seen:
                seen.add(of[item])
                self.words.append(Word(True, first, item, why))

    def apart(self, pairs: Iterable[tuple[int, int]], why: str) -> None:
        """Say of pairs of items, of different groups or in none, that they do not belong together."""
        of = bundles(self.words)
        said = kept_apart(self.words, of)
        for a, b in pairs:
            ends = frozenset((of[a], of[b]))
            if ends not in said:
                said.add(ends)
                self.words.append(Word(False, a, b, why))

    def hold_sure(self, items: Sequence[int], why: str) -> None:
        """Settle those of some items that are not doubtful; at least one of them."""
        held = self.held
        first = self.anchor(items)
        sure = [i for i in items if i != first and (i in held or not is_doubtful(self.confidence[i]))]
        self.together([first, *sure], why)

    def claim(self, items: Collection[int]) -> None:
        """A person saw items where they are and left them there: they stay, with all that they belong together with."""
        of = bundles(self.words)
        roots = {of[item] for item in items}
        self.claimed.update(items, (item for item, root in of.items() if root in roots))
        for item in self.claimed:
            self.confidence[item] = 1.0

    def release(self, items: Collection[int]) -> None:
        """Items leave the place that a person had left them in: nothing is sure of them any more."""
        for item in self.held.intersection(items):
            self.confidence[item] = GUESS
        self.claimed.difference_update(items)

    def free(self, items: Collection[int]) -> None:
        """Forget what was said to belong together with some items."""
        self.words = detached(items, self.words)

    def allow(self, items: Collection[int]) -> None:
        """Give up words that keep some items apart from each other: a person has just put them together."""
        lost = {id(word) for word in between(items, items, self.words)}
        self.overruled += [word for word in self.words if id(word) in lost]
        self.words = [word for word in self.words if id(word) not in lost]

    def divide(self, parts: Mapping[int, int]) -> None:
        """Give up words that tie items of different parts."""
        self.words, lost = cut(parts, self.words)
        self.overruled += [word for word in lost if word.why not in WHOLESALE]

    # Where items are

    def place(self, items: Iterable[int], group: int, *, known: str = "") -> None:
        """Put items into a group, or with -1 into none, or into a known class."""
        for item in items:
            self.groups[item], self.known[item] = group, known
            self.aside.discard(item)
            self.marked.discard(item)
            self.touched.add(item)

    def put(self, items: Sequence[int], group: int, why: str) -> None:
        """Put items into a group and settle them there."""
        coming = [item for item in items if self.groups[item] != group]
        members = self.members[group]
        anchor = self.anchor(members)
        self.touched.update(members)
        self.take_out(coming, why)
        self.place(coming, group)
        self.allow({*members, *coming})
        self.together([anchor, *(item for item in items if item != anchor)], why)
        self.claim([anchor, *items])

    def take_out(self, items: Sequence[int], why: str) -> None:
        """Take items out of their groups; those that lose all their photos leave nothing to be apart from."""
        leaving, members = set(items), self.members
        rest: dict[int, int] = {}
        for group in dict.fromkeys(self.groups[item] for item in items):
            if left := [other for other in members.get(group, ()) if other not in leaving]:
                rest[group] = self.anchor(left)
        self.free(leaving)
        self.apart([(item, rest[self.groups[item]]) for item in items if self.groups[item] in rest], why)

    def refuse(self, items: Sequence[int], why: str) -> None:
        """Take items out of where they are; a group that loses all of them is dissolved."""
        out, members = set(items), self.members
        gone = [item for item in items if self.groups[item] >= 0 and out.issuperset(members[self.groups[item]])]
        self.release(items)
        self.take_out(items, why)
        self.refused.update((item, self.known[item]) for item in items if self.known[item])
        self.place(items, -1)
        self.touched.difference_update(items)
        self.aside.update(gone)

    def set_aside(self, items: Sequence[int]) -> None:
        """Put items into no group, where they stay."""
        self.free(set(items))
        self._settle(items, "")
        self.aside.update(items)

    def mark(self, items: Sequence[int], known: str) -> None:
        """Put items into a known class, where they stay."""
        self.free(set(items))
        self._settle(items, known)
        self.marked.update(items)

    def _settle(self, items: Sequence[int], known: str) -> None:
        self.place(items, -1, known=known)
        self.claimed.difference_update(items)
        for item in items:
            self.confidence[item] = 1.0

    def join(self, a: int, b: int) -> None:
        """Do what an answer that two items are the same asks for."""
        here, there = self.groups[a], self.groups[b]
        settled = not self.held.isdisjoint((a, b))
        if here == there >= 0:
            self.together([a, b], "answer")
        elif a in self.marked or b in self.marked:
            one, other = (a, b) if a in self.marked else (b, a)
            everyone = [one, other] if other in self.marked else sorted({one, *bundle(other, self.words)})
            self.mark(everyone, self.known[one])
        elif here < 0 and there < 0:
            self.take_out([a, b], "answer")
            self.place([a, b], self.new_group())
            self.together([a, b], "answer")
        elif here >= 0 and there >= 0 and self._stand_for_groups(a, b):
            members = self.members
            called = self.names.pop(there, "")
            self.place(members[here] + members[there], here)
            self.touched = {a, b}
            if called:
                self.names.setdefault(here, called)
            self.together([a, b], "answer")
            self.expel(here)
        else:
            stays, goes = (a, b) if there < 0 or (here >= 0 and self._weight(a) >= self._weight(b)) else (b, a)
            self.place(sorted(bundle(goes, self.words)), self.groups[stays])
            self.together([stays, goes], "answer")
            self.expel(self.groups[stays])
        if settled and a not in self.marked:
            self.claim([a, b])

    def part(self, a: int, b: int) -> None:
        """Do what an answer that two items are different asks for."""
        if self.groups[a] == self.groups[b] >= 0:
            goes = min((a, b), key=self._weight)
            leaving = sorted(bundle(goes, self.words))
            self.release(leaving)
            if len(leaving) > 1:
                self.place(leaving, self.new_group())
            else:
                self.place(leaving, -1)
                self.touched.difference_update(leaving)
        self.apart([(a, b)], "answer")

    def expel(self, group: int) -> None:
        """Where two items of a group were said to be apart, the less settled one leaves, with what it belongs to."""
        members, of = set(self.members.get(group, ())), bundles(self.words)
        sizes, held = Counter(of.values()), self.held
        for word in between(members, members, self.words):
            if self.groups[word.a] != self.groups[word.b]:
                continue
            goes = min((word.a, word.b), key=lambda item: (item in held, sizes[of[item]], self.confidence[item], -item))
            leaving = [item for item in sorted(members) if of[item] == of[goes]]
            self.release(leaving)
            number = self.new_group() if len(leaving) > 1 else -1
            for item in leaving:
                self.groups[item] = number

    def _stand_for_groups(self, a: int, b: int) -> bool:
        """Whether both are what their groups are known by: then the groups are the same."""
        members = self.members
        return all(self.anchor(members[self.groups[item]]) == item for item in (a, b))

    def _weight(self, item: int) -> tuple[bool, bool, int, float]:
        """How settled an item is where it is."""
        return item in self.held, self.groups[item] in self.names, len(bundle(item, self.words)), self.confidence[item]
