"""The representations that items may be compared by, and how each is fitted to known classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from medi.core.progress import Silent
from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig, Teacher
from medi.grouping.preparations import as_they_are, unit_length, whitened
from medi.grouping.representation import Representation

PIXELS, UNIT, WHITENED, PROJECTED = "pixels", ", unit length", ", whitened", " + projector"
ROOTED = ", square roots"
"""Names of representations, or what is added to the name of the features."""
BEHIND = {f"{ROOTED}{WHITENED}": 0.0, WHITENED: -0.005, UNIT: -0.03}
"""How far kinds of features are usually behind the best kind, in ACC on held-out known classes of five sets."""
PLAIN_BEHIND = -0.05
"""The same of features as they are."""


@dataclass(frozen=True)
class Candidates:
    """Representations fitted to the same classes.

    Attributes:
        plain: By name; they do not look at classes.
        learnt: By name; what known classes taught.
    """

    plain: Mapping[str, Representation]
    learnt: Mapping[str, Representation]

    @property
    def all(self) -> dict[str, Representation]:
        """Both kinds, plain ones first."""
        return {**self.plain, **self.learnt}


def usual(name: str) -> float:
    """How far a representation is usually behind the best."""
    return next((behind for kind, behind in BEHIND.items() if name.endswith(kind)), PLAIN_BEHIND)


@dataclass(frozen=True)
class Fitter:
    """Fits representations to known classes.

    Attributes:
        config: How to discover.
        teacher: What learns from known classes; None where nothing is to be learnt.
        work: Where, and from which seed.
    """

    config: DiscoveryConfig
    teacher: Teacher | None
    work: Workplace

    @property
    def projector(self) -> str:
        """Name of the features put through what a method learnt, the only candidate that takes long."""
        return f"{self.config.features}{PROJECTED}"

    def quiet(self) -> Fitter:
        """The same without progress and checkpoints, for splits."""
        return replace(self, work=replace(self.work, reporter=Silent(), folder=None))

    def names(self, *, vectors: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the representations that do not look at classes, and of those that are learnt from them."""
        base = self.config.features
        learns = self.teacher is not None and self.teacher.learns(vectors=vectors)
        if vectors:
            learnt = (f"{base}{WHITENED}", f"{base}{ROOTED}{WHITENED}", *([self.projector] if learns else []))
            return (base, f"{base}{UNIT}"), learnt
        network = f"{self.config.network} trained by {self.config.method}"
        return (PIXELS,), (network, f"{network}{UNIT}") if learns else ()

    def fit_all(self, known: Items, without: str = "") -> Candidates:
        """Every representation that may be compared, fitted to the known classes."""
        plain, learnt = self.names(vectors=not known.are_images)
        learnt = tuple(name for name in learnt if name != without)
        if known.are_images and learnt:  # one training serves both
            network = self.fit(learnt[0], known)
            unit = replace(network, name=learnt[1], unit_after=True, centre=None, scale=1.0).framed(known.values)
            learnt_fitted = {learnt[0]: network, learnt[1]: unit}
        else:
            learnt_fitted = {name: self.fit(name, known) for name in learnt}
        return Candidates({name: self.fit(name, known) for name in plain}, learnt_fitted)

    def fit(self, name: str, known: Items) -> Representation:
        """The representation of a name, fitted to known classes, with their points about the origin."""
        return self._fitted(name, known).framed(known.values)

    def _fitted(self, name: str, known: Items) -> Representation:
        base = self.config.features
        if name in self.names(vectors=not known.are_images)[1] and known.are_images:
            assert self.teacher is not None
            return replace(self.teacher.network(known, self.work, name), unit_after=name.endswith(UNIT))
        if name == self.projector:
            assert self.teacher is not None
            return self.teacher.projector(known, self.work, name)
        if name == f"{base}{UNIT}":
            return unit_length(known, name)
        if name in (f"{base}{WHITENED}", f"{base}{ROOTED}{WHITENED}"):
            return whitened(known, name, root=ROOTED in name)
        return as_they_are(known.values, name)
