"""Can the groups be trusted? Figures that the paper's theory asks for, and a verdict in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.groups import group_means
from medi.cluster.kmeans import squared_distances
from medi.discovery.count import Pool
from medi.discovery.grouping import compact, thin
from medi.discovery.held_out import STANDARD_ERRORS, Choice, Split
from medi.discovery.result import ClassCount, Diagnosis, Verdict
from medi.metrics import ari

# The thresholds lie midway between problems that should and should not be trusted (docs/estimator.md, The verdict).
STABLE = 0.7
"""Mean adjusted Rand index from which a grouping counts as stable."""
GROUPED = 0.7
"""ACC on held-out known classes from which a representation counts as good at grouping."""
USEFUL = 0.05
"""ACC that learning from known classes has to add, beyond chance, for them to count as teaching something."""
FAR = 1.3
"""Distance from known classes, 1 for held-out known ones, beyond which what holds for known classes may not hold."""
OVERLAP_NEIGHBOURS, OVERLAP_RESAMPLES, OVERLAP_POINTS = 5, 20, 1000
"""How the overlap is estimated: neighbours, resamples (they only remove its bias), and most points."""
RESAMPLED = 0.8
"""Fraction of the items that a resample keeps."""


def diagnose(
    choice: Choice, pools: Sequence[Pool], novel: Tensor, stability: float | None, count: ClassCount
) -> Diagnosis:
    """A verdict and the figures behind it.

    Args:
        choice: What held-out known classes said.
        pools: Points of known classes that the representation was not fitted to.
        novel: Novel items (m, …).
        stability: Of the grouping; None where it could not be measured.
        count: How many groups, and whether that is certain.
    """
    overlap = largest_overlap(pools)
    distance = distance_from_known(choice.splits, novel)
    grouped = choice.scores.get(choice.representation)
    verdict = judge(
        grouped=grouped,
        gain=choice.gain,
        spread=choice.spread,
        distance=distance,
        stability=stability,
        certain=count.certain,
    )
    reasons = _reasons(grouped, choice, distance, stability, overlap, count)
    if verdict != "trustworthy":  # reasons against trust come first
        reasons = sorted(reasons, key=lambda reason: not reason[0])
    return Diagnosis(verdict, overlap, choice.gain, distance, stability, tuple(text for _, text in reasons))


def judge(
    *,
    grouped: float | None,
    gain: float | None,
    spread: float | None,
    distance: float | None,
    stability: float | None,
    certain: bool,
) -> Verdict:
    """The verdict.

    Trustworthy: held-out known classes are grouped well, the novel items lie where known classes do, and the grouping
    and its number are stable. No help: the novel items lie far from the known classes, or those are grouped badly and
    learning from them does not mend it. Doubtful: everything between, and whatever cannot be checked.

    Args:
        grouped: ACC on held-out known classes.
        gain: What learning from known classes adds to that.
        spread: Standard error of the gain.
        distance: Of the novel items from the known classes.
        stability: Of the grouping.
        certain: Whether the number of groups is.
    """
    if grouped is None:
        return "doubtful"
    near, good = distance is None or distance <= FAR, grouped >= GROUPED
    if near and good and certain and stability is not None and stability >= STABLE:
        return "trustworthy"
    teaches = gain is not None and spread is not None and gain > max(USEFUL, STANDARD_ERRORS * spread)
    if not near or (not good and not teaches):
        return "no help"
    return "doubtful"


def largest_overlap(pools: Sequence[Pool]) -> float | None:
    """The largest overlap of two known classes (tau of the paper's Definition 2).

    Classes of fewer than four items are left out; None where fewer than two are left.
    """
    from medi.theory import overlap

    found = []
    for pool in pools:
        few = thin(pool.labels, OVERLAP_POINTS, torch.Generator().manual_seed(0))
        points, labels = pool.points[few], pool.labels[few]
        counts = torch.bincount(labels)
        keep = counts[labels] >= 4
        if len(torch.unique(labels[keep])) < 2:
            continue
        neighbours = min(OVERLAP_NEIGHBOURS, int(counts[counts >= 4].min()) // 2 - 1)
        points, labels = compact(points[keep]), labels[keep]
        found.append(overlap(points, labels, neighbours=neighbours, bootstrap=OVERLAP_RESAMPLES).tau)
    return max(found) if found else None


def distance_from_known(splits: Sequence[Split], novel: Tensor) -> float | None:
    """How far novel items lie from the nearest known class; 1 is as far as held-out known classes lie from the others.

    The ratio of medians over items, averaged over splits. Features are taken as they are, because vectors of length 1
    are never far from each other; images as a network embeds them that has not seen the held-out classes.
    """
    if not splits or not len(novel):
        return None
    ratios = []
    for split in splits:
        candidates = split.candidates
        of_images = novel.ndim == 4 and len(candidates.learnt) > 0
        representation = next(iter((candidates.learnt if of_images else candidates.plain).values()))
        learnt = split.learnt_from
        centres = group_means(representation(learnt.images), learnt.labels, learnt.n_classes)
        far, usual = (
            float(squared_distances(representation(items), centres).amin(1).sqrt().median())
            for items in (novel, split.held_out.images)
        )
        if usual > 0:
            ratios.append(far / usual)
    return float(np.mean(ratios)) if ratios else None


def stability_of(
    labels: NDArray[np.int64],
    regroup: Callable[[Tensor], NDArray[np.int64]],
    augmented: Sequence[NDArray[np.int64]],
    *,
    resamples: int,
    generator: torch.Generator,
) -> float | None:
    """Mean adjusted Rand index of a grouping (n,) with groupings of part of the items and of augmented items.

    Args:
        labels: The grouping.
        regroup: Groups the items of some indices.
        augmented: Groupings of all items after augmentation, (n,) each.
        resamples: How many parts are drawn.
        generator: Source of the draws.

    Returns:
        None where there is nothing to compare: fewer than five items, or no second group.
    """
    n, k = len(labels), len(np.unique(labels))
    size = max(k, round(RESAMPLED * n))
    if n < 5 or k < 2 or size == n:
        return None
    scores = [ari(labels, other) for other in augmented]
    for _ in range(resamples):
        part = torch.randperm(n, generator=generator, device=generator.device)[:size].cpu()
        scores.append(ari(labels[part.numpy()], regroup(part)))
    return float(np.mean(scores)) if scores else None


def _reasons(
    grouped: float | None,
    choice: Choice,
    distance: float | None,
    stability: float | None,
    overlap: float | None,
    count: ClassCount,
) -> list[tuple[bool, str]]:
    """Plain sentences, and whether each speaks against trust; the most important first."""
    found: list[tuple[bool, str]] = []
    if grouped is None:
        found.append((True, "There are too few known classes to try the grouping on: nothing was learnt or checked."))
    else:
        good = grouped >= GROUPED
        text = f"On known classes hidden from it, this way of grouping puts {100 * grouped:.0f} % of the items right"
        found.append((not good, text + ("." if good else ", too few to rely on.")))
    if stability is not None:
        good = stability >= STABLE
        text = f"Grouped again without a fifth of the items, the groups agree to {stability:.2f} (1 = always the same)"
        found.append((not good, text + ("." if good else ": they depend on chance.")))
    else:
        found.append((True, "With a single group or so few items, whether the grouping is stable cannot be checked."))
    if not count.certain:
        between = f": between {count.low} and {count.high}" if count.low < count.high else ""
        found.append((True, f"The number of groups is uncertain{between}."))
    if distance is not None:
        text = f"The novel items lie {distance:.1f} times as far from the known classes as those lie from each other"
        if distance > FAR:
            text += ": what holds for known classes need not hold for them"
        found.append((distance > FAR, text + "."))
    if choice.gain is not None and choice.spread is not None:
        teaches = choice.gain > STANDARD_ERRORS * choice.spread
        text = "Learning from known classes changes the share of hidden known items that are put right by"
        text += f" {100 * choice.gain:+.1f} points"
        text += f" (standard error {100 * choice.spread:.1f})"
        found.append((not teaches, text + ("." if teaches else ", so items are compared as they are.")))
    if overlap is not None:
        text = f"Of the two known classes that are hardest to tell apart, {100 * overlap:.0f} % lies where both occur"
        found.append((overlap > 0.5, text + "."))
    return found
