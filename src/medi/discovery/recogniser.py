"""Recognise new items: a discovered group, a known class, or none of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from medi.cluster.groups import group_means
from medi.data.imageset import ImageSet
from medi.discovery.grouping import MOST_KNOWN, thin
from medi.discovery.held_out import Choice
from medi.discovery.rejection import corrected_distances, left_out_distances, thresholds_by_items, thresholds_by_splits
from medi.discovery.representations import Representation, class_means
from medi.errors import InputError
from medi.methods.embedding import best_temperature
from medi.runtime.files import make_folder
from medi.train.checkpoint import load_checkpoint, save_checkpoint, under_prefix, with_prefix

FILE = "recogniser.safetensors"
RECOGNISER_FORMAT = "medi-recogniser-3"


@dataclass(frozen=True)
class Recognised:
    """What an item was recognised as.

    Attributes:
        kind: A discovered group, a known class, or neither.
        label: Number of the group, name of the class, or empty.
        confidence: 0 to 1, that kind and label are right.
    """

    kind: Literal["novel", "known", "none"]
    label: str
    confidence: float


@dataclass(frozen=True)
class Recogniser:
    """Recognises an item by the nearest mean, unless that is too far.

    Attributes:
        representation: What items are compared by.
        groups: (k, d) means of the discovered groups.
        classes: (c, d) means of the known classes.
        names: Of the known classes.
        sizes: (k + c,) items behind each mean: the mean of a few is less certain, so more distance is allowed.
        temperature: Squared distance that makes a class e times less likely.
        thresholds: (k + c,) corrected squared distance from each mean beyond which an item nearest to it is none.
        calibrated: Whether held-out known classes set the thresholds.
    """

    representation: Representation
    groups: Tensor
    classes: Tensor
    names: tuple[str, ...]
    sizes: Tensor
    temperature: float
    thresholds: Tensor
    calibrated: bool

    def recognise(self, items: Tensor) -> list[Recognised]:
        """What each of the items (n, …) is recognised as, each by itself."""
        if not len(items):
            return []
        distances = self.distances(self.representation(items))
        far, place = distances.min(1)
        probability = self.probabilities(distances).gather(1, place[:, None]).squeeze(1)
        answers = []
        thresholds = self.thresholds[place].tolist()
        rows = zip(far.tolist(), thresholds, place.tolist(), probability.tolist(), strict=True)
        for distance, threshold, at, sure in rows:
            kind: Literal["novel", "known"] = "novel" if at < len(self.groups) else "known"
            inside = _inside(distance, threshold)
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
        """Corrected squared distances (n, k + c) of points to groups and known classes."""
        return corrected_distances(points, torch.cat([self.groups, self.classes]), self.sizes)

    def probabilities(self, distances: Tensor) -> Tensor:
        """Probability (n, k + c) of each group and class, given that an item belongs to one of them."""
        return (-distances / self.temperature).softmax(1)

    def renumbered(self, old: Tensor) -> Recogniser:
        """The same with group i where group `old[i]` was, for a permutation (k,)."""
        k = len(self.groups)
        order = torch.cat([old, torch.arange(k, len(self.sizes))])
        return replace(self, groups=self.groups[old], sizes=self.sizes[order], thresholds=self.thresholds[order])

    def save(self, folder: Path) -> None:
        """Write one file into a folder: whole, or not at all."""
        tensors, facts = self.representation.pack()
        tensors = with_prefix("representation", tensors)
        tensors |= {"groups": self.groups, "classes": self.classes, "sizes": self.sizes, "thresholds": self.thresholds}
        save_checkpoint(
            make_folder(folder) / FILE,
            tensors,
            {
                "format": RECOGNISER_FORMAT,
                "representation": facts,
                "names": list(self.names),
                "temperature": self.temperature,
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
            if facts["format"] != RECOGNISER_FORMAT:
                raise ValueError(facts["format"])
            representation = Representation.unpack(under_prefix("representation", tensors), facts["representation"])
            recogniser = cls(
                representation,
                tensors["groups"],
                tensors["classes"],
                tuple(str(name) for name in facts["names"]),
                tensors["sizes"],
                float(facts["temperature"]),
                tensors["thresholds"],
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
            raise InputError(
                f"{path} is damaged, of another version, or not of this program: run `medi discover` again."
            ) from error
        return recogniser

    def _check(self) -> None:
        """Refuse parts that do not fit together."""
        if len(self.names) != len(self.classes) or not (
            len(self.sizes) == len(self.thresholds) == len(self.groups) + len(self.classes)
        ):
            raise ValueError("parts differ in length")
        if self.groups.shape[1] != self.classes.shape[1]:
            raise ValueError("parts differ in width")


def make_recogniser(
    representation: Representation, known: ImageSet, points: Tensor, groups: Tensor, choice: Choice
) -> Recogniser:
    """A recogniser of discovered groups and known classes.

    Args:
        representation: What was kept.
        known: The known classes; may be none.
        points: (n, d) the novel items.
        groups: (n,) their groups, 0 to k - 1.
        choice: Held-out known classes set the thresholds; without any, the known items or, without those, the groups.
    """
    k = int(groups.max()) + 1 if len(groups) else 0
    centres = group_means(points, groups, k) if k else points
    sizes = torch.bincount(groups, minlength=k)
    classes, counts = centres[:0], sizes[:0]
    asked, own = points, left_out_distances(points, groups, centres, sizes)
    labels = groups
    if known.n_classes:
        classes, counts = class_means(known, representation), torch.bincount(known.labels, minlength=known.n_classes)
        few = thin(known.labels, MOST_KNOWN, torch.Generator().manual_seed(0))
        asked, labels = representation(known.images[few]), known.labels[few]
        own = left_out_distances(asked, labels, classes, counts)
    if choice.splits:
        thresholds = thresholds_by_splits(choice, sizes, own[(counts > 1)[labels]])
    elif (counts > 1).any():
        thresholds = thresholds_by_items(asked, labels, sizes, len(counts))
    else:
        thresholds = thresholds_by_items(points, groups, sizes, len(counts))
    return Recogniser(
        representation,
        centres,
        classes,
        known.class_names,
        torch.cat([sizes, counts]).double(),
        best_temperature(own, labels, points.shape[1]),
        thresholds,
        bool(choice.splits),
    )


def _inside(distance: float, threshold: float) -> float:
    """Confidence that a squared distance is within a threshold: 1 at zero, one half at the threshold, 0 far out."""
    if threshold == torch.inf:
        return 1.0
    if threshold <= 0:
        return 1.0 if distance <= 0 else 0.0
    return float(1 / (1 + (distance / threshold) ** 4))
