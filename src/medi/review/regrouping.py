"""What the saved pool says: groups again under what was said, of which what changes clearly is taken over, and splits.

Only items that nobody has settled move, and none into a group with items that a person has left in it: they are
offered beside it (`medi.review.offers`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from medi.core.arrays import Ints
from medi.discover.result import is_doubtful
from medi.grouping.constraints import Links
from medi.review.constraints import WHOLESALE, Word, bundles
from medi.review.draft import Draft
from medi.review.offers import offers
from medi.review.places import View, confidences, thinned

if TYPE_CHECKING:
    from medi.grouping.saved_pool import Regrouped, SavedPool

_POOL = "pool.safetensors"
CLEARLY = 0.05
"""How much more probable another group must be before an item moves: less is noise of the samples."""
BY_ITSELF = 0.3
"""What a group without other items is worth to one that may leave it or begin it."""
SETTLED = 1000
"""Weight of an item that a person settled when groups are recognised among others."""


def load_pool(model: Path) -> SavedPool | None:
    """The pool saved in a folder model/; None where there is none."""
    if not (model / _POOL).is_file():
        return None
    from medi.grouping.saved_pool import SavedPool  # takes seconds to import, and much of a review needs no pool

    return SavedPool.load(model)


def regroup(draft: Draft, pool: SavedPool) -> View:
    """Group again and change the draft; what it was about stays exactly as said."""
    found = _found(draft, pool)
    adopt(draft, found)
    view = View.of(draft, found, recognise(draft, found.labels))
    draft.offers = offers(draft, view.samples, pool.names)
    return view


def look(draft: Draft, pool: SavedPool) -> View:
    """What the engine says under what was said; nothing changes."""
    found = _found(draft, pool)
    return View.of(draft, found, recognise(draft, found.labels))


def _found(draft: Draft, pool: SavedPool) -> Regrouped:
    """Group a pool under what was said; of classes that it does not know, all it is told is that they are no group."""
    links, names = draft.links(), set(pool.names)
    if links == Links():
        return pool.standing()
    copies = {item: name for item, name in pool.certain.items() if draft.known[item] == name}
    known = {item: name for item, name in links.known.items() if name in names}
    links = replace(links, known=copies | known, aside=links.aside | (links.known.keys() - known.keys()))
    return pool.regroup(links, np.array(draft.groups, dtype=np.int64))


def divided(items: Sequence[int], count: int, pool: SavedPool, words: Sequence[Word]) -> list[list[int]]:
    """A group in so many parts, the largest first."""
    labels = dict(zip(items, map(int, pool.split(items, count)), strict=True))
    of = bundles(word for word in words if word.why not in WHOLESALE)
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for item in items:
        votes[of[item]][labels[item]] += 1
    kept = {item: votes[of[item]].most_common(1)[0][0] for item in items}
    if len(set(kept.values())) == count:  # where all of them can be had, photos said to be together stay so
        labels = kept
    found = [[item for item in items if labels[item] == label] for label in sorted(set(labels.values()))]
    return sorted(found, key=lambda part: (-len(part), part[0]))


def adopt(draft: Draft, found: Regrouped) -> None:
    """Take over the places and the confidence of items that are free to change.

    Items that a person put somewhere stay there. Items that were only said to be the same move together or not at all.
    """
    placed, of, owned = _placed(draft), bundles(draft.words), {draft.groups[item] for item in draft.held}
    number = recognise(draft, found.labels)
    shown, wanted = np.array(draft.groups), np.array([number.get(label, -1) for label in found.labels])
    samples = thinned(found.samples)
    apart: dict[int, set[int]] = defaultdict(set)
    for word in draft.words:
        if not word.same:
            apart[word.a].add(word.b)
            apart[word.b].add(word.a)
    units: dict[int, list[int]] = defaultdict(list)
    for item in range(len(shown)):
        if item not in placed:
            units[of[item]].append(item)
    for unit in units.values():
        first = unit[0]
        kind, sure, name = found.kinds[first], found.confidence[first], found.known[first]
        here, there = int(shown[first]), int(wanted[first])
        if kind == "known" and (first, name) not in draft.refused:
            moves = draft.known[first] == name or (not is_doubtful(sure) and len(unit) == 1)
            place = -1, name
        elif kind == "alone" and (here >= 0 or draft.known[first]):
            moves, place = not is_doubtful(sure) and len(unit) == 1, (-1, "")
        elif kind == "novel" and there != here and there not in owned:
            gain = _tie(samples, unit, wanted == there) - _tie(samples, unit, shown == here)
            moves, place = here < 0 or gain >= CLEARLY, (there, "")
            moves = moves and not any(draft.groups[other] == there for item in unit for other in apart[item])
        else:
            moves, place = False, (here, draft.known[first])
        for item in unit if moves else ():
            draft.groups[item], draft.known[item] = place
    _number_new(draft)
    held = draft.held
    for item, sure in enumerate(confidences(draft, found, recognise(draft, found.labels))):
        if item not in held:
            draft.confidence[item] = _rounded(sure)


def _placed(draft: Draft) -> set[int]:
    """Items that stay where they are: a person put them there, or they belong together with one that was put."""
    put, of = draft.held | draft.touched, bundles(draft.words)
    roots = {of[item] for item in put}
    return put | {item for item, root in of.items() if root in roots}


def _tie(samples: Ints, unit: Sequence[int], members: NDArray[np.bool_]) -> float:
    """How probable it is that items which are together belong to a group's other items."""
    others = members.copy()
    others[list(unit)] = False
    if not others.any():
        return BY_ITSELF
    return float((samples[:, others] == samples[:, [unit[0]]]).mean())


def recognise(draft: Draft, labels: Sequence[int]) -> dict[int, int]:
    """Which group each label is: the one that shares most with it, settled items above all; else a new one."""
    held, overlap = draft.held, Counter[tuple[int, int]]()
    for item, pair in enumerate(zip(labels, draft.groups, strict=True)):
        overlap[pair] += SETTLED if item in held else 1
    found = sorted({label for label in labels if label >= 0})
    number = matched(overlap, found, sorted({group for group in draft.groups if group >= 0}))
    new = (label for label in found if label not in number)
    return number | {label: draft.next_group + count for count, label in enumerate(new)}


def matched(overlap: Mapping[tuple[int, int], int], left: Sequence[int], right: Sequence[int]) -> dict[int, int]:
    """Some numbers paired with others so that most is shared; one that shares nothing with its other has none."""
    table = np.array([[overlap.get((one, other), 0) for other in right] for one in left])
    table = table.reshape(len(left), len(right))
    rows, columns = linear_sum_assignment(-table)
    return {left[r]: right[c] for r, c in zip(rows.tolist(), columns.tolist(), strict=True) if table[r, c]}


def _number_new(draft: Draft) -> None:
    """Give the new groups that got items the next numbers, without gaps."""
    new = sorted({group for group in draft.groups if group >= draft.next_group})
    number = {group: draft.new_group() for group in new}
    draft.groups = [number.get(group, group) for group in draft.groups]


def _rounded(value: float) -> float:
    """Two digits: more would be noise, and journals full of it; entirely sure are only copies of labelled photos."""
    return round(float(value), 2) if value >= 1 else round(min(0.99, max(0.0, float(value))), 2)
