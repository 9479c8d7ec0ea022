"""A pool that was grouped, read back: lines of clusters.csv under what a person says of them."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from worlds import gaussian_classes, split

from medi.core.errors import InputError
from medi.core.tensors import load_arrays, save_arrays
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import Outcome, discover_groups
from medi.grouping.constraints import Links
from medi.grouping.numbers import NumberError
from medi.grouping.recogniser import RECOGNISER, Recogniser
from medi.grouping.saved_pool import FIRST_FORMAT, SAVED_POOL, SavedPool
from medi.grouping.search import Odds
from medi.metrics import acc

LINES = 20
"""Three new classes of six items, and copies of two items of the first."""


@dataclass(frozen=True)
class Saved:
    folder: Path
    pool: SavedPool
    outcome: Outcome
    truth: np.ndarray


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Saved:
    """Beside ten known classes."""
    folder = tmp_path_factory.mktemp("model")
    known, novel = split(gaussian_classes(13, 6, apart=4.0), 10)
    novel = novel.where(np.array([*range(18), 0, 5]))
    outcome = discover_groups(known, novel.values, DiscoveryConfig(only_novel=False), Workplace())
    outcome.recogniser.save(folder)
    outcome.pool.save(folder)
    return Saved(folder, SavedPool.load(folder), outcome, novel.labels)


def test_the_lines_are_those_of_the_discovery_and_grouped_again_without_links_the_same(saved):
    grouping, found = saved.pool.grouping, saved.outcome.discovery
    assert len(saved.pool) == LINES
    assert np.maximum(grouping.labels, -1)[saved.pool.place].tolist() == list(found.labels)
    assert grouping.confidence[saved.pool.place].tolist() == list(found.confidence)
    assert saved.pool.positions().tolist() == [list(place) for place in found.positions]
    again = saved.pool.regroup(Links())
    assert acc(again.labels, found.labels) == 1
    assert again.kinds == found.kinds
    assert again.samples.shape[1] == LINES


def test_what_a_person_says_is_so_of_copies_too(saved):
    together, apart = ((0, 7), (7, 13)), ((1, 2), (0, 3))
    found = saved.pool.regroup(Links(together, apart, {4: saved.pool.names[2]}, frozenset({5})))
    assert found.labels[0] == found.labels[7] == found.labels[13] == found.labels[18] >= 0
    for a, b in apart:
        assert found.labels[a] != found.labels[b] or found.labels[a] == -1
    assert (found.kinds[4], found.known[4], found.labels[4]) == ("known", saved.pool.names[2], -1)
    assert [(found.kinds[i], found.labels[i]) for i in (5, 19)] == [("alone", -1)] * 2
    assert (found.samples[:, 0] == found.samples[:, 7]).all()
    assert (found.samples[:, 1] != found.samples[:, 2]).all()


def test_true_links_between_all_items_lead_to_the_truth(saved):
    pairs = [(a, b) for a in range(LINES) for b in range(a)]
    same = tuple(pair for pair in pairs if saved.truth[pair[0]] == saved.truth[pair[1]])
    other = tuple(pair for pair in pairs if saved.truth[pair[0]] != saved.truth[pair[1]])
    found = saved.pool.regroup(Links(same, other))
    novel = np.array(found.labels) >= 0
    assert acc(saved.truth[novel], np.array(found.labels)[novel]) == 1


def test_parts_and_order_are_those_of_the_tree(saved):
    assert acc(saved.truth[:12], saved.pool.split(range(12), 2)) > 0.9
    order = saved.pool.order().tolist()
    assert sorted(order) == list(range(LINES))
    assert abs(order.index(0) - order.index(18)) == 1, "copies are neighbours"
    with pytest.raises(InputError, match="cannot be split into 13"):
        saved.pool.split(range(12), 13)


def test_a_pool_of_an_earlier_version_is_read_beside_its_recogniser(saved, tmp_path):
    pool, grouping = saved.pool, saved.pool.grouping
    arrays, facts = load_arrays(saved.folder / RECOGNISER)
    power, none, most = (facts["recognition"][name] for name in ("power", "none", "most"))
    of_scores = {"leads": (arrays["leads"] + none) / power, "strangers": np.zeros(0)}  # as version 0.2.0 wrote them
    arrays = {name: part for name, part in arrays.items() if name[:5] not in ("start", "label")} | of_scores
    save_arrays(tmp_path / RECOGNISER, arrays, facts | {"recognition": {"power": power, "none": none, "most": most}})
    assert Recogniser.load(tmp_path).recognition.leads == pytest.approx(saved.outcome.recogniser.recognition.leads)
    facts = asdict(grouping.rehearsed.trust) | {"k": None, "only_novel": False}
    facts |= {"spread": grouping.rehearsed.error.spread, "mistaken": 0.1}
    arrays = {"points": grouping.points.astype(np.float32)[pool.place], "places": pool.on_map}
    save_arrays(tmp_path / SAVED_POOL, arrays, {"format": FIRST_FORMAT, "grouping": facts})
    earlier = SavedPool.load(tmp_path)
    links = Links(((0, 7),), ((1, 2),))
    of_then = replace(grouping.rehearsed, odds=Odds(-4.0, 0.0), error=NumberError(0.0, facts["spread"]))
    assert (
        earlier.regroup(links).labels
        == replace(pool, grouping=replace(grouping, rehearsed=of_then)).regroup(links).labels
    )
    assert earlier.positions().tolist() == pool.positions().tolist()


@pytest.mark.parametrize("damage", ["missing", "another version", "places"])
def test_a_damaged_pool_is_refused_by_name(saved, tmp_path, damage):
    path = tmp_path / SAVED_POOL
    saved.pool.save(tmp_path)
    match damage:
        case "missing":
            path.unlink()
        case "another version":
            save_arrays(path, {}, {"format": "medi-pool-0"})
        case "places":
            SavedPool(saved.pool.grouping, saved.pool.place + 1, saved.pool.on_map, saved.pool.names).save(tmp_path)
    with pytest.raises(InputError, match=SAVED_POOL):
        SavedPool.load(tmp_path)
