"""A pool that was grouped, kept beside its model: it can be grouped again under what a person said of its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medi.cluster.class_model import Anchors, ClassModel, Floats
from medi.cluster.moves import improve
from medi.cluster.posterior import ALONE, Branches, Ints, Posterior, known_label
from medi.cluster.ward import by_size, weighted_ward
from medi.discovery.describe import kind_of
from medi.discovery.grouping import (
    Grouped,
    Wanted,
    blurred,
    estimate_rates,
    holds_nothing_known,
    median,
    right_lines,
)
from medi.discovery.links import Links
from medi.discovery.recogniser import Recogniser
from medi.discovery.rehearsal import own_places
from medi.discovery.representations import chunks
from medi.discovery.result import Discovery, GroupingFacts, Kind
from medi.discovery.trust import Trust
from medi.errors import InputError
from medi.train.checkpoint import load_checkpoint, save_checkpoint

FILE = "pool.safetensors"
FORMAT = "medi-pool-1"
DRAWS = 24
"""Groupings drawn from the posterior: enough for a question, few enough for an answer within a moment."""


@dataclass(frozen=True)
class Regrouped:
    """A grouping of n items.

    Attributes:
        kinds: Of each item.
        labels: Group of each, the largest 0; -1 where it is not novel.
        known: The known class of each; empty where it is none.
        confidence: How probable it is that each line is right.
        samples: (s, n) groupings drawn from the posterior: items with equal numbers are together.
    """

    kinds: tuple[Kind, ...]
    labels: tuple[int, ...]
    known: tuple[str, ...]
    confidence: tuple[float, ...]
    samples: Ints


@dataclass(frozen=True)
class SavedPool:
    """Points of a pool, and the model that grouped them.

    Attributes:
        points: (n, d) in the order of clusters.csv.
        places: (n, 2) on the map.
        anchors: The known classes.
        names: Of the known classes.
        model: What a class is.
        facts: How the pool was grouped.
    """

    points: Floats
    places: Floats
    anchors: Anchors
    names: tuple[str, ...]
    model: ClassModel
    facts: GroupingFacts

    @staticmethod
    def save(folder: Path, items: Tensor, recogniser: Recogniser, discovery: Discovery) -> None:
        """Write the pool beside its recogniser."""
        assert discovery.grouping is not None
        points = torch.cat([recogniser.representation(part).float() for part in chunks(items)])
        places = torch.tensor(discovery.positions, dtype=torch.float32)
        facts = {"format": FORMAT, "grouping": asdict(discovery.grouping)}
        save_checkpoint(folder / FILE, {"points": points, "places": places}, facts)

    @classmethod
    def load(cls, model: Path) -> SavedPool:
        """Read the pool in a model folder; anything else is refused by name."""
        path, recogniser = model / FILE, Recogniser.load(model)
        if not path.is_file():
            raise InputError(f"{model} holds no {FILE}: run `medi discover` again, or give the folder that it wrote.")
        try:
            tensors, facts = load_checkpoint(path)
            if facts["format"] != FORMAT:
                raise ValueError(facts["format"])
            grouping = GroupingFacts(**facts["grouping"] | {"weights": tuple(facts["grouping"]["weights"])})
            points, places = tensors["points"].double().numpy(), tensors["places"].double().numpy()
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, OSError) as error:
            raise InputError(f"{path} is damaged or of another version: run `medi discover` again.") from error
        k = recogniser.groups
        counts = recogniser.places.counts[k:]
        anchors = Anchors(recogniser.places.sums[k:] / np.maximum(counts, 1)[:, None], counts)
        return cls(points, places, anchors, recogniser.names, recogniser.model, grouping)

    def __len__(self) -> int:
        """Items."""
        return len(self.points)

    def positions(self) -> Floats:
        """(n, 2) places on the map, 0 to 1."""
        return self.places

    def order(self) -> Ints:
        """Items in an order in which neighbours are alike."""
        return weighted_ward(self.points, np.ones(len(self))).leaf_order()

    def split(self, items: Sequence[int], parts: int) -> Ints:
        """The part (m,) of each of some items, the largest part 0."""
        some = np.array(items, dtype=np.int64)
        if not 1 <= parts <= len(some):
            raise InputError(f"{len(some)} pictures cannot be split into {parts}: ask for 1 to {len(some)}.")
        labels = weighted_ward(self.points[some], np.ones(len(some))).cut(parts)
        none = Anchors.none(self.points.shape[1])
        return by_size(improve(self.points[some], labels, none, self.model, 0.0, singles=True))

    def regroup(self, links: Links, start: NDArray[np.int64] | None = None) -> Regrouped:
        """Group again under links; `start` is not needed, because nothing is left to chance."""
        n = len(self)
        number = {name: c for c, name in enumerate(self.names)}
        labels = np.full(n, ALONE)
        for item, name in links.known.items():
            labels[item] = known_label(number[name])
        free = np.array([i for i in range(n) if i not in links.known and i not in links.aside], dtype=np.int64)
        said = labels <= known_label(0)
        anchors = self._taught(labels, said)
        confidence, samples = np.full(n, self.facts.most), np.tile(labels, (DRAWS, 1))
        if len(free):
            member, sizes = _components(n, links.together, free)
            means = np.zeros((len(sizes), self.points.shape[1]))
            np.add.at(means, member, self.points[free])
            means /= sizes[:, None]
            place = dict(zip(free.tolist(), member.tolist(), strict=True))
            apart = [(place[a], place[b]) for a, b in links.apart if a in place and b in place]
            found, chances, drawn = self._group(means, sizes, [pair for pair in apart if pair[0] != pair[1]], anchors)
            labels[free], confidence[free], samples[:, free] = found[member], chances[member], drawn[:, member]
        novel = labels >= 0
        labels[novel] = by_size(labels[novel])
        return Regrouped(
            kinds=tuple(kind_of(label) for label in labels.tolist()),
            labels=tuple(np.maximum(labels, -1).tolist()),
            known=tuple(self.names[known_label(0) - x] if x <= known_label(0) else "" for x in labels.tolist()),
            confidence=tuple(confidence.tolist()),
            samples=_distinct(samples),
        )

    def _taught(self, labels: Ints, said: NDArray[np.bool_]) -> Anchors:
        """The known classes with the items that a person said belong to them."""
        sums, counts = self.anchors.means * self.anchors.counts[:, None], self.anchors.counts.copy()
        for item in np.flatnonzero(said):
            sums[known_label(0) - labels[item]] += self.points[item]
            counts[known_label(0) - labels[item]] += 1
        return Anchors(sums / np.maximum(counts, 1)[:, None], counts)

    def _group(
        self, means: Floats, sizes: Ints, apart: list[tuple[int, int]], anchors: Anchors
    ) -> tuple[Ints, Floats, Ints]:
        """Labels (c,), confidence (c,) and draws (s, c) of components of items."""
        wanted = Wanted(self.facts.k, self.facts.only_novel or not len(anchors))
        if wanted.only_novel:
            anchors = Anchors.none(means.shape[1])
        branches = Branches.of(means, anchors, sizes=sizes, apart=apart)
        model, posterior, rates, known = estimate_rates(branches, anchors, self.model, wanted)
        if len(anchors) and holds_nothing_known(known, int(sizes.sum()), self.facts.mistaken):
            anchors = Anchors.none(means.shape[1])
            branches = Branches.of(means, anchors, sizes=sizes, apart=apart)
            model, posterior, rates, _ = estimate_rates(branches, anchors, self.model, wanted)
        numbers = blurred(posterior.numbers()[0], self.facts.spread)
        possible = np.isfinite(posterior.ways[-1][0])
        numbers = np.where(possible, numbers[: len(possible)], 0.0)
        feasible = np.flatnonzero(possible)
        k = int(feasible[np.abs(feasible - (self.facts.k or median(numbers))).argmin()])
        labels = branches.tree.cut(k) if wanted.only_novel and k else np.zeros(len(means), np.int64)
        if not wanted.only_novel or any(labels[a] == labels[b] for a, b in apart):
            best = Posterior.of(
                branches, model, rates.known, singles=wanted.singles, most=len(possible) - 1, total=np.maximum
            )
            labels = best.best(k)
        fixed = sizes > 1
        fixed[[item for pair in apart for item in pair]] = True
        labels = improve(
            means, labels, anchors, model, rates.known, singles=wanted.singles, sizes=sizes, fixed=fixed
        )  # fmt: skip
        generator = np.random.default_rng(0)
        chosen = generator.choice(len(numbers), DRAWS, p=numbers / numbers.sum())
        drawn = np.stack(list(posterior.draws(chosen, generator)))
        sampled = (np.sum([right_lines(truth, labels) for truth in drawn], axis=0) + 0.5) / (DRAWS + 1)
        grouped = Grouped(labels, posterior, numbers, rates, model, anchors)
        own = own_places(means, grouped, np.array([self.facts.temperature]), wanted)[:, 0]
        trust = Trust(self.facts.temperature, self.facts.weights, self.facts.most)
        return labels, trust(sampled, own), drawn


def _components(n: int, together: Sequence[tuple[int, int]], free: Ints) -> tuple[Ints, Ints]:
    """The component of each free item, numbered from 0, and how many items each has."""
    parent = list(range(n))

    def root(item: int) -> int:
        while parent[item] != item:
            parent[item] = parent[parent[item]]
            item = parent[item]
        return item

    for a, b in together:
        parent[root(a)] = root(b)
    _, member, sizes = np.unique([root(item) for item in free.tolist()], return_inverse=True, return_counts=True)
    return member, sizes


def _distinct(samples: Ints) -> Ints:
    """Samples (s, n) in which items alone have numbers of their own, so that equal numbers are together."""
    return np.where(samples == ALONE, samples.max() + 1 + np.arange(samples.shape[1]), samples)
