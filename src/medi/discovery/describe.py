"""What is reported of the items and the groups of a pool."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

from medi.cluster.class_model import Anchors, Floats
from medi.cluster.moves import Places
from medi.cluster.posterior import ALONE, Ints, Marginals, known_label
from medi.data.imageset import ImageSet
from medi.discovery.held_out import Choice
from medi.discovery.map import map_positions
from medi.discovery.recogniser import Recogniser
from medi.discovery.rehearsal import Rehearsed
from medi.discovery.representations import Representation
from medi.discovery.result import DOUBTFUL_BELOW, ClassCount, Diagnosis, Discovery, Group, GroupingFacts, Kind
from medi.discovery.verdict import Figures, diagnosis_of, group_verdict

if TYPE_CHECKING:
    from medi.discovery.discover import Found

Each = TypeVar("Each")

NEAREST_NAMED = 3
"""Most similar known classes named for each group."""
COMPARED = 10
"""Most items of a group that are compared with those of another."""


def describe(found: Found, figures: Figures, choice: Choice, names: tuple[str, ...], seed: int, noun: str) -> Discovery:
    """The discovery among the different items of a pool."""
    labels, k = found.grouped.labels, found.count.k
    likeness = _likeness(found)
    nearest = tuple(names[i] for i in likeness.argmax(1)) if names else ("",) * len(labels)
    return Discovery(
        kinds=tuple(kind_of(label) for label in labels.tolist()),
        labels=tuple(np.maximum(labels, -1).tolist()),
        known=tuple(names[known_label(0) - label] if label <= known_label(0) else "" for label in labels.tolist()),
        confidence=tuple(found.confidence.tolist()),
        doubtful=tuple((found.confidence < DOUBTFUL_BELOW).tolist()),
        nearest_known=nearest,
        groups=tuple(_groups(found, k, likeness, names)),
        count=found.count,
        diagnosis=diagnosis_of(figures, noun),
        representation=choice.representation,
        representation_scores=dict(choice.scores),
        positions=map_positions(torch.from_numpy(found.points), seed),
        grouping=_grouping(found),
    )


def _grouping(found: Found) -> GroupingFacts:
    rehearsed = found.rehearsed
    trust = rehearsed.trust
    return GroupingFacts(
        rehearsed.spread,
        rehearsed.mistaken,
        trust.temperature,
        trust.weights,
        trust.most,
        found.only_novel,
        None if found.count.candidates else found.count.k,
    )


def kind_of(label: int) -> Kind:
    """The kind of an item with a label of the posterior."""
    return "novel" if label >= 0 else "alone" if label == ALONE else "known"


def as_found(discovery: Discovery, recogniser: Recogniser, place: Ints) -> tuple[Discovery, Recogniser]:
    """The discovery among all items: the one at `place` (m,) of the different ones; the largest group is again 0."""
    labels = np.array(discovery.labels, dtype=np.int64)[place]
    novel = labels >= 0
    numbered = labels.copy()
    numbered[novel] = by_size_then_number(labels[novel])
    old = np.arange(recogniser.groups)
    old[numbered[novel]] = labels[novel]
    first = {int(item): i for i, item in reversed(list(enumerate(place.tolist())))}
    new = np.empty_like(old)
    new[old] = np.arange(len(old))
    sizes = np.bincount(numbered[novel], minlength=len(old))
    groups = [
        replace(
            discovery.groups[before],
            items=int(sizes[number]),
            medoid=first[discovery.groups[before].medoid],
            sibling=None if (other := discovery.groups[before].sibling) is None else int(new[other]),
        )
        for number, before in enumerate(old.tolist())
    ]

    def each(values: tuple[Each, ...]) -> tuple[Each, ...]:
        return tuple(values[i] for i in place.tolist())

    whole = replace(
        discovery,
        kinds=each(discovery.kinds),
        labels=tuple(numbered.tolist()),
        known=each(discovery.known),
        confidence=each(discovery.confidence),
        doubtful=each(discovery.doubtful),
        nearest_known=each(discovery.nearest_known),
        groups=tuple(groups),
        positions=each(discovery.positions),
    )
    return whole, recogniser.renumbered(old)


def by_size_then_number(labels: Ints) -> Ints:
    """Labels (n,) numbered anew, the largest group 0; of equal ones that with the smaller number first."""
    present, dense, counts = np.unique(labels, return_inverse=True, return_counts=True)
    rank = np.empty(len(present), dtype=np.int64)
    rank[np.lexsort((present, -counts))] = np.arange(len(present))
    return rank[dense]


def nothing(
    known: ImageSet, choice: Choice, representation: Representation, anchors: Anchors, rehearsed: Rehearsed
) -> tuple[Discovery, Recogniser]:
    """The result where the pool is empty."""
    recogniser = Recogniser.of(
        representation, anchors.means[:0], np.zeros(0, np.int64), anchors, known.class_names, rehearsed.model,
        rehearsed.recognition, calibrated=bool(choice.splits),
    )  # fmt: skip
    count = ClassCount(0, 0, 0, (), (), True, "No groups: there is no novel item.")
    reasons = ("There is no novel item to group.",)
    diagnosis = Diagnosis(
        "doubtful", reasons, None, None, None, choice.gain, choice.spread, None, None, 0.0, bool(choice.splits)
    )
    empty: tuple[()] = ()
    scores = dict(choice.scores)
    return Discovery(
        empty, empty, empty, empty, empty, empty, empty, count, diagnosis, choice.representation, scores, empty
    ), recogniser  # fmt: skip


def _likeness(found: Found) -> Floats:
    """Evidence (n, c) that each item is of each known class."""
    if not len(found.anchors):
        return np.zeros((len(found.points), 0))
    places = Places.of(found.points[:0], np.zeros(0, np.int64), found.anchors)
    return places.all_scores(found.points, found.grouped.model)[:, :-1]


def _groups(found: Found, k: int, likeness: Floats, names: tuple[str, ...]) -> list[Group]:
    labels, points = found.grouped.labels, found.points
    members = [np.flatnonzero(labels == g) for g in range(k)]
    reach = len(found.grouped.posterior.ways[-1][0])
    marginals = Marginals.of(found.grouped.posterior, found.numbers[:reach] / found.numbers[:reach].sum())
    some = np.concatenate([mine[:COMPARED] for mine in members]) if members else np.zeros(0, np.int64)
    of = np.repeat(np.arange(k), [min(COMPARED, len(mine)) for mine in members])
    pairs = marginals.together(some)
    indicator = (of == np.arange(k)[:, None]).astype(np.float64)
    sizes = indicator.sum(1)
    between = indicator @ pairs @ indicator.T / np.maximum(sizes[:, None] * sizes, 1)
    groups = []
    for g, mine in enumerate(members):
        inside = (between[g, g] * sizes[g] - 1) / (sizes[g] - 1) if sizes[g] > 1 else 1.0
        others = between[g].copy()
        others[g] = -1
        sibling = int(others.argmax()) if k > 1 else None
        probability = float(others.max()) if k > 1 else 0.0
        centre = points[mine].sum(0)
        medoid = int(mine[np.argmax(2 * points[mine] @ centre / len(mine) - np.square(points[mine]).sum(1))])
        closest = likeness[mine].mean(0).argsort()[::-1][:NEAREST_NAMED] if names else []
        groups.append(
            Group(
                items=len(mine),
                confidence=float(found.confidence[mine].mean()),
                together=float(inside),
                verdict=group_verdict(float(inside), probability, len(mine), calibrated=found.calibrated),
                sibling=sibling,
                sibling_probability=probability,
                medoid=medoid,
                neighbours=tuple(names[i] for i in closest),
            )
        )
    return groups
