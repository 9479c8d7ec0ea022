"""Fewer than four known classes cannot rehearse: usual settings apply, and no confidence is above a guess."""

from __future__ import annotations

import numpy as np

from medi.core.arrays import Floats, Ints
from medi.grouping.branches import Branches, Units
from medi.grouping.class_model import ClassModel
from medi.grouping.engine import GUESS, Anchors, Ask
from medi.grouping.moves import Places
from medi.grouping.numbers import NumberError
from medi.grouping.posterior import Posterior
from medi.grouping.recognition import Recognition, curve, lead
from medi.grouping.rehearsal import SHARPNESS, USUAL_SCALE, Rehearsed
from medi.grouping.search import Odds, group_units
from medi.grouping.trust import UNTESTED

SHARES = np.array([0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
"""How alike items of a class may be; without known classes, the evidence of the pool chooses."""
USUAL_ERROR = NumberError(0.0, 0.35)
"""How far the number of groups may be off."""
MOST_TRIED = 300
"""Items of the pool that the choice is made with."""


def unrehearsed(points: Floats, known: Floats, labels: Ints, ask: Ask) -> Rehearsed:
    """Usual settings, as far as the pool (n, d) itself and a few items (m, d) of known classes (m,) can set them."""
    every = np.concatenate([points, known])[: 4 * MOST_TRIED]
    covariance = np.cov(every.T, bias=True).reshape(every.shape[1], -1) if len(every) > 1 else np.eye(points.shape[1])
    trace = float(np.trace(covariance))
    dimensions = SHARPNESS * (trace**2 / float(np.square(covariance).sum()) if trace > 0 else 1.0)
    share = _alike(known, labels)
    if share is None:
        share = _likeliest_share((points if len(points) else known)[:MOST_TRIED], dimensions)
    model = ClassModel(share, dimensions)
    places = labels  # known classes and, after them, groups
    if len(points):
        none = Anchors.none(points.shape[1])
        grouped = group_units(Units.single(points), none, model, Ask(ask.k), Odds(), USUAL_ERROR)
        places = np.concatenate([labels, labels.max(initial=-1) + 1 + grouped.labels])
    # Up to `MOST_TRIED` known items and items of the pool, from everywhere.
    of_known, of_pool = (np.linspace(0, n - 1, min(n, MOST_TRIED)).astype(np.int64) for n in (len(known), len(points)))
    some = np.concatenate([of_known, len(known) + of_pool])
    leads = _own_leads(np.concatenate([known, points]), places, some, model)
    recognition = Recognition(0.25, 0.0, 0.0, 0.0, curve(0.25 * leads), GUESS)
    return Rehearsed(model, USUAL_ERROR, UNTESTED, recognition, calibrated=False)


def _alike(known: Floats, labels: Ints) -> float | None:
    """The usual part of the mean inner product of two items of one known class; None without two such items."""
    total = pairs = 0.0
    for c in np.unique(labels):
        mine = known[labels == c]
        total += float(np.square(mine.sum(0)).sum() - np.square(mine).sum())
        pairs += len(mine) * (len(mine) - 1)
    return float(np.clip(USUAL_SCALE * total / pairs, 0.02, 0.98)) if pairs else None


def _likeliest_share(points: Floats, dimensions: float) -> float:
    """The share under which the pool itself is likeliest, over all groupings of its tree."""
    branches = Branches.of(Units.single(points), Anchors.none(points.shape[1]))
    model = ClassModel(SHARES[:, None], dimensions)
    total = Posterior.of(branches, model, singles=True, most=len(points)).ways[-1]
    # The scatter of single items is part of the model: a larger share leaves less of it.
    scatter = len(points) * dimensions / 2 * np.log1p(-SHARES)
    lengths = float(np.square(points).sum()) * dimensions / 2 * SHARES / (1 - SHARES)
    return float(SHARES[(np.logaddexp.reduce(total, axis=1) - scatter - lengths).argmax()])


def _own_leads(points: Floats, labels: Ints, some: Ints, model: ClassModel) -> Floats:
    """Lead over "none" of some items in the best place, their own taken without them; not of those that fill one."""
    places = Places.of(points, labels, Anchors.none(points.shape[1]))
    found = []
    for point, own in zip(points[some], labels[some], strict=True):
        if places.counts[own] > 1:
            rest = Places(places.sums.copy(), places.counts.copy(), places.groups)
            rest.sums[own] -= point
            rest.counts[own] -= 1
            found.append(float(lead(rest.all_scores(point[None], model))[0]))
    return np.array(found)
