"""Recognise new items: a discovered group, a known class, or none of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from medi.cluster.kmeans import squared_distances
from medi.cluster.trees import means
from medi.data.images import ImageSet
from medi.discover.evidence import Split, thin
from medi.discover.representation import Representation, class_means
from medi.errors import InputError
from medi.files import make_folder
from medi.methods.embedding import best_temperature
from medi.train.checkpoint import load_checkpoint, save_checkpoint, under_prefix, with_prefix

FILE = "recogniser.safetensors"
FORMAT = "medi-recogniser-1"
OTHERS = 5
"""Means, beside the nearest, that an item's strangeness goes by."""
MOST_ASKED = 4000
"""Known items that set the temperature."""
UNCALIBRATED = 0.95
"""Share of the items in hand that are accepted where no known class can play "none"."""


@dataclass(frozen=True)
class Recognised:
    """What an item was taken for.

    Attributes:
        kind: A discovered group, a known class, or neither.
        label: Number of the group, name of the class, or empty.
        confidence: 0 to 1, in the kind and the label; for none, in that.
    """

    kind: Literal["novel", "known", "none"]
    label: str
    confidence: float


@dataclass(frozen=True)
class Recogniser:
    """The nearest mean, unless that is too far.

    Attributes:
        representation: What items are compared by.
        groups: (k, d) means of the discovered groups.
        classes: (c, d) means of the known classes.
        names: Of the known classes.
        sizes: (k + c,) items behind each mean: the mean of a few is less certain, and more distance is allowed.
        temperature: Squared distance that makes a class e times less likely.
        limits: Strangeness beyond which an item is none: nearest to a group, nearest to a known class.
        calibrated: Whether held-out known classes set the limits.
    """

    representation: Representation
    groups: Tensor
    classes: Tensor
    names: tuple[str, ...]
    sizes: Tensor
    temperature: float
    limits: tuple[float, float]
    calibrated: bool

    def recognise(self, items: Tensor) -> list[Recognised]:
        """What each of the items (n, …) is taken for, each by itself."""
        if not len(items):
            return []
        distances = self.distances(self.representation(items))
        far, place = strangeness(distances), distances.argmin(1)
        probability = self.probabilities(distances).gather(1, place[:, None]).squeeze(1)
        answers = []
        for strange, at, sure in zip(far.tolist(), place.tolist(), probability.tolist(), strict=True):
            kind: Literal["novel", "known"] = "novel" if at < len(self.groups) else "known"
            limit = self.limits[kind == "known"]
            inside = _inside(strange, limit)
            if inside < 0.5:
                answers.append(Recognised("none", "", 1 - inside))
            else:
                label = str(at) if kind == "novel" else self.names[at - len(self.groups)]
                answers.append(Recognised(kind, label, inside * sure))
        return answers

    def nearest(self, items: Tensor) -> Tensor:
        """(n,) int64, the nearest mean of each item: 0 to k - 1 for groups, then known classes; never none."""
        if not len(items):
            return torch.zeros(0, dtype=torch.int64)
        return self.distances(self.representation(items)).argmin(1)

    def distances(self, points: Tensor) -> Tensor:
        """Squared distances (n, k + c) of points to groups and known classes, less where a mean is uncertain."""
        centres = torch.cat([self.groups, self.classes])
        return squared_distances(points, centres) * (self.sizes / (self.sizes + 1))

    def probabilities(self, distances: Tensor) -> Tensor:
        """(n, k + c), of each mean, if it is one of them."""
        return (-distances / self.temperature).softmax(1)

    def save(self, folder: Path) -> None:
        """Write one file into a folder: whole, or not at all."""
        tensors, facts = self.representation.pack()
        tensors = with_prefix("representation", tensors)
        tensors |= {"groups": self.groups, "classes": self.classes, "sizes": self.sizes}
        save_checkpoint(
            make_folder(folder) / FILE,
            tensors,
            {
                "format": FORMAT,
                "representation": facts,
                "names": list(self.names),
                "temperature": self.temperature,
                "limits": [None if limit == torch.inf else limit for limit in self.limits],
                "calibrated": self.calibrated,
            },
        )

    @classmethod
    def load(cls, folder: Path) -> Recogniser:
        """Read what `save` wrote; a folder that holds anything else is refused by name."""
        path = folder / FILE
        if not path.is_file():
            raise InputError(f"{folder} holds no {FILE}: give the model folder that `medi discover` wrote.")
        try:
            tensors, facts = load_checkpoint(path)
            if facts["format"] != FORMAT:
                raise ValueError(facts["format"])
            representation = Representation.unpack(under_prefix("representation", tensors), facts["representation"])
            recogniser = cls(
                representation,
                tensors["groups"],
                tensors["classes"],
                tuple(str(name) for name in facts["names"]),
                tensors["sizes"],
                float(facts["temperature"]),
                _pair([torch.inf if limit is None else float(limit) for limit in facts["limits"]]),
                bool(facts["calibrated"]),
            )
            recogniser._check()
        except (
            InputError,
            KeyError,
            TypeError,
            ValueError,
            RuntimeError,
            IndexError,
            AttributeError,
            OSError,
        ) as error:
            raise InputError(f"{path} is damaged or not of this program: run `medi discover` again.") from error
        return recogniser

    def _check(self) -> None:
        """Refuse parts that do not fit together."""
        if len(self.names) != len(self.classes) or len(self.sizes) != len(self.groups) + len(self.classes):
            raise ValueError("parts differ in length")
        if self.groups.shape[1] != self.classes.shape[1]:
            raise ValueError("parts differ in width")


