"""The order of observations says nothing: a bag in another order ends in the same partition, by every method.

Items are noise without groups in it, so that whatever depends on the order shows.
"""

from dataclasses import replace
from functools import cache

import pytest
import torch
from small_sets import generator, hurried, patterns
from torch import Tensor

from medi.data.facts import Augmentation
from medi.methods import METHODS, Learner, Plan

GROUPS, EACH, QUERIES, ORDERS = 4, 5, 12, 2
SETTINGS = {name: hurried(method.preset("cpu")) for name, method in METHODS.items()}
SETTINGS["mm, head"] = replace(SETTINGS["mm"], readout="head")
KNOWN = patterns(classes=8, each=12, channels=1, side=16)
ITEMS = torch.randint(0, 256, (GROUPS * EACH + QUERIES, 1, 16, 16), generator=generator(7), dtype=torch.uint8)
OBSERVED = torch.arange(GROUPS * EACH)
ASKED = torch.arange(GROUPS * EACH, len(ITEMS))


CASES = [(name, regime) for name in SETTINGS for regime in ("honest", "transductive", "grouped")]


@cache
def learner_of(name: str) -> Learner:
    plan = Plan(GROUPS, EACH, queries=3, augmentation=Augmentation(crop=1, flip=True))
    return SETTINGS[name].fit(KNOWN, plan)


def answers(learner: Learner, regime: str, equal_sizes: bool, order: Tensor, order_asked: Tensor) -> Tensor:
    """Labels of observations and queries, in their first order, where they were seen in other orders."""
    encoded, bag, query = learner.encode(ITEMS), OBSERVED[order][None], ASKED[order_asked][None]
    if regime == "grouped":
        clustering = learner.oracle(encoded, bag, bag % GROUPS, GROUPS)
    else:
        clustering = learner.discover(encoded, bag, GROUPS, generator(3), equal_sizes=equal_sizes)
    labels = torch.empty(len(ITEMS), dtype=torch.int64)
    if regime == "transductive":
        labels[query[0]] = clustering.refine(encoded, query, equal_sizes=equal_sizes).labels[0]
    else:
        labels[query[0]] = clustering.assign(encoded, query).labels[0]
    labels[bag[0]] = clustering.labels[0]
    # Moving clusters are about the queries alone: they may be other clusters than those of the observations.
    return labels[ASKED] if regime == "transductive" else labels


def partition(labels: Tensor) -> list[list[bool]]:
    """Which items are together: what labels say beside their numbers."""
    return (labels[:, None] == labels).tolist()


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_another_order_of_the_items_gives_the_same_partition(name, regime):
    for equal_sizes in (True, False):
        learner = learner_of(name)
        first = partition(answers(learner, regime, equal_sizes, torch.arange(len(OBSERVED)), torch.arange(len(ASKED))))
        for seed in range(ORDERS):
            orders = [torch.randperm(len(items), generator=generator(seed)) for items in (OBSERVED, ASKED)]
            assert partition(answers(learner, regime, equal_sizes, *orders)) == first
