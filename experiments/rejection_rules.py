"""Rules that could decide which items are none of the classes, compared by `recognise.py` on known classes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from medi.discovery.rejection import DRAWS, corrected_distances, handful
from numpy.typing import NDArray
from recognise_worlds import World, draw, score
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import pad

from medi.cluster.groups import group_means
from medi.discovery.discover import DiscoveryConfig
from medi.discovery.grouping import group
from medi.discovery.held_out import Choice, choose, fit, make_splits
from medi.discovery.recogniser import Recognised
from medi.discovery.representations import Representation, class_means
from medi.runtime.context import Context

MISSED = 0.05
"""Part of the members that every rule gives up: so the rules can be compared."""

Strangeness = Callable[[Tensor], Tensor]
"""How strange items are, (n,), by their corrected squared distances (n, c) to all means; infinite: no such mean."""
Rule = Callable[[Tensor, Tensor], Strangeness]
"""Makes such a function; it may learn from the distances of members and of strangers."""


def by_distance(_members: Tensor, _strangers: Tensor) -> Strangeness:
    """The distance to the nearest mean."""
    return lambda distances: distances.amin(1).clamp(min=1e-12).log()


def by_others(_members: Tensor, _strangers: Tensor) -> Strangeness:
    """The nearest distance, times its ratio to the mean distance of the next five."""
    return lambda distances: nearest_and_others(distances) @ torch.tensor([2.0, -1.0], dtype=torch.float64)


def by_likelihood(members: Tensor, strangers: Tensor) -> Strangeness:
    """The likelihood ratio of stranger and member, log-linear in the nearest distance and in that of the others."""
    facts = torch.cat([nearest_and_others(members, 999), nearest_and_others(strangers, 999)]).numpy()
    answers = np.repeat([0, 1], [len(members), len(strangers)])
    model = LogisticRegression(C=10.0, class_weight="balanced").fit(facts, answers)
    return lambda distances: torch.from_numpy(model.decision_function(nearest_and_others(distances, 999).numpy()))


def nearest_and_others(distances: Tensor, others: int = 5) -> Tensor:
    """Logarithms (n, 2) of the nearest distance and of the mean of the next few."""
    ordered = distances.topk(min(others + 1, distances.shape[1]), dim=1, largest=False).values
    there = ordered[:, 1:].isfinite()
    mean = torch.where(there, ordered[:, 1:], 0).sum(1) / there.sum(1).clamp(min=1)
    return torch.stack([ordered[:, 0], mean], 1).clamp(min=1e-12).log()


RULES: dict[str, Rule] = {"distance": by_distance, "and others": by_others, "likelihood ratio": by_likelihood}


@dataclass(frozen=True)
class Examples:
    """Corrected squared distances (…, h + c) of items of held-out known classes to groups and known classes.

    Attributes:
        members: Of further items of the grouped classes.
        strangers: The same with the groups of their own class left out.
        known: Of further items of the known classes.
    """

    members: Tensor
    strangers: Tensor
    known: Tensor


def examples(choice: Choice, observations: int) -> Iterable[Examples]:
    """What held-out known classes show when a handful of each is grouped."""
    generator = torch.Generator().manual_seed(0)
    for split in choice.splits:
        represent: Representation = split.candidates.all[choice.representation]
        held, labels, h = represent(split.held_out.images), split.held_out.labels, split.held_out.n_classes
        back, classes = represent(split.kept_back.images), class_means(split.learnt_from, represent)
        counts = torch.bincount(split.learnt_from.labels)
        for _ in range(DRAWS):
            of_class = torch.zeros(h, h + len(counts), dtype=torch.bool)  # does a group have items of a class?

            def grouping(points: Tensor, own: Tensor, of_class: Tensor = of_class) -> NDArray[np.int64]:
                groups = group(points, len(of_class), choice.clustering, torch.Generator().manual_seed(0))
                of_class[own, torch.from_numpy(groups)] = True
                return groups

            groups, sizes, asked = handful(held, labels, observations, grouping, generator)
            centres, behind = torch.cat([groups, classes]), torch.cat([sizes, counts])
            members = corrected_distances(held[asked], centres, behind)
            strangers = members.masked_fill(of_class[labels[asked]], torch.inf)
            yield Examples(members, strangers, corrected_distances(back, centres, behind))


def padded(parts: Sequence[Tensor]) -> Tensor:
    """Distances to different numbers of means as one tensor; missing ones are infinite."""
    width = max(part.shape[1] for part in parts)
    return torch.cat([pad(part, (0, width - part.shape[1]), value=torch.inf) for part in parts])


def compare_rules(world: World, observations: int, seed: int) -> list[dict[str, Any]]:
    """Every rule on the items of one discovery, its thresholds set where it gives up `MISSED` of the members."""
    known, observed, new = draw(world, observations, seed)
    config, context = DiscoveryConfig(classes=world.novel, method="kmeans"), Context(seed=seed)
    choice = choose(make_splits(known, config, context), context)
    represent = fit(choice.representation, known, config, context)
    points, k = represent(observed.images), world.novel
    labels = torch.from_numpy(group(points, k, choice.clustering, torch.Generator().manual_seed(seed)))
    centres = torch.cat([group_means(points, labels, k), class_means(known, represent)])
    sizes = torch.cat([torch.bincount(labels), torch.bincount(known.labels)])
    distances = corrected_distances(represent(new.images), centres, sizes)
    found = list(examples(choice, observations))
    strangers = padded([one.strangers for one in found])
    rows = []
    for name, rule in RULES.items():
        none = torch.zeros(len(distances), dtype=torch.bool)
        for members, mine in (
            (padded([one.members for one in found]), distances.argmin(1) < k),
            (padded([one.known for one in found]), distances.argmin(1) >= k),
        ):
            strange = rule(members, strangers)
            none |= mine & (strange(distances) > strange(members).quantile(1 - MISSED))
        answers = [Recognised("none" if is_none else "novel", "0", 1.0) for is_none in none.tolist()]
        shares = score(world, answers, new.labels.tolist(), known.class_names, range(k))
        rows.append({"rule": name} | {figure: value for figure, value in shares.items() if figure.startswith("none")})
    return rows
