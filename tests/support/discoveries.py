"""Discoveries made up for tests of what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from medi.discover.facts import found
from medi.discover.result import ClassCount, Diagnosis, Discovery, Group, Verdict, is_doubtful
from medi.discover.verdict import MIXED_BELOW, group_verdict
from medi.photos.thumbnails import thumbnail

CLASSES = ("cat", "dog", "lynx")
REASONS = ("We expect about 86 % of your pictures to be sorted correctly.", "The groups follow your known classes.")


def made_up(
    sizes: Sequence[int],
    *,
    known: Mapping[str, int] | None = None,
    alone: int = 0,
    given: bool = False,
    verdict: Verdict = "trustworthy",
    calibrated: bool = True,
    seed: int = 0,
) -> Discovery:
    """Groups of these sizes, then items that look known, then items that are alone.

    Each group is a cloud on the map, and the last item of a group of three or more is doubtful. Groups are tight, but
    of every five the third may be one with the group before, and the fourth is mixed.
    """
    rng = np.random.default_rng(seed)
    k, novel = len(sizes), sum(sizes)
    names = [name for name, count in (known or {}).items() for _ in range(count)]
    items = novel + len(names) + alone
    labels = np.concatenate([np.repeat(np.arange(k), sizes), np.full(items - novel, -1)]).astype(int)
    angle = 2 * np.pi * labels / max(k, 1)
    centres = 0.5 + 0.36 * np.stack([np.cos(angle), np.sin(angle)], 1) * (0.4 + 0.6 * (labels % 2))[:, None]
    positions = np.clip(centres + rng.normal(0, 0.035, (items, 2)), 0, 1)
    ends = np.cumsum(np.asarray(sizes, dtype=int))
    last = [end - 1 for end, size in zip(ends, sizes, strict=True) if size >= 3]
    confidence = np.where(np.isin(np.arange(items), last), 0.41, rng.uniform(0.7, 0.985, items))
    if not calibrated:
        confidence = confidence / 2
    groups = []
    for g, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        pure, sibling_probability = 0.3 if g % 5 == 3 else 0.95, 0.4 if g % 5 == 2 else 0.05
        mean = float(confidence[end - size : end].mean()) if size else 0.0
        mean = min(mean, 0.6) if pure < MIXED_BELOW else mean
        groups.append(
            Group(
                items=size,
                confidence=mean,
                together=pure,
                pure=pure,
                verdict=group_verdict(mean, pure, sibling_probability, calibrated=calibrated and size > 1),
                sibling=None if k < 2 else g - 1 if g else 1,
                sibling_probability=sibling_probability,
                medoid=max(0, int(end) - 1 - size // 2),
                neighbours=CLASSES,
            )
        )
    candidates = tuple(range(max(1, k - 4), k + 7))
    weights = np.array([0.5 ** abs(c - k) for c in candidates])
    return Discovery(
        kinds=(*["novel"] * novel, *["known"] * len(names), *["alone"] * alone),
        labels=tuple(labels.tolist()),
        known=(*[""] * novel, *names, *[""] * alone),
        confidence=tuple(confidence.tolist()),
        doubtful=tuple(map(is_doubtful, confidence.tolist())),
        nearest_known=(*rng.choice(CLASSES, novel).tolist(), *names, *rng.choice(CLASSES, alone).tolist()),
        groups=tuple(groups),
        count=ClassCount(
            k=k,
            low=k if given else max(1, k - 1),
            high=k if given else k + 2,
            candidates=() if given else candidates,
            probabilities=() if given else tuple((weights / weights.sum()).tolist()),
            certain=True,
            how="You gave the number." if given else "Known classes that played new ones set how alike a class is.",
        ),
        diagnosis=Diagnosis(
            verdict=verdict,
            reasons=REASONS,
            expected=float(confidence.mean()) if items and calibrated else None,
            rehearsed=0.93 if calibrated else None,
            rehearsed_spread=0.02 if calibrated else None,
            gain=0.043 if calibrated else None,
            gain_spread=0.01 if calibrated else None,
            distance=0.91 if calibrated else None,
            overlap=0.12 if calibrated else None,
            known_share=len(names) / max(items, 1),
            calibrated=calibrated,
        ),
        representation="encoder + projector",
        representation_scores={"encoder": 0.71, "encoder + projector": 0.753},
        positions=tuple((float(x), float(y)) for x, y in positions),
    )


def facts_of(discovery: Discovery, paths: Sequence[str]) -> dict[str, Any]:
    """The part of `discovery.json` that the terminal speaks of."""
    return found(discovery, paths) | {"novel_photos": len(paths)}


def patterns(numbers: Sequence[int], size: int = 40) -> list[bytes]:
    """A JPEG for each number, no two the same: a gradient in a colour of its own."""
    ramp = np.linspace(0, 1, size)
    pictures = []
    for number in numbers:
        colour = np.random.default_rng(number).uniform(40, 255, 3)
        pixels = (ramp[:, None, None] * ramp[None, :, None] * colour).astype(np.uint8)
        pictures.append(thumbnail(Image.fromarray(pixels)))
    return pictures
