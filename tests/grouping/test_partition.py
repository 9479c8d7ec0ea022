"""A partition of one's own takes the place of Ward's method; the rest of the engine stays as right as it says."""

import numpy as np
import pytest
from worlds import gaussian_classes, split

from medi.core.errors import InputError
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.grouping.partition import repartition

OWN = """
def all_in_one(points, k, generator):
    return [0] * len(points)


def wrong(points, k, generator):
    return points[:, 0]


number = 3
"""


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    return lambda name: f"{tmp_path / 'own.py'}:{name}"


@pytest.fixture(scope="module")
def world():
    known, novel = split(gaussian_classes(14, 12, apart=4.0), 10)
    return known, novel


def test_confidence_is_rehearsed_with_the_partition(world, own):
    known, novel = world
    sure = {
        name: discover_groups(known, novel.values, DiscoveryConfig(classes=4, grouping=grouping), Workplace("cpu"))
        for name, grouping in (("posterior", "posterior"), ("one", own("all_in_one")))
    }
    assert max(sure["one"].discovery.labels) == 0
    assert np.mean(sure["one"].discovery.confidence) < np.mean(sure["posterior"].discovery.confidence)


def test_only_items_of_groups_are_shared_out():
    points, labels = np.arange(10.0)[:, None], np.array([0, 0, 1, 1, -1, -2, 0, 1, -3, 0])
    found = repartition(points, labels, lambda some, k, _: (some[:, 0] > 2).astype(int))
    assert found.tolist() == [1, 1, 1, 0, -1, -2, 0, 0, -3, 0]
    assert repartition(points, np.full(10, -1), lambda *_: 1 / 0).tolist() == [-1] * 10


@pytest.mark.parametrize(("name", "culprit"), [("wrong", "whole number"), ("number", "--grouping"), ("none", "none")])
def test_what_is_no_partition_is_refused(world, own, name, culprit):
    known, novel = world
    with pytest.raises(InputError, match=culprit):
        discover_groups(known, novel.values, DiscoveryConfig(classes=4, grouping=own(name)), Workplace("cpu"))


def test_an_unknown_grouping_is_refused_at_once():
    with pytest.raises(InputError, match="posterior"):
        DiscoveryConfig(grouping="posterier")
