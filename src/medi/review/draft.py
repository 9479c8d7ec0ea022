"""A state that is being changed: the moves that actions are made of. They keep what was said and what is shown in step.

Photos that were said to belong together are always in one group, those said to be apart never are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from medi.discovery.result import DOUBTFUL_BELOW
from medi.review.constraints import WHOLESALE, Word, between, bundles, cut, detached, links_of
from medi.review.pool import Links
from medi.review.state import State


class Draft:
    """Working copies of a state's parts.

    Attributes:
        touched: Items that the action was about: grouping again leaves them where they are.
        overruled: Earlier words that had to give way.
    """

    def __init__(self, state: State) -> None:
        self.before = state
        self.groups, self.known, self.confidence = list(state.groups), list(state.known), list(state.confidence)
        self.names, self.words = dict(state.names), list(state.words)
        self.aside, self.marked, self.refused = set(state.aside), set(state.marked), set(state.refused)
        self.accepted = dict(state.accepted)
        self.next_group = state.next_group
        self.touched: set[int] = set()
        self.overruled: list[Word] = []

    def finish(self, questions: tuple[tuple[int, int, float], ...] | None, note: Mapping[str, object]) -> State:
        """The changed state; groups without photos are gone, and so are their names."""
        there = set(self.groups)
        return replace(
            self.before,
            groups=tuple(self.groups),
            known=tuple(self.known),
            confidence=tuple(self.confidence),
            names={group: name for group, name in self.names.items() if group in there},
            words=tuple(self.words),
            aside=frozenset(self.aside),
            marked=frozenset(self.marked),
            refused=frozenset(self.refused),
            accepted=dict(self.accepted),
            next_group=self.next_group,
            questions=questions,
            note=note,
        )

    def links(self) -> Links:
        """What was said, for the pool."""
        return links_of(self.words, {item: self.known[item] for item in sorted(self.marked)}, self.aside)

    def held(self) -> set[int]:
        """Items whose place is settled."""
        return self.aside | self.marked | {i for word in self.words if word.same for i in (word.a, word.b)}

    def members(self, group: int) -> list[int]:
        """Items of a group."""
        return [item for item, other in enumerate(self.groups) if other == group]

    def anchor(self, items: Iterable[int]) -> int:
        """The item that stands for some: settled before others, then the surest."""
        held = self.held()
        return min(items, key=lambda item: (item not in held, -self.confidence[item], item))

    def anchors(self) -> dict[int, int]:
        """What stands for each group."""
        held, best = self.held(), dict[int, tuple[bool, float, int]]()
        for item, group in enumerate(self.groups):
            rank = item not in held, -self.confidence[item], item
            if group >= 0 and (group not in best or rank < best[group]):
                best[group] = rank
        return {group: rank[-1] for group, rank in best.items()}

    def new_group(self) -> int:
        """A number that no group had before."""
        self.next_group += 1
        return self.next_group - 1

    def place(self, items: Iterable[int], group: int, *, sure: bool = False) -> None:
        """Put items into a group, or with -1 into none."""
        for item in items:
            self.groups[item], self.known[item] = group, ""
            self.aside.discard(item)
            self.marked.discard(item)
            self.touched.add(item)
            if sure:
                self.confidence[item] = 1.0

    def free(self, items: Collection[int]) -> None:
        """Forget what was said to belong together with some items."""
        self.words = detached(items, self.words)

    def together(self, a: int, b: int, why: str) -> None:
        """Say that two items of one group belong together."""
        of = bundles(self.words)
        if a != b and of.get(a, a) != of.get(b, b):
            self.words.append(Word(True, a, b, why))

    def all_together(self, items: Sequence[int], why: str) -> None:
        """Say that items of one group all belong together."""
        of = bundles(self.words)
        first, *rest = items
        seen = {of.get(first, first)}
        for item in rest:
            if of.get(item, item) not in seen:
                seen.add(of.get(item, item))
                self.words.append(Word(True, first, item, why))

    def apart(self, pairs: Iterable[tuple[int, int]], why: str) -> None:
        """Say of pairs of items, of different groups or in none, that they do not belong together."""
        of = bundles(self.words)
        said = {frozenset((of.get(w.a, w.a), of.get(w.b, w.b))) for w in self.words if not w.same}
        for a, b in pairs:
            ends = frozenset((of.get(a, a), of.get(b, b)))
            if ends not in said:
                said.add(ends)
                self.words.append(Word(False, a, b, why))

    def allow(self, items: Collection[int]) -> None:
        """Give up words that keep some items apart from each other: a person has just put them together."""
        lost = {id(word) for word in between(items, items, self.words, same=False)}
        self.overruled += [word for word in self.words if id(word) in lost]
        self.words = [word for word in self.words if id(word) not in lost]

    def expel(self, group: int) -> None:
        """Where two items of a group were said to be apart, the less settled one leaves, with what it belongs to."""
        members, of = set(self.members(group)), bundles(self.words)
        sizes = Counter(of.values())
        for word in between(members, members, self.words, same=False):
            if self.groups[word.a] != self.groups[word.b]:
                continue
            goes = min((word.a, word.b), key=lambda i: (sizes[of.get(i, -1)], self.confidence[i], -i))
            leaving = [item for item in sorted(members) if item in of and of[item] == of.get(goes)] or [goes]
            number = self.new_group() if len(leaving) > 1 else -1
            for item in leaving:
                self.groups[item] = number

    def hold_sure(self, items: Sequence[int], why: str) -> None:
        """Settle those of some items that are not doubtful; at least one of them."""
        first, held = self.anchor(items), self.held()
        sure = [i for i in items if i != first and (i in held or self.confidence[i] >= DOUBTFUL_BELOW)]
        self.all_together([first, *sure], why)

    def divide(self, parts: Mapping[int, int]) -> None:
        """Give up words that tie items of different parts."""
        self.words, lost = cut(parts, self.words)
        self.overruled += [word for word in lost if word.why not in WHOLESALE]


def take_out(draft: Draft, items: Sequence[int], why: str) -> None:
    """Take items out of their groups; those that lose all their photos leave nothing to be apart from."""
    leaving = set(items)
    rest: dict[int, int | None] = {}
    for item in items:
        group = draft.groups[item]
        if group >= 0 and group not in rest:
            left = [other for other in draft.members(group) if other not in leaving]
            rest[group] = draft.anchor(left) if left else None
    draft.free(leaving)
    stays = ((item, rest.get(draft.groups[item])) for item in items)
    draft.apart([(item, other) for item, other in stays if other is not None], why)
