"""The curve that chose the number of groups, laid out for an SVG."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from medi.discovery.result import ClassCount

WIDTH, HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 16, 16, 34, 40
TICK_GAP = 40


@dataclass(frozen=True)
class Dot:
    """A candidate and its score, and where they go."""

    k: int
    score: float
    x: float
    y: float


@dataclass(frozen=True)
class Curve:
    """Places in a box of `WIDTH` by `HEIGHT`.

    Attributes:
        dots: By rising k.
        chosen: The dot of the number used; None where that number has no score.
        band: Left edge and width of the interval; (0, 0) where it lies outside of the candidates.
        ticks: Numbers to write below, and where.
    """

    dots: tuple[Dot, ...]
    chosen: Dot | None
    band: tuple[float, float]
    ticks: tuple[tuple[int, float], ...]

    @property
    def line(self) -> str:
        """The points of an SVG polyline."""
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


def curve(count: ClassCount) -> Curve | None:
    """Lay the scores out; None where nothing was scored. Scores that are not finite are left out."""
    scored = sorted((k, score) for k, score in zip(count.candidates, count.scores, strict=True) if isfinite(score))
    if not scored:
        return None
    numbers, scores = [k for k, _ in scored], [score for _, score in scored]
    first, last, worst, best = numbers[0], numbers[-1], min(scores), max(scores)
    room = 0.5  # on both sides, so that the band around a single number can be seen
    wide, high = last - first + 2 * room, best - worst

    def across(k: float) -> float:
        return round(LEFT + (k - first + room) / wide * (WIDTH - LEFT - RIGHT), 1)

    def down(score: float) -> float:
        # A flat curve is drawn across the middle.
        return round(TOP + ((best - score) / high if high else 0.5) * (HEIGHT - TOP - BOTTOM), 1)

    dots = tuple(Dot(k, score, across(k), down(score)) for k, score in scored)
    chosen = next((dot for dot in dots if dot.k == count.k), None)
    low, top = max(count.low - room, first - room), min(count.high + room, last + room)
    band = (across(low), round(across(top) - across(low), 1)) if low < top else (0.0, 0.0)
    # Every 1st, 2nd, 5th, 10th, … number, counted from the one used, so that they do not touch.
    for step in (digit * 10**power for power in range(20) for digit in (1, 2, 5)):
        ticks = tuple((k, across(k)) for k in numbers if (k - count.k) % step == 0)
        if all(b - a >= TICK_GAP for (_, a), (_, b) in pairwise(ticks)):
            break
    return Curve(dots, chosen, band, ticks)
