from types import SimpleNamespace

import numpy as np
import pytest
from worlds import gaussian_classes, split

from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.links import Links
from medi.discovery.pool import FILE, SavedPool
from medi.errors import InputError
from medi.metrics import acc
from medi.runtime.context import Context


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Ten known classes, and a pool of three new ones with six items each."""
    folder = tmp_path_factory.mktemp("model")
    known, novel = split(gaussian_classes(13, 6, apart=4.0), 10)
    discovery, recogniser = discover_groups(
        known, novel.images, DiscoveryConfig(method="kmeans", only_novel=False), Context()
    )
    recogniser.save(folder)
    SavedPool.save(folder, novel.images, recogniser, discovery)
    return SimpleNamespace(folder=folder, pool=SavedPool.load(folder), truth=novel.labels.numpy(), discovery=discovery)


def test_without_links_the_pool_is_grouped_about_as_before(saved):
    again = saved.pool.regroup(Links())
    assert acc(np.array(saved.discovery.labels), np.array(again.labels)) > 0.9
    assert all(0 <= sure <= 1 for sure in again.confidence)
    assert again.samples.shape[1] == len(saved.pool) == 18


def test_what_a_person_says_is_so(saved):
    together, apart = ((0, 7), (7, 13)), ((1, 2), (0, 3))
    links = Links(together, apart, {4: saved.pool.names[2]}, frozenset({5}))
    found = saved.pool.regroup(links)
    assert found.labels[0] == found.labels[7] == found.labels[13] >= 0
    for a, b in apart:
        assert found.labels[a] != found.labels[b] or found.labels[a] == -1
    assert (found.kinds[4], found.known[4], found.labels[4]) == ("known", saved.pool.names[2], -1)
    assert (found.kinds[5], found.labels[5]) == ("alone", -1)
    assert (found.samples[:, 0] == found.samples[:, 7]).all()
    assert (found.samples[:, 1] != found.samples[:, 2]).all()


def test_the_same_links_give_the_same_answer(saved):
    links = Links(((0, 6),), ((1, 12),))
    first, second = saved.pool.regroup(links), saved.pool.regroup(links)
    assert first.labels == second.labels
    assert first.confidence == second.confidence
    assert np.array_equal(first.samples, second.samples)


def test_true_links_between_all_items_lead_to_the_truth(saved):
    pairs = [(a, b) for a in range(18) for b in range(a)]
    same = tuple(pair for pair in pairs if saved.truth[pair[0]] == saved.truth[pair[1]])
    other = tuple(pair for pair in pairs if saved.truth[pair[0]] != saved.truth[pair[1]])
    found = saved.pool.regroup(Links(same, other))
    novel = np.array(found.labels) >= 0
    assert acc(saved.truth[novel], np.array(found.labels)[novel]) == 1


def test_everything_may_be_settled(saved):
    found = saved.pool.regroup(Links(aside=frozenset(range(18))))
    assert set(found.kinds) == {"alone"}


def test_parts_and_order_are_those_of_the_tree(saved):
    parts = saved.pool.split(range(12), 2)
    assert acc(saved.truth[:12], parts) > 0.9
    assert sorted(saved.pool.order().tolist()) == list(range(18))
    assert saved.pool.positions().shape == (18, 2)
    with pytest.raises(InputError, match="cannot be split into 13"):
        saved.pool.split(range(12), 13)


def test_a_damaged_pool_is_refused_by_name(saved, tmp_path):
    for name in ("recogniser.safetensors", FILE):
        (tmp_path / name).write_bytes((saved.folder / name).read_bytes())
    (tmp_path / FILE).write_bytes(b"nonsense")
    with pytest.raises(InputError, match=FILE):
        SavedPool.load(tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(InputError, match=FILE):
        SavedPool.load(tmp_path)
