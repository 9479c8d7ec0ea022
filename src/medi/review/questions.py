"""Which two photos to ask about: the answer worth most is in doubt and moves many photos."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from medi.review.constraints import Word, bundles

MOST = 12
"""Questions kept: the first is asked, the others wait in case it is skipped."""
MOST_SPLIT = 24
"""Splits that are looked at for a question."""
APART = 0.5
"""How a pair that is apart now counts: samples make too much of such pairs, and most answers only confirm them. Chosen
on known classes of CIFAR-100 that played novel (ACC after 20 answers 0.72; counting by 4 p (1 - p), 0.66)."""
Split = Callable[[Sequence[int], int], NDArray[np.int64]]
_CLEAR = 0.02
"""Pairs this near to certain are not asked about."""


def questions(
    samples: NDArray[np.int64],
    groups: Sequence[int],
    words: Sequence[Word],
    aside: frozenset[int] = frozenset(),
    confidence: Sequence[float] = (),
    split: Split | None = None,
) -> tuple[tuple[int, int, float], ...]:
    """Pairs of items and the probability that they belong together, the one worth most first.

    Asked are pairs of items that stand for their groups, and single items against what stands for their own group or
    for the likeliest other one. A pair is worth the chance that the answer changes something times the number of items
    that it would move. Where a group can be split, the parts it falls into are asked about as well.

    Args:
        samples: (s, n): in each sample, items with equal numbers are together.
        groups: Group of each item; -1 for none.
        words: What was said: nothing is asked that follows from it.
        aside: Items that are not asked about.
        confidence: Of each item: how probable it is that it is where it belongs.
        split: Divides items into parts by what they look like.
    """
    shown = np.asarray(groups)
    if not len(samples) or not len(shown):
        return ()
    numbers = sorted({int(group) for group in shown if group >= 0})
    members = {group: np.flatnonzero(shown == group) for group in numbers}
    medoids = {group: medoid(samples, members[group]) for group in numbers}
    centres = np.array([medoids[group] for group in numbers], dtype=np.int64)
    # (n, groups): how often each item is together with what stands for a group
    near = np.zeros((len(shown), len(centres)))
    for sample in samples:
        near += sample[:, None] == sample[centres][None, :]
    near /= len(samples)
    worth: dict[tuple[int, int], tuple[float, float]] = {}

    def consider(a: int, b: int, probability: float, moved: float) -> None:
        together = shown[a] == shown[b] >= 0
        doubt = 1 - probability if together else APART * probability**2
        if a != b and _CLEAR < probability < 1 - _CLEAR:
            pair = (min(a, b), max(a, b))
            worth[pair] = max(worth.get(pair, (0.0, 0.0)), (doubt * moved, probability))

    for i, group in enumerate(numbers):
        for j in range(i + 1, len(numbers)):
            smaller = min(len(members[group]), len(members[numbers[j]]))
            consider(int(centres[i]), int(centres[j]), float(near[centres[i], j]), smaller)
    column = {group: index for index, group in enumerate(numbers)}
    for item in range(len(shown)):
        if not numbers:
            break
        own = column.get(int(shown[item]))
        if own is not None:
            with_it = _along(samples, item, members[numbers[own]], near[:, own])
            consider(item, int(centres[own]), float(near[item, own]), with_it)
        other = near[item].copy()
        if own is not None:
            other[own] = -1
        best = int(np.argmax(other))
        if other[best] > 0:
            consider(item, int(centres[best]), float(other[best]), 1)
    settled = bundles(words)
    if split is not None:
        for inside in _parts(members.values(), np.asarray(confidence), split, settled):
            left, right = (medoid(samples, part) for part in inside)
            doubt = float(1 - np.asarray(confidence)[inside[1]].mean())
            pair, sure = (min(left, right), max(left, right)), float((samples[:, left] == samples[:, right]).mean())
            worth[pair] = max(worth.get(pair, (0.0, 0.0)), (doubt * len(inside[1]), sure))
    apart = {frozenset((settled.get(w.a, w.a), settled.get(w.b, w.b))) for w in words if not w.same}
    asked = []
    for (a, b), (value, probability) in sorted(worth.items(), key=lambda entry: (-entry[1][0], entry[0])):
        ends = settled.get(a, a), settled.get(b, b)
        if ends[0] != ends[1] and frozenset(ends) not in apart and not {a, b} & aside and value > 0:
            asked.append((a, b, round(probability, 2)))
    return _varied(asked, groups)


def _parts(
    groups: Iterable[NDArray[np.int64]], confidence: NDArray[np.float64], split: Split, settled: Mapping[int, int]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Groups divided in two, and their parts again, the most doubtful first; the smaller part comes second."""
    waiting = [part for part in groups if len(part) > 1]
    for _ in range(MOST_SPLIT):
        # What a person said belongs together is not divided.
        waiting = [part for part in waiting if len({settled.get(int(i), -1 - int(i)) for i in part}) > 1]
        if not waiting:
            return
        waiting.sort(key=lambda part: -float((1 - confidence[part]).sum()))
        part = waiting.pop(0)
        second = np.asarray(split(part.tolist(), 2)) == 1
        if second.any() and not second.all():
            halves = sorted((part[~second], part[second]), key=len, reverse=True)
            yield halves[0], halves[1]
            waiting += [half for half in halves if len(half) > 1]


def medoid(samples: NDArray[np.int64], members: NDArray[np.int64]) -> int:
    """The item that is together with the others of its group most often; the first of equals."""
    total = np.zeros(len(members), dtype=np.int64)
    for sample in samples[:, members]:
        _, label, count = np.unique(sample, return_inverse=True, return_counts=True)
        total += count[label]
    return int(members[np.argmax(total)])


def _along(samples: NDArray[np.int64], item: int, members: NDArray[np.int64], centre: NDArray[np.float64]) -> int:
    """How many of a group go with an item rather than with what stands for the group; itself among them."""
    if not 0 < centre[item] < 1:
        return 1
    together = (samples[:, members] == samples[:, [item]]).mean(0)
    return int((together > centre[members]).sum())


def _varied(asked: Sequence[tuple[int, int, float]], groups: Sequence[int]) -> tuple[tuple[int, int, float], ...]:
    """The best questions, no two groups in more than two of them: who skips one wants to see others."""
    seen: Counter[frozenset[int]] = Counter()
    kept = []
    for a, b, probability in asked:
        ends = frozenset(groups[item] if groups[item] >= 0 else -1 - item for item in (a, b))
        seen[ends] += 1
        if seen[ends] <= 2:
            kept.append((a, b, probability))
        if len(kept) == MOST:
            break
    return tuple(kept)