def make_recogniser(
    representation: Representation, known: ImageSet, groups: Tensor, group_sizes: Tensor, splits: Sequence[Split]
) -> Recogniser:
    """A recogniser of discovered groups and known classes.

    Args:
        representation: What was kept.
        known: The known classes; may be none.
        groups: (k, d) means of the discovered groups.
        group_sizes: (k,) items in each.
        splits: Known classes of which some play "none"; without any, limits are set by the items in hand.
    """
    counts = torch.bincount(known.labels, minlength=known.n_classes)
    classes = class_means(known, representation) if known.n_classes else groups[:0]
    sizes = torch.cat([group_sizes, counts]).double()
    recogniser = Recogniser(
        representation, groups, classes, known.class_names, sizes, 1.0, (torch.inf, torch.inf), False
    )
    if known.n_classes:
        few = thin(known.labels, MOST_ASKED, torch.Generator().manual_seed(0))
        own = left_out_distances(representation(known.images[few]), known.labels[few], classes, counts)
        recogniser = replace(recogniser, temperature=best_temperature(own, known.labels[few], classes.shape[1]))
    if splits:
        return replace(recogniser, limits=_limits(splits, representation.name), calibrated=True)
    return recogniser


def with_limits_of(recogniser: Recogniser, points: Tensor, labels: Tensor) -> Recogniser:
    """Limits and, without known classes, temperature from the grouped items (n, d) themselves, labels (n,)."""
    k = len(recogniser.groups)
    if not k:
        return recogniser
    own = left_out_distances(points, labels, recogniser.groups, torch.bincount(labels, minlength=k))
    limit = float(strangeness(own).quantile(UNCALIBRATED))
    temperature = recogniser.temperature
    if not len(recogniser.classes):
        temperature = best_temperature(own, labels, points.shape[1])
    return replace(recogniser, limits=(limit, limit), temperature=temperature)


