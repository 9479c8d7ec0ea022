"""Single moves: each item goes where the evidence is largest, and how likely every place is for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.branches import Units
from medi.grouping.class_model import ClassModel, Terms, log_total
from medi.grouping.engine import ALONE, Anchors, known_label

MOVING_ROUNDS = 20
"""Rounds after which moving stops, whether or not something would still move."""
GAIN = 1e-9
"""Least gain of evidence for which an item moves."""
LARGEST_SCORE = 1e9
"""Evidence beyond which rounding would swallow probabilities."""


@dataclass(frozen=True)
class Places:
    """Where items may be: groups 0 to k - 1, then known classes, each with its items' sum.

    Attributes:
        sums: (k + c, d).
        counts: (k + c,) items, those behind a known class among them.
        groups: k.
    """

    sums: Floats
    counts: Floats
    groups: int

    @classmethod
    def of(cls, points: Floats, labels: Ints, anchors: Anchors, sizes: Ints | None = None) -> Places:
        """The places of points (n, d), means of `sizes` items, with labels (n,) as `Posterior.draws` gives them."""
        weights = np.ones(len(points)) if sizes is None else sizes.astype(np.float64)
        groups = int(labels.max(initial=-1)) + 1
        sums = np.zeros((groups + len(anchors), points.shape[1]))
        counts = np.zeros(len(sums))
        sums[groups:], counts[groups:] = anchors.means * anchors.counts[:, None], anchors.counts
        place = place_of(labels, groups)
        inside = place >= 0
        np.add.at(sums, place[inside], (points * weights[:, None])[inside])
        np.add.at(counts, place[inside], weights[inside])
        return cls(sums, counts, groups)

    def scores(self, point: Floats, squares: Floats, terms: Terms) -> Floats:
        """Log weight (k + c + 1,) of each place for a further point (d,), the last for a place of its own."""
        model = terms.model
        length = float(point @ point)
        joined = squares + 2 * (self.sums @ point) + length
        gain = model.evidence(self.counts + 1, joined) - model.evidence(self.counts, squares)
        gain[: self.groups] += np.log(self.counts[: self.groups] + model.evenness)
        gain[: self.groups][self.counts[: self.groups] == 0] = -np.inf
        gain[self.groups :] += terms.log_rate
        return np.append(gain, model.evidence(1, length) + (model.log_new if terms.singles else model.log_alone))

    def all_scores(self, points: Floats, model: ClassModel) -> Floats:
        """Log weight (n, k + c + 1) of each place for further points (n, d), the last for none of them.

        Groups count alike, whatever their size: how large a group was in the pool says little of what comes later.
        """
        squares, lengths = np.square(self.sums).sum(1), np.square(points).sum(1)
        joined = squares + 2 * (points @ self.sums.T) + lengths[:, None]
        gain = model.evidence(self.counts + 1, joined) - model.evidence(self.counts, squares)
        scores = np.concatenate([gain, model.evidence(1, lengths)[:, None]], 1)
        top = gain.max(1, keepdims=True, initial=-np.inf)
        return scores - np.where(np.isfinite(top) & (np.abs(top) > LARGEST_SCORE), top, 0.0)  # only differences count


def improve(units: Units, labels: Ints, terms: Terms) -> Ints:
    """Move items one at a time to where they fit better, until nothing moves; the number of groups stays.

    A point with copies never becomes alone.

    Args:
        units: What is grouped; points that are fixed do not move.
        labels: (n,) as `Posterior.draws` gives them.
        terms: On which they move.
    """
    points, singles = units.points, terms.singles
    labels, places = labels.copy(), Places.of(points, labels, terms.anchors, units.sizes)
    moving = np.flatnonzero(~units.fixed).tolist()
    squares = np.square(places.sums).sum(1)
    least = 1 if singles else 2
    for _ in range(MOVING_ROUNDS):
        moved = False
        for i in moving:
            point, here = points[i], int(place_of(labels[i : i + 1], places.groups)[0])
            if 0 <= here < places.groups and places.counts[here] <= least:
                continue
            if here >= 0:
                _shift(places, squares, here, point, -1)
            scores = places.scores(point, squares, terms)
            if singles or units.copies[i] > 1:
                scores[-1] = -np.inf
            own = scores[here] if here >= 0 else scores[-1]
            best = int(scores.argmax())
            if scores[best] > own + GAIN:
                moved = True
                here = best if best < len(places.counts) else ALONE
                labels[i] = here if here < places.groups else known_label(here - places.groups)
            if here >= 0:
                _shift(places, squares, here, point, 1)
        if not moved:
            break
    return labels


def place_scores(points: Floats, labels: Ints, terms: Terms) -> Floats:
    """Log weight (n, k + c + 1) of every place for each item, given where all others are.

    The last is a place of its own. An item that is the only one of its group has no other place there.
    """
    places = Places.of(points, labels, terms.anchors)
    squares = np.square(places.sums).sum(1)
    scores = np.empty((len(points), len(places.counts) + 1))
    for i, (point, here) in enumerate(zip(points, place_of(labels, places.groups), strict=True)):
        if here >= 0:
            _shift(places, squares, here, point, -1)
        scores[i] = places.scores(point, squares, terms)
        if here >= 0:
            _shift(places, squares, here, point, 1)
    return scores


def log_fits(scores: Floats, power: float) -> Floats:
    """Logarithm (n, places) of how well each item fits every place, by scores raised to a power."""
    raised = power * (scores - scores.max(1, keepdims=True))
    return np.asarray(raised - log_total(raised))


def place_of(labels: Ints, groups: int) -> Ints:
    """Index of the place of each label: groups first, then known classes; -1 for items alone."""
    return np.where(labels >= ALONE, labels, groups - 2 - labels)


def _shift(places: Places, squares: Floats, at: int, point: Floats, sign: int) -> None:
    """Put a point into a place or take it out."""
    places.sums[at] += sign * point
    places.counts[at] += sign
    squares[at] = places.sums[at] @ places.sums[at]
