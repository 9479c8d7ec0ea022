"""Groups read off the posterior over groupings, calibrated by rehearsals, as the contract has it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from medi.core.arrays import Floats, Ints
from medi.core.errors import InputError
from medi.core.tensors import load_arrays
from medi.grouping.branches import Units
from medi.grouping.class_model import ClassModel, Terms
from medi.grouping.constraints import Constraints, components
from medi.grouping.elsewhere import Elsewhere, certain
from medi.grouping.engine import ALONE, Anchors, Ask, Grouping, known_label, place_numbers
from medi.grouping.judged import Judged
from medi.grouping.kinship import Kinship, kin_of
from medi.grouping.lines import group_means
from medi.grouping.moves import Places, improve
from medi.grouping.naming import Naming
from medi.grouping.numbers import NumberError
from medi.grouping.recogniser import Recogniser
from medi.grouping.recognition import Recognition
from medi.grouping.rehearsal import Rehearsed
from medi.grouping.representation import Representation
from medi.grouping.saved import GROUPING_RULE, check_arrays, check_facts
from medi.grouping.search import Grouped, Odds, group_units
from medi.grouping.trust import Purity, Trust
from medi.grouping.ward import by_size, ward

_SHAPES = {
    "points": "nd",
    "copies": "N",
    "labels": "N",
    "confidence": "n",
    "chances": "np",
    "numbers": "k",
    "between": "gg",
    "known": "cd",
    "known_counts": "c",
    "leads": "l",
}
DRAWS, QUICK_DRAWS = 60, 24
"""Groupings drawn to see how often a line is right, and for an answer within a moment, when a person waits."""


@dataclass(frozen=True)
class PosteriorGrouping(Grouping):
    """Groups read off the posterior.

    Attributes:
        rehearsed: What rehearsals set.
        found: The posterior and what was read off it, of units; None where the grouping was read from a file.
        unit: (n,) the unit that each point was grouped in; -1 where a person said what it is.
    """

    rehearsed: Rehearsed
    found: Grouped | None = None
    unit: Ints | None = None

    @classmethod
    def of(
        cls, points: Floats, copies: Ints, ask: Ask, known: Anchors, rehearsed: Rehearsed, draws: int = DRAWS
    ) -> Self:
        """Group points (n, d), all different, of which there are so many copies (n,)."""
        n, said = len(points), ask.constraints
        labels, unit = np.full(n, ALONE), np.full(n, -1)
        for item, c in said.known.items():
            labels[item] = known_label(c)
        free = np.array([i for i in range(n) if i not in said.known and i not in said.aside], dtype=np.int64)
        chances, no_group = certain(labels, len(known)), np.zeros((0, 0))
        settled = cls(points, copies, ask, labels, np.ones(1), chances, no_group, known, rehearsed)
        if not len(free):
            return settled
        unit[free], sizes = components(free.tolist(), said.together)
        found = settled._grouped(unit, sizes)
        labels[free] = found.labels[unit[free]]
        labels[labels >= 0] = by_size(labels[labels >= 0])
        numbers = found.numbers if ask.k is not None else rehearsed.error.blur(found.numbers)
        return replace(settled, numbers=numbers, found=found, unit=unit)._judged(draws)

    def _grouped(self, unit: Ints, sizes: Ints) -> Grouped:
        """Group the units of free points, with the known classes as far as a person taught them."""
        known, rehearsed = self.known, self.rehearsed
        taught = np.flatnonzero(self.labels <= known_label(0))
        if len(taught):
            sums, counts = known.means * known.counts[:, None], known.counts.copy()
            np.add.at(sums, known_label(0) - self.labels[taught], self.points[taught])
            np.add.at(counts, known_label(0) - self.labels[taught], 1)
            known = Anchors(sums / np.maximum(counts, 1)[:, None], counts)
        of_units = ((int(unit[a]), int(unit[b])) for a, b in self.ask.constraints.apart)
        apart = tuple((a, b) for a, b in of_units if a >= 0 and b >= 0 and a != b)
        copies = np.ones(len(sizes), np.int64)
        np.maximum.at(copies, unit[unit >= 0], self.copies[unit >= 0])
        units = Units(unit_means(self.points, unit), copies, sizes, apart)
        ask = replace(self.ask, only_novel=self.ask.only_novel or not len(known))
        found = group_units(units, known, rehearsed.model, ask, rehearsed.odds, rehearsed.error)
        return replace(found, labels=rehearsed.naming(found, units.points, units.copies))

    def relabelled(self, labels: Ints) -> Self:
        """The same with other groups (n,): how sure each line is follows from them."""
        return replace(self, labels=labels)._judged(DRAWS)

    def extended(self, points: Floats, copies: Ints, labels: Ints, chances: Floats) -> Self:
        """The same groups with further points in them."""
        return replace(self, points=points, copies=copies, labels=labels, chances=chances, found=None, unit=None)

    @property
    def calibrated(self) -> bool:
        """Whether there were known classes enough to rehearse with."""
        return self.rehearsed.calibrated

    @property
    def right(self) -> tuple[float, float]:
        """What rehearsals put right."""
        return self.rehearsed.right

    @property
    def pure(self) -> Floats:
        """Read off the mean confidence and the size of each group."""
        novel = self.labels >= 0
        return self.rehearsed.purity(group_means(self.confidence, self.labels), np.bincount(self.labels[novel]))

    @property
    def kin(self) -> Floats:
        """By what rehearsals found of two groups; of a group of one item, by where that item may be."""
        return kin_of(self.labels, self.rehearsed.kinship, self.between, self.chances)

    def _judged(self, draws: int) -> Self:
        """With the probability of every place of each point."""
        assert self.found is not None
        assert self.unit is not None
        free, rehearsed = self.unit >= 0, self.rehearsed
        first = np.unique(self.unit[free], return_index=True)[1]
        grouped = replace(self.found, labels=self.labels[free][first])
        asked = replace(self.ask, k=None if self.ask.k is None else self.k)
        means = unit_means(self.points, self.unit)
        judged = Judged.of(grouped, means, asked, rehearsed.error, draws, np.random.default_rng(0))
        chances = certain(self.labels, len(self.known))
        chances[free] = self._at_all_places(judged.chances(rehearsed.trust, rehearsed.elsewhere))[self.unit[free]]
        return replace(self, chances=chances, between=judged.between, found=grouped)

    def _at_all_places(self, chances: Floats) -> Floats:
        """Chances (u, …) with the places of known classes, where those had none because all is novel."""
        missing = self.k + len(self.known) + 1 - chances.shape[1]
        return np.insert(chances, [self.k] * missing, 0.0, axis=1)

    def sample(self, n: int) -> Ints:
        """(n, items) labels of groupings drawn from the posterior; items that a person settled keep theirs."""
        if self.found is None or self.unit is None:
            again = self.regroup(self.ask.constraints)
            return np.tile(self.labels, (n, 1)) if again.found is None else again.sample(n)
        generator = np.random.default_rng(0)
        chances = self.found.posterior.possible(self.numbers)
        drawn = np.tile(self.labels, (n, 1))
        chosen = generator.choice(len(chances), n, p=chances / chances.sum())
        free = self.unit >= 0
        drawn[:, free] = np.stack(list(self.found.posterior.draws(chosen, generator)))[:, self.unit[free]]
        return drawn

    @property
    def places(self) -> Places:
        """The groups, then the known classes, with the items of the groups."""
        return Places.of(self.points, np.where(self.labels >= 0, self.labels, ALONE), self.known)

    def assign(self, points: Floats) -> Floats:
        """Probability (m, groups + known classes + 1) of every place for further points (m, d); none is last."""
        scores = self.places.all_scores(points, self.rehearsed.model)
        return self.rehearsed.recognition.probabilities(scores, self._start)

    @property
    def _start(self) -> Floats:
        """What places start with."""
        return self.rehearsed.recognition.start(group_means(self.confidence, self.labels), len(self.known))

    def likeness(self, points: Floats) -> Floats:
        """Evidence (m, known classes) that points (m, d) are of each known class."""
        places = Places.of(points[:0], np.zeros(0, np.int64), self.known)
        model = self.rehearsed.model if self.found is None else self.found.terms.model
        return places.all_scores(points, model)[:, :-1]

    def regroup(self, constraints: Constraints[int]) -> Self:
        """The same points under what a person said of them."""
        ask = replace(self.ask, constraints=constraints)
        return self.of(self.points, self.copies, ask, self.known, self.rehearsed, QUICK_DRAWS)

    def split(self, some: Ints, parts: int) -> Ints:
        """Ward's method, then single moves."""
        points, none = self.points[some], Anchors.none(self.points.shape[1])
        terms = Terms(none, self.rehearsed.model, 0.0, singles=True)
        return by_size(improve(Units.single(points), ward(points).cut(parts), terms))

    def recogniser(self, representation: Representation, names: tuple[str, ...]) -> Recogniser:
        """Recognises further items with the model that found the groups."""
        model, recognition = self.rehearsed.model, self.rehearsed.recognition
        return Recogniser(representation, self.places, names, model, recognition, self._start, self.calibrated)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read what `save` wrote."""
        arrays, facts = load_arrays(file)
        try:
            return cls.unpack(arrays, facts)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{file} is damaged or of another version: run `medi discover` again.") from error

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and facts; what a person said is kept elsewhere, in the journal of the review."""
        rehearsed = self.rehearsed
        learnt, recognition = rehearsed.recognition.pack()
        arrays = learnt | {
            "points": self.points.astype(np.float32),
            "copies": self.copies,
            "known": self.known.means,
            "known_counts": self.known.counts,
            "labels": self.labels,
            "numbers": self.numbers,
            "between": self.between,
            "confidence": self.confidence,
            "chances": self.chances.astype(np.float32),
        }
        facts = {
            "k": self.ask.k,
            "only_novel": self.ask.only_novel,
            "model": rehearsed.model.facts(),
            "trust": asdict(rehearsed.trust),
            "recognition": recognition,
            "purity": asdict(rehearsed.purity),
            "elsewhere": asdict(rehearsed.elsewhere),
            "kinship": asdict(rehearsed.kinship),
            "naming": asdict(rehearsed.naming),
            "odds": asdict(rehearsed.odds),
            **asdict(rehearsed.error),
            **{name: getattr(rehearsed, name) for name in ("shrink", "calibrated")},
        }
        return arrays, facts

    @classmethod
    def unpack(cls, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> Self:
        """What `pack` took apart; KeyError, TypeError or ValueError where it is damaged."""
        check_facts(facts, GROUPING_RULE)
        check_arrays(arrays, _SHAPES)
        trust, labels = facts["trust"], arrays["labels"]
        if labels.min(initial=0) < known_label(len(arrays["known"]) - 1) or labels.max(initial=0) > len(labels):
            raise ValueError("a label of no class")
        if min(arrays[name].min(initial=1) for name in ("copies", "known_counts")) < 1 or arrays["numbers"].min() < 0:
            raise ValueError("a number of less than nothing")
        chances, sure = arrays["chances"].astype(np.float64), arrays["confidence"]
        groups = len(arrays["between"])
        if chances.shape[1] != groups + len(arrays["known"]) + 1 or labels.max(initial=-1) + 1 != groups:
            raise ValueError("other places")
        chances = np.minimum(chances, sure[:, None])
        chances[np.arange(len(labels)), place_numbers(labels, len(arrays["known"]))] = sure
        rehearsed = Rehearsed(
            model=ClassModel(**facts["model"]),
            trust=Trust(trust["temperature"], tuple(trust["weights"]), trust["most"]),
            recognition=Recognition.unpack(arrays, facts["recognition"]),
            purity=Purity(**facts["purity"]),
            elsewhere=Elsewhere(tuple(facts["elsewhere"]["weights"])),
            kinship=Kinship(tuple(facts["kinship"]["weights"]), facts["kinship"]["most"]),
            naming=Naming(**facts["naming"]),
            odds=Odds(**facts["odds"]),
            error=NumberError(facts["shift"], facts["spread"]),
            **{name: facts[name] for name in ("shrink", "calibrated")},
        )
        with np.errstate(all="ignore"):
            if not np.isfinite(rehearsed.error.blur(arrays["numbers"])).all():
                raise ValueError("it gives no numbers")
        return cls(
            points=arrays["points"].astype(np.float64),
            copies=arrays["copies"],
            ask=Ask(facts["k"], only_novel=facts["only_novel"]),
            labels=labels,
            numbers=arrays["numbers"],
            chances=chances,
            between=arrays["between"],
            known=Anchors(arrays["known"], arrays["known_counts"]),
            rehearsed=rehearsed,
        )


def unit_means(points: Floats, unit: Ints) -> Floats:
    """Mean (u, d) of the points (n, d) of each unit (n,); those of unit -1 are left out."""
    free = unit >= 0
    sizes = np.bincount(unit[free])
    means = np.zeros((len(sizes), points.shape[1]))
    np.add.at(means, unit[free], points[free])
    return np.asarray(means / sizes[:, None])
