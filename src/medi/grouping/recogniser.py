"""Recognise new items: a discovered group, a known class, or none of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats
from medi.core.errors import InputError
from medi.core.files import make_folder
from medi.core.tensors import load_arrays, save_arrays, under_prefix, with_prefix
from medi.grouping.class_model import ClassModel, log_total
from medi.grouping.copies import DIGEST, NOTHING_REMEMBERED, Remembered
from medi.grouping.moves import Places
from medi.grouping.recognition import Recognition
from medi.grouping.representation import Representation
from medi.grouping.saved import RECOGNISER_RULE, check_arrays, check_facts

RECOGNISER, RECOGNISER_FORMAT = "recogniser.safetensors", "medi-recogniser-4"


@dataclass(frozen=True)
class Guess:
    """One answer.

    Attributes:
        kind: A discovered group, a known class, or neither.
        label: Number of the group, name of the class, or empty.
        confidence: 0 to 1, how probable it is that kind and label are right.

    >>> Guess("known", "daisy", 0.8).label
    'daisy'
    """

    kind: Literal["novel", "known", "none"]
    label: str
    confidence: float


@dataclass(frozen=True)
class Recognised(Guess):
    """What an item was recognised as, and the second guess, which is never more probable.

    Attributes:
        second: The second guess.
        unsure: The likeliest answer where it was less sure than asked, and the item was called none for that.

    >>> Recognised("none", "", 0.6, second=Guess("novel", "3", 0.2)).second.label
    '3'
    """

    second: Guess
    unsure: Guess | None = None


@dataclass(frozen=True)
class Recogniser:
    """Recognises items one by one with the model that found the groups.

    Attributes:
        representation: What items are compared by.
        places: The groups, then the known classes.
        names: Of the known classes.
        model: What a class is.
        recognition: How evidence becomes probability.
        start: (k + c + 1,) log odds that the places and none start with.
        calibrated: Whether known classes set that.
        remembered: What was said of labelled items and of the pool, and is said of copies of them.

    >>> from medi import MetaDiscovery
    >>> rows = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> recogniser = MetaDiscovery(n_classes=2, random_state=0).fit(rows).recogniser_
    >>> recogniser.groups, [(found.kind, found.label) for found in recogniser.recognise(np.array([[9.05]]))]
    (2, [('novel', '0')])
    """

    representation: Representation
    places: Places
    names: tuple[str, ...]
    model: ClassModel
    recognition: Recognition
    start: Floats
    calibrated: bool
    remembered: Remembered = NOTHING_REMEMBERED

    @property
    def groups(self) -> int:
        """How many groups it knows."""
        return self.places.groups

    def recognise(self, items: NDArray[Any], none_rate: float | None = None, sure: float = 0.0) -> list[Recognised]:
        """What each of the items (n, …) is recognised as, each by itself: the likeliest.

        Args:
            items: Vectors or images.
            none_rate: Share of the items of groups and known classes that may be called none. The larger it is, the
                more strangers are found out. None for what rehearsals found likeliest.
            sure: How probable an answer must be; what is less sure is called none.
        """
        if none_rate is not None and not 0 <= none_rate <= 1:
            raise InputError(f"a rate of {none_rate} is no share of items: give 0 to 1.")
        scores = self.scores(self.representation(items))
        probability = np.minimum(self.recognition.probabilities(scores, self.start, none_rate), self.recognition.most)
        places = np.argsort(-probability, axis=1, kind="stable")[:, [0, min(1, probability.shape[1] - 1)]]
        chances = np.take_along_axis(probability, places, axis=1)
        at = self.remembered.find(items)
        places[at >= 0], chances[at >= 0] = self.remembered.places[at[at >= 0]], self.remembered.chances[at[at >= 0]]
        answers = zip(places.tolist(), chances.tolist(), strict=True)
        return [_recognised(*map(self._guess, *answer), sure=sure) for answer in answers]

    def probabilities(self, items: NDArray[Any]) -> Floats:
        """Probability (n, k + c) of each group and each known class, given that an item belongs to one of them."""
        raised = self.recognition.power * self.scores(self.representation(items))[:, :-1] + self.start[:-1]
        return np.asarray(np.exp(raised - log_total(raised)))

    def scores(self, points: Floats) -> Floats:
        """Log weight (n, k + c + 1) of each group, each known class and none."""
        return self.places.all_scores(points, self.model)

    def _guess(self, place: int, chance: float) -> Guess:
        if place < self.groups:
            return Guess("novel", str(place), chance)
        if place < len(self.places.sums):
            return Guess("known", self.names[place - self.groups], chance)
        return Guess("none", "", chance)

    def save(self, folder: Path) -> None:
        """Write one file into a folder: whole, or not at all."""
        arrays, representation = self.representation.pack()
        learnt, recognition = self.recognition.pack()
        arrays = with_prefix("representation", arrays) | learnt
        facts = {
            "format": RECOGNISER_FORMAT,
            "representation": representation,
            "groups": self.groups,
            "names": list(self.names),
            "model": self.model.facts(),
            "recognition": recognition,
            "calibrated": self.calibrated,
        }
        arrays |= {"sums": self.places.sums, "counts": self.places.counts, "start": self.start}
        digests = self.remembered.digests.view(np.uint8).reshape(-1, DIGEST)
        arrays |= {"seen": digests, "seen_places": self.remembered.places, "seen_chances": self.remembered.chances}
        save_arrays(make_folder(folder) / RECOGNISER, arrays, facts)

    @classmethod
    def load(cls, folder: Path) -> Recogniser:
        """Read what `save` wrote; a folder that holds anything else is refused by name."""
        path = folder / RECOGNISER
        if not path.is_file():
            raise InputError(f"{folder} holds no {RECOGNISER}: give the model folder that `medi discover` wrote.")
        try:
            arrays, facts = load_arrays(path)
            if facts["format"] != RECOGNISER_FORMAT:
                raise ValueError(facts["format"])
            recogniser = cls._unpack(arrays, facts)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
            raise InputError(
                f"{path} is damaged, of another version, or not of this program: run `medi discover` again."
            ) from error
        return recogniser

    @classmethod
    def _unpack(cls, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> Recogniser:
        """Refuses parts that do not fit together, and what gives no numbers."""
        check_facts(facts, RECOGNISER_RULE)
        check_arrays(arrays, {"sums": "pd", "counts": "p", "leads": "l"})
        names, groups = tuple(facts["names"]), facts["groups"]
        sums, counts = (arrays[name].astype(np.float64) for name in ("sums", "counts"))
        if len(sums) != groups + len(names):
            raise ValueError("parts differ in length")
        representation = Representation.unpack(under_prefix("representation", arrays), facts["representation"])
        recognition = Recognition.unpack(arrays, facts["recognition"])
        start = arrays.get("start", recognition.start(np.full(groups, 0.5), len(names)))  # not in 0.2.0
        if start.shape != (len(sums) + 1,):
            raise ValueError("parts differ in length")
        found = cls(
            representation,
            Places(sums, counts, groups),
            names,
            ClassModel(**{name: float(value) for name, value in facts["model"].items()}),
            recognition,
            start,
            facts["calibrated"],
            _remembered(arrays, len(sums) + 1),
        )
        shape = representation.shape
        blank = np.zeros((1, *shape), np.float64 if len(shape) == 1 else np.uint8)
        with np.errstate(all="ignore"):
            if not np.isfinite([guess.confidence for guess in found.recognise(blank)]).all():
                raise ValueError("it gives no numbers")
        return found


def _recognised(first: Guess, second: Guess, *, sure: float) -> Recognised:
    """The likeliest answer, and the next one; none where the likeliest is less sure than asked."""
    if first.kind != "none" and first.confidence < sure:
        none = Guess("none", "", 1 - first.confidence)
        return Recognised(none.kind, none.label, none.confidence, second, unsure=first)
    return Recognised(first.kind, first.label, first.confidence, second)


def _remembered(arrays: Mapping[str, NDArray[Any]], places: int) -> Remembered:
    """What is said of copies; version 0.2.0 wrote nothing of that."""
    if "seen" not in arrays:
        return NOTHING_REMEMBERED
    check_arrays(arrays, {"seen": "LD", "seen_places": "LT", "seen_chances": "lt"})
    digests, of, chances = arrays["seen"], arrays["seen_places"], arrays["seen_chances"]
    probable = (chances >= 0) & (chances <= 1) & (chances <= chances[:, :1])
    if digests.dtype != np.uint8 or digests.shape[1] != DIGEST or not ((of >= 0) & (of < places)).all():
        raise ValueError("what is said of copies does not fit")
    if of.shape[1] != 2 or not probable.all():
        raise ValueError("what is said of copies cannot be")
    return Remembered(np.ascontiguousarray(digests).view(f"S{DIGEST}").ravel(), of, chances)
