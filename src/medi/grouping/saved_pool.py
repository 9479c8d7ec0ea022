"""A pool that was grouped, kept beside its model: it can be grouped again under what a person said of its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError
from medi.core.tensors import load_arrays, save_arrays, under_prefix, with_prefix
from medi.grouping.by_posterior import QUICK_DRAWS, PosteriorGrouping
from medi.grouping.constraints import Constraints, Links
from medi.grouping.engine import ALONE, Anchors, Ask, Grouping, Kind, kind_of, known_label
from medi.grouping.numbers import NumberError
from medi.grouping.recogniser import Recogniser
from medi.grouping.rehearsal import Rehearsed
from medi.grouping.saved import POOL_RULE, check_arrays, check_facts
from medi.grouping.trust import Trust
from medi.grouping.ward import ward

SAVED_POOL = "pool.safetensors"
POOL_FORMAT, FIRST_FORMAT = "medi-pool-2", "medi-pool-1"
"""The first format had the points of every line, copies too, and no groups."""


@dataclass(frozen=True)
class Regrouped:
    """A grouping of n items.

    Attributes:
        kinds: Of each item.
        labels: Group of each, the largest 0; -1 where it is not novel.
        known: The known class of each; empty where it is none.
        confidence: How probable it is that each line is right.
        samples: (s, n) groupings drawn from the posterior: items with equal numbers are together.
        chances: (n, groups + known classes + 1) probability of every place of each item; alone is last.
        names: Of the known classes.
        pure: (groups,) probability that all items of a group are of one class.
        kin: (groups, groups) probability that two groups are of one class.

    >>> samples, chances = np.array([[0, 0, 1]]), np.array([[0.9, 0, 0], [0.9, 0, 0], [0, 0.8, 0.1]])
    >>> kinds, known = ("novel", "novel", "known"), ("", "", "a")
    >>> alone = np.ones(1), np.ones((1, 1))
    >>> Regrouped(kinds, (0, 0, -1), known, (0.9, 0.9, 0.8), samples, chances, ("a",), *alone).known[2]
    'a'
    """

    kinds: tuple[Kind, ...]
    labels: tuple[int, ...]
    known: tuple[str, ...]
    confidence: tuple[float, ...]
    samples: Ints
    chances: Floats
    names: tuple[str, ...]
    pure: Floats
    kin: Floats


@dataclass(frozen=True)
class SavedPool:
    """The grouping of a pool, and the lines of clusters.csv that it is about.

    Attributes:
        grouping: Of the different items.
        place: (m,) the item of each line.
        on_map: (m, 2) of each line, from 0 to 1.
        names: Of the known classes.

    >>> from medi.grouping.grouper import PosteriorGrouper
    >>> line, nobody = np.array([[0.0], [0.1], [9.0], [9.1]]), np.zeros(0, int)
    >>> grouping = PosteriorGrouper((), np.zeros((0, 1)), nobody).group(line, Anchors.none(width=1), Ask(k=2))
    >>> pool = SavedPool(grouping, place=np.array([0, 0, 1, 2, 3]), on_map=np.zeros((5, 2)), names=())
    >>> pool.regroup(Links(apart=((0, 2),))).labels  # the first two lines are copies of one item
    (1, 1, 0, 0, 0)
    """

    grouping: Grouping
    place: Ints
    on_map: Floats
    names: tuple[str, ...]

    def save(self, model: Path) -> None:
        """Write the pool into a model folder."""
        arrays, facts = self.grouping.pack()
        arrays = with_prefix("grouping", arrays) | {"place": self.place, "positions": self.on_map}
        save_arrays(model / SAVED_POOL, arrays, {"format": POOL_FORMAT, "grouping": facts, "names": list(self.names)})

    @classmethod
    def load(cls, model: Path) -> SavedPool:
        """Read the pool in a model folder; anything else is refused by name."""
        path = model / SAVED_POOL
        if not path.is_file():
            raise InputError(
                f"{model} holds no {SAVED_POOL}: run `medi discover` again, or give a folder that it wrote."
            )
        arrays, facts = load_arrays(path)
        try:
            if facts["format"] == FIRST_FORMAT:
                return _from_first_format(arrays, facts["grouping"], Recogniser.load(model))
            if facts["format"] != POOL_FORMAT:
                raise ValueError(facts["format"])
            check_facts(facts, POOL_RULE)
            check_arrays(arrays, {"place": "N", "positions": "nd"})
            grouping = PosteriorGrouping.unpack(under_prefix("grouping", arrays), facts["grouping"])
            place, names = arrays["place"], tuple(facts["names"])
            if (
                len(names) != len(grouping.known)
                or place.min(initial=0) < 0
                or place.max(initial=-1) >= len(grouping.labels)
            ):
                raise ValueError("parts do not fit together")
            return cls(grouping, place, arrays["positions"].astype(np.float64), names)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path} is damaged or of another version: run `medi discover` again.") from error

    def __len__(self) -> int:
        """Lines."""
        return len(self.place)

    @property
    def certain(self) -> dict[int, str]:
        """The known class of each line that is a copy of a labelled item."""
        labels, sure = self.grouping.labels[self.place], self.grouping.confidence[self.place]
        copies = np.flatnonzero((labels <= known_label(0)) & (sure == 1))
        return {int(line): self.names[known_label(0) - labels[line]] for line in copies}

    def positions(self) -> Floats:
        """(m, 2) places of lines on the map."""
        return self.on_map

    def order(self) -> Ints:
        """Lines in an order in which neighbours are alike."""
        rank = np.argsort(ward(self.grouping.points).leaf_order())
        return np.argsort(rank[self.place], kind="stable")

    def split(self, items: Sequence[int], parts: int) -> Ints:
        """The part (m,) of each of some lines, the largest part 0."""
        if not 1 <= parts <= len(items):
            raise InputError(f"{len(items)} pictures cannot be split into {parts}: ask for 1 to {len(items)}.")
        return self.grouping.split(self.place[list(items)], parts)

    def regroup(self, links: Links, start: object = None) -> Regrouped:
        """Group again under links; nothing is left to chance."""
        number = {name: c for c, name in enumerate(self.names)}
        known = {item: number[name] for item, name in links.known.items()}
        said = Constraints(links.together, links.apart, known, links.aside)
        grouping = self.grouping.regroup(said.of(self.place))
        return self._told(grouping.renumbered(grouping.numbers_by_size))

    def standing(self) -> Regrouped:
        """The groups as they were found, when nobody had said anything."""
        return self._told(self.grouping)

    def _told(self, grouping: Grouping) -> Regrouped:
        """What is said of every line."""
        labels = grouping.labels[self.place]
        return Regrouped(
            kinds=tuple(kind_of(label) for label in labels.tolist()),
            labels=tuple(np.maximum(labels, -1).tolist()),
            known=tuple(self.names[known_label(0) - x] if x <= known_label(0) else "" for x in labels.tolist()),
            confidence=tuple(grouping.confidence[self.place].tolist()),
            samples=_distinct(grouping.sample(QUICK_DRAWS))[:, self.place],
            chances=grouping.chances[self.place],
            names=self.names,
            pure=grouping.pure,
            kin=grouping.kin,
        )


def _distinct(samples: Ints) -> Ints:
    """Samples (s, n) in which items alone have numbers of their own, so that equal numbers are together."""
    return np.where(samples == ALONE, samples.max() + 1 + np.arange(samples.shape[1]), samples)


def _from_first_format(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], made: Recogniser) -> SavedPool:
    """The pool of an earlier version, whose model holds the rest; its groups are read from clusters.csv, not here."""
    points, k = arrays["points"].astype(np.float64), made.groups
    counts = made.places.counts[k:]
    known = Anchors(made.places.sums[k:] / np.maximum(counts, 1)[:, None], counts)
    trust = Trust(facts["temperature"], tuple(facts["weights"]), facts["most"])
    error = NumberError(0.0, facts["spread"])
    rehearsed = Rehearsed(made.model, error, trust, made.recognition, made.calibrated)
    different, place, copies = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    ask = Ask(facts["k"], only_novel=facts["only_novel"])
    grouping = PosteriorGrouping.of(different, copies, ask, known, rehearsed, QUICK_DRAWS)
    return SavedPool(grouping, place.reshape(-1), arrays["places"].astype(np.float64), made.names)