def left_out_distances(points: Tensor, labels: Tensor, centres: Tensor, counts: Tensor) -> Tensor:
    """Squared distances (n, c) of points to class means, each item's own class taken without it.

    As in `Recogniser.distances` they shrink where few items are behind a mean; a class of one keeps its mean.
    """
    sizes = counts.double()
    distances = squared_distances(points, centres) * (sizes / (sizes + 1))
    n = sizes[labels]
    # Leaving an item out moves its mean away from it by n / (n - 1); n - 1 items are then behind the mean.
    own = squared_distances(points, centres).gather(1, labels[:, None]).squeeze(1)
    own = torch.where(n > 1, own * (n / (n - 1).clamp(min=1)).square() * (n - 1) / n, own / 2)
    return distances.scatter(1, labels[:, None], own[:, None])


def strangeness(distances: Tensor) -> Tensor:
    """How little items belong to any class (n,), from squared distances (n, c); infinite ones do not count.

    The distance to the nearest mean, times what it is of the mean distance to the next few: an item of no class lies
    far from its nearest, and not much farther from the others.
    """
    ordered = distances.topk(min(OTHERS + 1, distances.shape[1]), dim=1, largest=False).values
    there = ordered[:, 1:].isfinite()
    others = torch.where(there, ordered[:, 1:], 0).sum(1) / there.sum(1).clamp(min=1)
    return torch.where(others > 0, ordered[:, 0].square() / others.clamp(min=1e-300), ordered[:, 0])


def _limits(splits: Sequence[Split], name: str) -> tuple[float, float]:
    """The strangeness that best tells members from items of no class: for groups, and for known classes.

    In each split the held-out classes play groups, and each item of theirs also plays "none" with its own class
    struck out; the items kept back ask whether known classes are recognised.
    """
    novel: list[tuple[Tensor, Tensor]] = []
    known: list[tuple[Tensor, Tensor]] = []
    for split in splits:
        representation = split.candidates.all[name]
        held, learnt_from = representation(split.held_out.images), representation(split.learnt_from.images)
        h, c = split.held_out.n_classes, split.learnt_from.n_classes
        centres = torch.cat([means(held, split.held_out.labels, h), means(learnt_from, split.learnt_from.labels, c)])
        counts = torch.cat(
            [torch.bincount(split.held_out.labels, minlength=h), torch.bincount(split.learnt_from.labels, minlength=c)]
        )
        of_held = left_out_distances(held, split.held_out.labels, centres, counts)
        struck = of_held.scatter(1, split.held_out.labels[:, None], torch.inf)
        far, none_place = strangeness(struck), struck.argmin(1)
        members = of_held.argmin(1) == split.held_out.labels
        novel.append((strangeness(of_held[members]), far[none_place < h]))
        if len(split.kept_back):
            back = squared_distances(representation(split.kept_back.images), centres) * (counts / (counts + 1.0))
        else:
            back = left_out_distances(learnt_from, split.learnt_from.labels + h, centres, counts)
        known.append((strangeness(back[back.argmin(1) >= h]), far[none_place >= h]))
    return _threshold(novel), _threshold(known)


def _threshold(evidence: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Where to cut so that the shares of members within and of others beyond are largest together."""
    members, others = torch.cat([m for m, _ in evidence]), torch.cat([o for _, o in evidence])
    if not len(members) or not len(others):
        return torch.inf
    cuts = torch.cat([members, others]).sort().values
    within = torch.searchsorted(members.sort().values, cuts, right=True) / len(members)
    wrong = torch.searchsorted(others.sort().values, cuts, right=True) / len(others)
    best = int((within - wrong).argmax())
    after = cuts[min(best + 1, len(cuts) - 1)]
    return float((cuts[best] + after) / 2)


def _pair(values: Sequence[float]) -> tuple[float, float]:
    novel, known = values
    return novel, known


def _inside(strange: float, limit: float) -> float:
    """How surely a strangeness is within a limit: 1 at nothing, one half at the limit, 0 far out."""
    if limit == torch.inf:
        return 1.0
    if limit <= 0:
        return 1.0 if strange <= 0 else 0.0
    return float(1 / (1 + (strange / limit) ** 4))
