"""Discoveries made up for tests of what is shown of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image

from medi.discovery.result import ClassCount, Diagnosis, Discovery, Neighbour, Verdict
from medi.photos.thumbnails import thumbnail


def made_up(sizes: Sequence[int], *, given: bool = False, verdict: Verdict = "trustworthy", seed: int = 0) -> Discovery:
    """Groups of these sizes, each a cloud on the map; the last item of a group of three or more is doubtful."""
    rng = np.random.default_rng(seed)
    k, items = len(sizes), sum(sizes)
    labels = np.repeat(np.arange(k), sizes)
    angle = 2 * np.pi * labels / k
    centres = 0.5 + 0.36 * np.stack([np.cos(angle), np.sin(angle)], 1) * (0.4 + 0.6 * (labels % 2))[:, None]
    positions = np.clip(centres + rng.normal(0, 0.035, (items, 2)), 0, 1)
    last = np.cumsum(sizes) - 1
    doubtful = np.isin(np.arange(items), [i for i, size in zip(last, sizes, strict=True) if size >= 3])
    candidates = tuple(range(max(1, k - 6), k + 7))
    return Discovery(
        labels=tuple(labels.tolist()),
        confidence=tuple(np.where(doubtful, 0.41, rng.uniform(0.7, 0.99, items)).tolist()),
        doubtful=tuple(doubtful.tolist()),
        nearest_known=tuple(rng.choice(["cat", "dog", "lynx"], items).tolist()),
        neighbours=((Neighbour("cat", 0.42), Neighbour("dog", 0.77), Neighbour("lynx", 1.1)),) * k,
        medoids=tuple((last - np.array(sizes) // 2).tolist()),
        count=ClassCount(
            k=k,
            low=k if given else max(1, k - 1),
            high=k if given else k + 2,
            candidates=() if given else candidates,
            scores=() if given else tuple(-(abs(c - k) ** 1.3) / 20 + 0.8 for c in candidates),
            certain=True,
            how="The number was given."
            if given
            else "Episodes of known classes with as many pictures agree best here.",
        ),
        diagnosis=Diagnosis(
            verdict=verdict,
            overlap=0.12,
            gain=0.043,
            distance=0.91,
            stability=0.88,
            reasons=(
                "The groups come out nearly the same when they are found again (0.88 of 1).",
                "Learning from known classes adds 4.3 points on known classes held back.",
            ),
        ),
        representation="encoder + projector",
        representation_scores={"encoder": 0.71, "encoder + projector": 0.753},
        positions=tuple((float(x), float(y)) for x, y in positions),
    )


def patterns(numbers: Sequence[int], size: int = 40) -> list[bytes]:
    """A JPEG for each number, no two the same: a gradient in a colour of its own."""
    ramp = np.linspace(0, 1, size)
    pictures = []
    for number in numbers:
        colour = np.random.default_rng(number).uniform(40, 255, 3)
        pixels = (ramp[:, None, None] * ramp[None, :, None] * colour).astype(np.uint8)
        pictures.append(thumbnail(Image.fromarray(pixels)))
    return pictures
