"""Which question pays: by how many photos the answer is expected to correct.

Three kinds: which of three groups or known classes a photo belongs to, whether two groups are one kind, and whether a
half of a group is another kind. Nothing is asked about photos that a person has settled, nor what follows from what was
said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from medi.core.arrays import Ints
from medi.review.constraints import bundles, kept_apart
from medi.review.draft import Draft
from medi.review.places import View
from medi.review.state import Question, ReviewState

if TYPE_CHECKING:
    from medi.grouping.saved_pool import SavedPool

MOST = 12
"""Questions kept: the first is asked, the others wait in case it is skipped."""
CHOICES = 3
"""Groups and known classes that a photo is compared with; a group is always among them."""
MOST_SPLIT = 24
"""Groups that are divided in search of a half that is another kind."""

HALF = 0.25
"""How much of a half of another kind is put right when it is split off: most such photos belong to a group that is
there already. Chosen on known classes of CIFAR-100 that played novel, and on pools of flowers."""


def questions(state: ReviewState, view: View, pool: SavedPool) -> list[Question]:
    """Questions, the one first whose answer is expected to correct most photos.

    Args:
        state: Where items are, and what was said of them.
        view: What the engine says of them.
        pool: Divides groups.
    """
    if not len(view.samples) or not state.members:
        return []
    asking = _Asking(state, view, pool)
    found = [one for one in (*asking.which(), *asking.merges(), *asking.halves()) if one.worth > 0]
    return _varied(sorted(found, key=lambda one: (-one.worth, one.a, one.b)), state.groups)


class _Asking:
    """What questions are made of.

    Attributes:
        stands: What stands for each group.
    """

    def __init__(self, state: ReviewState, view: View, pool: SavedPool) -> None:
        self.state, self.view, self.pool, self.members = state, view, pool, state.members
        self.samples = view.samples
        self.held, self.of = state.held, bundles(state.words)
        self.said = kept_apart(state.words, self.of)
        self.stands = list(Draft(state).anchors().values())

    def open(self, a: int, b: int) -> bool:
        """Whether nothing that was said tells if two items belong together."""
        return self.of[a] != self.of[b] and frozenset((self.of[a], self.of[b])) not in self.said

    def which(self) -> Iterator[Question]:
        """Where photos belong that nobody settled; an answer corrects one that is elsewhere now."""
        groups = list(self.members)
        shown = self._unsettled()
        for item, here in enumerate(self.state.groups):
            if item in self.held or item in self.stands or self.state.known[item]:
                continue
            if here >= 0 and not self.open(item, self.stands[groups.index(here)]):
                continue  # it was said to belong where it is
            row = enumerate(self.view.groups[item].tolist())
            near = [(chance, place) for place, chance in row if chance > 0]  # 0 is what a person denied
            found = [(chance, place, "") for chance, place in near if self.open(item, self.stands[place])]
            places = sorted(found + self._classes(item), key=lambda one: -one[0])[:CHOICES]
            if found and all(name for *_, name in places):
                places = [*places[: CHOICES - 1], max(found, key=lambda one: one[0])]
            others = (shown[place] for _, place, name in places if not name)
            other = next((other for other in others if other not in (-1, item) and self.open(item, other)), None)
            if other is not None:
                elsewhere = sum(chance for chance, place, name in places if name or groups[place] != here)
                yield _question("which", item, other, places[0][0], elsewhere)._replace(
                    items=[self.stands[place] for _, place, name in places if not name],
                    known=[[rank, name] for rank, (_, _, name) in enumerate(places) if name],
                    chances=[round(chance, 4) for chance, *_ in places],
                )

    def _classes(self, item: int) -> list[tuple[float, int, str]]:
        """How probable the likeliest known classes of an item are, a place that is no group, and their names."""
        likely = [
            (chance, -1, name)
            for name, chance in zip(self.view.names, self.view.known[item].tolist(), strict=True)
            if chance > 0 and (item, name) not in self.state.refused
        ]
        return sorted(likely, key=lambda one: -one[0])[:CHOICES]

    def _unsettled(self) -> list[int]:
        """An item of each group that nobody has settled, if possible what stands for it; -1 where there is none."""
        free = ([item for item in items if item not in self.held] for items in self.members.values())
        surest = (max(items, key=lambda item: self.state.confidence[item], default=-1) for items in free)
        return [other if stands in self.held else stands for stands, other in zip(self.stands, surest, strict=True)]

    def merges(self) -> Iterator[Question]:
        """Whether two groups are one kind: if so, the smaller one is corrected."""
        groups = list(self.members.values())
        for i, a in enumerate(self.stands):
            for j, b in enumerate(self.stands[:i]):
                small, large = sorted((i, j), key=lambda place: len(groups[place]))
                if self.open(a, b) and not {a, b} & self.held:
                    chance = float(self.view.kin[small, large])
                    yield _question("merge", b, a, chance, chance * len(groups[small]))

    def halves(self) -> Iterator[Question]:
        """Whether the smaller half of a group is another kind: if so, it is corrected."""
        mixed = sorted(enumerate(self.members.values()), key=lambda one: self.view.pure[one[0]])
        divisible = [one for one in mixed if len({self.of[item] for item in one[1]}) > 2]
        for column, items in divisible[:MOST_SPLIT]:
            second = self.pool.split(items, 2) == 1
            parts = np.asarray(items)[second], np.asarray(items)[~second]
            small, large = sorted(parts, key=len)
            if len(small) < 2 or self.held.intersection(items):
                continue
            a, b = medoid(self.samples, small), medoid(self.samples, large)
            together = float(np.mean([(self.samples[:, large] == self.samples[:, [item]]).mean() for item in small]))
            if self.open(a, b):
                other = (1 - float(self.view.pure[column])) * (1 - together)  # a pure group has no half of another kind
                yield _question("half", a, b, 1 - other, HALF * other * len(small))._replace(items=small.tolist())


def _question(kind: str, a: int, b: int, chance: float, worth: float) -> Question:
    return Question(a, b, round(chance, 4), kind, round(worth, 4), [], [], [])


def medoid(samples: Ints, members: Ints) -> int:
    """The item that is together with the others of its group most often; the first of equals."""
    total = np.zeros(len(members), dtype=np.int64)
    for sample in samples[:, members]:
        _, label, count = np.unique(sample, return_inverse=True, return_counts=True)
        total += count[label]
    return int(members[np.argmax(total)])


def _varied(asked: Sequence[Question], groups: Sequence[int]) -> list[Question]:
    """The best questions, no two groups in more than two of a kind: who skips one wants to see others."""
    seen, kept = Counter[tuple[str, frozenset[int]]](), list[Question]()
    for one in asked:
        ends = one.kind, frozenset(groups[item] if groups[item] >= 0 else -1 - item for item in (one.a, one.b))
        seen[ends] += 1
        if seen[ends] <= 2:
            kept.append(one)
    return kept[:MOST]
