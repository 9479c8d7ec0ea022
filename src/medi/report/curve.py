"""How probable each number of groups is, laid out as bars for an SVG."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from medi.discover.result import ClassCount

BOX_WIDTH, BOX_HEIGHT = 560, 260
LEFT, RIGHT, TOP, BOTTOM = 16, 16, 34, 40
TICK_GAP = 40
WIDEST_BAR = 44.0
LEAST = 0.002
"""Numbers less probable than this at either end are left off, unless they lie in the interval."""


@dataclass(frozen=True)
class Bar:
    """A number of groups and its probability, and where they go: the middle of the bar, and its top."""

    k: int
    probability: float
    x: float
    y: float


@dataclass(frozen=True)
class Curve:
    """Places in a box of `BOX_WIDTH` by `BOX_HEIGHT`."""

    bars: tuple[Bar, ...]  # by rising k
    width: float  # of a bar
    band: tuple[float, float]  # left edge and width of the interval; (0, 0) where it lies outside of the candidates
    ticks: tuple[tuple[int, float], ...]  # numbers to write below, and where
    labelled: frozenset[int]  # numbers that have room for their probability above the bar

    @property
    def peak(self) -> Bar:
        """The most probable number."""
        return max(self.bars, key=lambda bar: bar.probability)


def curve(count: ClassCount) -> Curve | None:
    """Lay the probabilities out; None where there are none. What is not finite is left out."""
    pairs = sorted((k, p) for k, p in zip(count.candidates, count.probabilities, strict=True) if isfinite(p))
    worth = [k for k, p in pairs if p >= LEAST or count.low <= k <= count.high or k == count.k]
    if not worth:
        return None
    first, last = worth[0], worth[-1]
    shown = [(k, p) for k, p in pairs if first <= k <= last]
    room = 0.5  # on both sides, for half a bar
    unit = (BOX_WIDTH - LEFT - RIGHT) / (last - first + 2 * room)
    highest = max(p for _, p in shown)

    def across(k: float) -> float:
        return round(LEFT + (k - first + room) * unit, 1)

    def down(probability: float) -> float:
        part = probability / highest if highest > 0 else 0.0
        return round(BOX_HEIGHT - BOTTOM - part * (BOX_HEIGHT - TOP - BOTTOM), 1)

    bars = tuple(Bar(k, p, across(k), down(p)) for k, p in shown)
    low, top = max(count.low, first) - room, min(count.high, last) + room
    band = (across(low), round(across(top) - across(low), 1)) if low < top else (0.0, 0.0)
    # Every 1st, 2nd, 5th, 10th, … number, counted from the one used, so that they do not touch.
    for step in (digit * 10**power for power in range(20) for digit in (1, 2, 5)):
        ticks = tuple((bar.k, bar.x) for bar in bars if (bar.k - count.k) % step == 0)
        if all(b - a >= TICK_GAP for (_, a), (_, b) in pairwise(ticks)):
            break
    all_fit = all(b.x - a.x >= TICK_GAP for a, b in pairwise(bars))
    labelled = frozenset(bar.k for bar in bars if all_fit) or frozenset({max(bars, key=lambda bar: bar.probability).k})
    return Curve(bars, round(min(WIDEST_BAR, 0.72 * unit), 2), band, ticks, labelled)
