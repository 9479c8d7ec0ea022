"""The order of observations says nothing: a bag in another order ends in the same partition, by every method.

Items are noise without groups in it, so that whatever depends on the order shows.
"""

from dataclasses import replace
from functools import cache

import pytest
import torch
from small_sets import generator, patterns
from torch import Tensor

from medi.data.facts import Augmentation
from medi.methods import METHODS, Learner, Plan
from medi.methods.bag_training import Stage
from medi.methods.dtc import DTC
from medi.methods.inner_steps import InnerSteps
from medi.methods.kcl import KCL
from medi.methods.kmeans import KMeans
from medi.methods.mcl import MCL
from medi.methods.medi import Medi, Member
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.methods.pretraining import Pretraining
from medi.methods.rs import RS
from medi.methods.simgcd import SimGCD
from medi.methods.similarity import Similarity
from medi.methods.uno import UNO
from medi.train.schedule import Schedule

GROUPS, EACH, QUERIES, ORDERS = 4, 5, 12, 2
STEP = Schedule(steps=2)
CLASSES = Pretraining(network="mlp", batch=16, schedule=STEP)
PAIRS = Similarity("mlp", classes=3, each=2, schedule=STEP)
STAGE = Stage(epochs=4, batch=100, schedule=Schedule(steps=1, rate=1e-3))
SETTINGS = {
    "dtc": DTC(CLASSES, STAGE),
    "kcl": KCL(PAIRS, stage=STAGE),
    "kmeans": KMeans(),
    "mcl": MCL(PAIRS, stage=STAGE),
    "medi": Medi((Member((CLASSES,), "none"),)),
    "mm": MM(network="mlp", inner=InnerSteps(steps=2, rate=0.1), tasks=2, schedule=STEP),
    "mm, clusters": MM(network="mlp", inner=InnerSteps(steps=2), tasks=2, schedule=STEP, readout="cluster"),
    "mp": MP(network="mlp", queries=2, schedule=STEP),
    "rs": RS(CLASSES, None, stage=replace(STAGE, schedule=Schedule(steps=1, rate=0.02))),
    "simgcd": SimGCD(CLASSES, STAGE, hidden=32),
    "uno": UNO(CLASSES, STAGE, hidden=32),
}
KNOWN = patterns(classes=8, each=12, channels=1, side=8)
ITEMS = torch.randint(0, 256, (GROUPS * EACH + QUERIES, 1, 8, 8), generator=generator(7), dtype=torch.uint8)
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


def test_every_method_is_here():
    assert {name.partition(",")[0] for name in SETTINGS} == set(METHODS)


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_another_order_of_the_items_gives_the_same_partition(name, regime):
    for equal_sizes in (True, False):
        learner = learner_of(name)
        first = partition(answers(learner, regime, equal_sizes, torch.arange(len(OBSERVED)), torch.arange(len(ASKED))))
        for seed in range(ORDERS):
            orders = [torch.randperm(len(items), generator=generator(seed)) for items in (OBSERVED, ASKED)]
            assert partition(answers(learner, regime, equal_sizes, *orders)) == first
