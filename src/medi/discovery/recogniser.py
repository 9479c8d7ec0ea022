"""Recognise new items: a discovered group, a known class, or none of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from medi.cluster.class_model import Anchors, ClassModel, Floats, log_total
from medi.cluster.moves import Places
from medi.cluster.posterior import Ints
from medi.discovery.recognition import NONE_RATE, Recognition
from medi.discovery.representations import Representation
from medi.errors import InputError
from medi.runtime.files import make_folder
from medi.train.checkpoint import load_checkpoint, save_checkpoint, under_prefix, with_prefix

FILE = "recogniser.safetensors"
RECOGNISER_FORMAT = "medi-recogniser-4"

Kind = Literal["novel", "known", "none"]


@dataclass(frozen=True)
class Guess:
    """One answer.

    Attributes:
        kind: A discovered group, a known class, or neither.
        label: Number of the group, name of the class, or empty.
        confidence: 0 to 1, how probable it is that kind and label are right.
    """

    kind: Kind
    label: str
    confidence: float


@dataclass(frozen=True)
class Recognised(Guess):
    """What an item was recognised as, and the second guess: for none, the group or class that it is nearest to."""

    second: Guess


@dataclass(frozen=True)
class Recogniser:
    """Recognises items one by one with the model that found the groups.

    Attributes:
        representation: What items are compared by.
        places: The groups, then the known classes.
        names: Of the known classes.
        model: What a class is.
        recognition: How evidence becomes probability, and when an item is called none.
        calibrated: Whether known classes set that.
    """

    representation: Representation
    places: Places
    names: tuple[str, ...]
    model: ClassModel
    recognition: Recognition
    calibrated: bool

    @classmethod
    def of(
        cls,
        representation: Representation,
        points: Floats,
        labels: Ints,
        anchors: Anchors,
        names: tuple[str, ...],
        model: ClassModel,
        recognition: Recognition,
        *,
        calibrated: bool,
    ) -> Recogniser:
        """Of the groups of some points (n, d) and the known classes."""
        places = Places.of(points, np.where(labels >= 0, labels, -1), anchors)
        return cls(representation, places, names, model, recognition, calibrated)

    @property
    def groups(self) -> int:
        """How many groups it knows."""
        return self.places.groups

    def recognise(self, items: Tensor, none_rate: float = NONE_RATE) -> list[Recognised]:
        """What each of the items (n, …) is recognised as, each by itself.

        Args:
            items: Vectors or images.
            none_rate: Share of the items of groups and known classes that may be called none. The larger it is, the
                more strangers are found out.
        """
        if not 0 <= none_rate <= 1:
            raise InputError(f"a rate of {none_rate} is no share of items: give 0 to 1.")
        if not len(items):
            return []
        scores = self.scores(self.representation(items))
        probability = self.recognition.probabilities(scores)
        last = scores.shape[1] - 1
        best = np.where(self.recognition.is_none(scores, none_rate), last, scores[:, :last].argmax(1) if last else 0)
        rest = probability.copy()
        rest[np.arange(len(rest)), best] = -1
        if last:
            rest[best == last, last] = -2  # for none, what it is nearest to
        second = rest.argmax(1)
        return [self._recognised(row, int(a), int(b)) for row, a, b in zip(probability, best, second, strict=True)]

    def probabilities(self, items: Tensor) -> Floats:
        """Probability (n, k + c) of each group and each known class, given that an item belongs to one of them."""
        raised = self.recognition.power * self.scores(self.representation(items))[:, :-1]
        return np.asarray(np.exp(raised - log_total(raised)))

    def nearest(self, items: Tensor) -> Ints:
        """(n,) the likeliest place of each item: 0 to k - 1 for groups, then known classes; never none."""
        if not len(items):
            return np.zeros(0, np.int64)
        return np.asarray(self.scores(self.representation(items))[:, :-1].argmax(1))

    def scores(self, points: Tensor) -> Floats:
        """Log weight (n, k + c + 1) of each group, each known class and none."""
        return self.places.all_scores(points.double().cpu().numpy(), self.model)

    def renumbered(self, old: Ints) -> Recogniser:
        """The same with group i where group `old[i]` was, for a permutation (k,)."""
        order = np.concatenate([old, np.arange(self.groups, len(self.places.counts))])
        return replace(
            self, places=replace(self.places, sums=self.places.sums[order], counts=self.places.counts[order])
        )

    def _recognised(self, probability: Floats, best: int, second: int) -> Recognised:
        first, other = self._guess(probability, best), self._guess(probability, second)
        return Recognised(first.kind, first.label, first.confidence, other)

    def _guess(self, probability: Floats, place: int) -> Guess:
        sure = float(min(probability[place], self.recognition.most))
        if place < self.groups:
            return Guess("novel", str(place), sure)
        if place < len(probability) - 1:
            return Guess("known", self.names[place - self.groups], sure)
        return Guess("none", "", sure)

    def save(self, folder: Path) -> None:
        """Write one file into a folder: whole, or not at all."""
        tensors, facts = self.representation.pack()
        tensors = with_prefix("representation", tensors)
        tensors |= {
            "sums": torch.from_numpy(self.places.sums),
            "counts": torch.from_numpy(self.places.counts),
            "leads": torch.from_numpy(self.recognition.leads),
            "strangers": torch.from_numpy(self.recognition.strangers),
        }
        recognition = {name: getattr(self.recognition, name) for name in ("power", "none", "most")}
        model = {name: float(getattr(self.model, name)) for name in ("share", "dimensions", "evenness")}
        save_checkpoint(
            make_folder(folder) / FILE,
            tensors,
            {
                "format": RECOGNISER_FORMAT,
                "representation": facts,
                "groups": self.groups,
                "names": list(self.names),
                "model": model,
                "recognition": recognition,
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
            recogniser = cls._unpack(tensors, facts)
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

    @classmethod
    def _unpack(cls, tensors: dict[str, Tensor], facts: dict[str, Any]) -> Recogniser:
        """Refuses parts that do not fit together."""
        sums, counts = tensors["sums"].double().numpy(), tensors["counts"].double().numpy()
        names, groups = tuple(str(name) for name in facts["names"]), int(facts["groups"])
        if sums.ndim != 2 or not len(sums) == len(counts) == groups + len(names):
            raise ValueError("parts differ in length")
        leads, strangers = tensors["leads"].double().numpy(), tensors["strangers"].double().numpy()
        given = {name: float(facts["recognition"][name]) for name in ("power", "none", "most")}
        return cls(
            Representation.unpack(under_prefix("representation", tensors), facts["representation"]),
            Places(sums, counts, groups),
            names,
            ClassModel(**{name: float(value) for name, value in facts["model"].items()}),
            Recognition(leads=leads, strangers=strangers, **given),
            bool(facts["calibrated"]),
        )
