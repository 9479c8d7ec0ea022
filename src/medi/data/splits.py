"""Which known classes play novel when something is chosen or calibrated on known classes alone."""

from __future__ import annotations

from itertools import combinations

from medi.core.draws import Draws
from medi.core.errors import InputError

FEWEST_KNOWN = 4
"""With fewer known classes nothing can be chosen."""
RANDOM_SPLITS = 5


def held_out_splits(n_known: int, count: int | None = None) -> list[tuple[int, ...]]:
    """The classes held out in each split: so many of the known ones; None for a fifth, at least two.

    Every combination where there are five known classes, else `RANDOM_SPLITS` random ones.
    """
    if n_known < FEWEST_KNOWN:
        raise InputError(
            f"{n_known} known classes are too few to choose by (at least {FEWEST_KNOWN}): use the default settings."
        )
    if count is None:
        count = max(2, n_known // 5)
    if not 2 <= count <= n_known - 2:
        raise InputError(
            f"--held-out {count}: of {n_known} known classes, or families of them, hold out 2 to {n_known - 2}."
        )
    if n_known == 5:
        return list(combinations(range(5), count))
    draws = Draws(0)
    splits: list[tuple[int, ...]] = []
    while len(splits) < RANDOM_SPLITS:
        split = tuple(sorted(draws.permutation(n_known)[:count].tolist()))
        if split not in splits:
            splits.append(split)
    return splits
