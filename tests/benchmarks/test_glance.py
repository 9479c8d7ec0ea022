"""Numbers at a glance: what is drawn, how it is scored, and that nothing is measured twice."""

import json
import sys
from itertools import permutations
from pathlib import Path

import glance
import numpy as np
import pytest
import torch
from blobs import blobs
from discover_draws import Draw, Source, draw
from glance import figures, names_as_groups, put_right
from script import run

from medi.data.imageset import ImageSet
from medi.discovery.canonical import in_order
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.grouping import Wanted
from medi.discovery.learning import learn
from medi.runtime.context import Context
from medi.runtime.files import read_journal


def source(classes: int = 22, *, shared: bool = True) -> Source:
    points, labels = blobs(range(classes), each=14)
    return Source(points, labels, points, labels, shared=shared)


def sorted_pool(truth: list[int], one_offs: int = 0) -> Draw:
    """A draw of which only the truth matters; the last items are one-offs."""
    one_off = np.arange(len(truth)) >= len(truth) - one_offs
    nothing = torch.zeros(0, 1)
    known = ImageSet(nothing, torch.zeros(0, dtype=torch.long), ())
    return Draw(known, torch.zeros(len(truth), 1), np.array(truth), one_off, (nothing, np.array([])), nothing)


def answer(capsys, monkeypatch, *words: object) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["glance.py", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        run(glance.main, "what it does")
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize("groups", [5, 10])
def test_pools_hold_small_classes_and_mixed_ones_known_classes_and_one_offs_too(groups):
    pure, mixed = (draw(source(), 3, groups, unequal=True, mixed=mixed, largest=5) for mixed in (False, True))
    sizes = np.bincount(pure.truth)
    assert len(sizes) == groups
    assert set(sizes) <= {1, 2, 3, 4, 5}
    new = mixed.truth >= 0
    novel = {row.tobytes() for row in pure.pool.numpy()}
    assert novel == {row.tobytes() for row in mixed.pool.numpy()[new & ~mixed.one_off]}
    old = np.unique(mixed.truth[~new], return_counts=True)
    assert len(old[0]) == groups
    assert set(old[1]) <= {1, 2, 3, 4, 5}
    assert mixed.one_off.sum() == 22 - 11 - groups
    taught = {row.tobytes() for row in mixed.known.images.numpy()}
    assert not taught & {row.tobytes() for row in mixed.pool.numpy()}


def test_where_known_and_new_classes_are_given_all_known_ones_may_be_learnt_from():
    assert draw(source(5, shared=False), 0, 5, unequal=True, mixed=True, largest=5).known.n_classes == 5
    assert draw(source(10), 0, 5, unequal=True, mixed=True, largest=5).known.n_classes == 5


@pytest.mark.parametrize("seed", range(5))
def test_groups_and_classes_are_matched_so_that_most_photos_are_right(seed):
    generator = np.random.default_rng(seed)
    truth, labels = generator.integers(-3, 2, 12), generator.integers(0, 3, 12)
    classes = np.unique(truth)
    padded = [*classes, *[99] * 3]
    best = max(
        sum(match[label] == true for label, true in zip(labels, truth, strict=True))
        for match in permutations(padded, 3)
    )
    assert put_right(truth, labels).sum() == best


def test_a_new_photo_that_is_called_known_is_wrong_and_one_that_is_alone_is_a_group():
    truth = np.array([0, 0, 1, 2])
    assert put_right(truth, np.array([0, -2, -1, -2])).tolist() == [True, False, True, False]
    assert not put_right(truth, np.full(4, -2)).any()


def test_what_became_of_a_pool():
    problem = sorted_pool([0, 0, 0, 1, 1, -2, -2, -3, 2, 3], one_offs=2)
    labels = np.array([0, 0, -2, 1, 1, -2, -3, -3, -1, 1])
    assert figures(problem, labels, names_known=True) == {
        "acc": pytest.approx(4 / 5),
        "all right": pytest.approx(7 / 10),
        "groups": 2,
        "classes": 2,
        "known named": pytest.approx(2 / 3),
        "new called known": pytest.approx(1 / 5),
        "one-offs alone": pytest.approx(1 / 2),
    }


def test_who_names_no_known_class_may_find_it_as_a_group():
    problem = sorted_pool([0, 0, -2, -2, -3, 1], one_offs=1)
    found = figures(problem, np.array([0, 0, 1, 1, 2, 3]), names_known=False)
    assert found == {"acc": 1, "all right": 1, "groups": 2, "classes": 2, "one-offs alone": 1}
    assert figures(problem, np.zeros(6, dtype=int), names_known=False)["one-offs alone"] == 0


def test_names_as_groups_are_scored_like_groups_that_nobody_named():
    problem = sorted_pool([0, 0, 1, 1, -2, -2, -3, 2], one_offs=1)
    labels = np.array([0, 0, -4, -4, -2, -2, -3, -1])
    groups = names_as_groups(labels)
    assert groups.tolist() == [0, 0, 3, 3, 1, 1, 2, -1]
    assert figures(problem, labels, names_known=True)["acc"] == 0.5, "two new photos have a wrong name"
    found = figures(problem, groups, names_known=False)
    assert found == {"acc": 1, "all right": 1, "groups": 3, "classes": 3, "one-offs alone": 1}
    assert names_as_groups(np.array([-2, -1, -3, -2])).tolist() == [0, -1, 1, 0]


def test_the_engine_measured_is_the_one_of_discover():
    config = DiscoveryConfig(method="kmeans", only_novel=False)  # nothing to train
    problem = draw(source(12), 0, 5, unequal=True, mixed=True, largest=5)
    context = Context(seed=0)
    learnt = learn(in_order(problem.known), problem.pool, config, context)
    _, mine = glance.by_medi(problem, learnt, Wanted(None, False), context)
    found, _ = discover_groups(problem.known, problem.pool, config, context)
    named = [-2 - problem.known.class_names.index(name) if name else -1 for name in found.known]
    labels = np.where(np.array(found.labels) >= 0, found.labels, named)
    expected = figures(problem, labels, names_known=True)
    assert {key: mine[key] for key in expected} == expected
    assert (mine["low"], mine["high"]) == (found.count.low, found.count.high)


def test_every_approach_is_measured_in_both_pools(monkeypatch):
    monkeypatch.setattr(glance, "CONFIG", DiscoveryConfig(method="kmeans"))
    found = dict(glance.measure(source(12), 0, 5))
    pure, mixed = (found[pool]["approaches"].keys() for pool in ("pure", "mixed"))
    assert pure - mixed == {"medi --only-novel", "medi, told"}
    assert mixed - pure == {"medi, names as groups"}
    for pool in found.values():
        assert all(one["seconds"] >= 0 and 0 <= one["acc"] <= 1 for one in pool["approaches"].values())
        json.dumps(glance.rounded(pool), allow_nan=False)
    assert found["pure"]["approaches"]["whitened Ward, told"]["acc"] == 1


def test_rows_that_are_there_are_not_made_again(tmp_path, capsys, monkeypatch):
    made = []

    def measure(_, seed: int, groups: int):
        made.append((seed, groups))
        one = {"acc": 0.5, "all right": 0.5, "groups": 2, "classes": 2, "seconds": 1.0, "one-offs alone": 0.25}
        confidence = {"bins": {"lines": [1], "confidence": [0.5], "right": [1]}}
        for pool in ("pure", "mixed"):
            yield pool, {"approaches": dict.fromkeys(("medi", "medi --only-novel"), one | confidence)}

    monkeypatch.setattr(glance, "sources", lambda *_: {"toys": source})
    monkeypatch.setattr(glance, "measure", measure)
    for draws in (1, 2):
        monkeypatch.setattr(sys, "argv", ["glance.py", "--out", str(tmp_path), "--draws", str(draws), "--first", "7"])
        run(glance.main, "what it does")
    assert made == [(7, 5), (7, 10), (8, 5), (8, 10)]
    assert len(read_journal(tmp_path / "draws.jsonl")) == 8
    assert "| toys | mixed | 10 | 2 |" in (tmp_path / "table.md").read_text()
    assert "| MEDI | 50 |" in capsys.readouterr().out


def test_a_folder_with_too_few_classes_is_refused_in_one_line(tmp_path, capsys, monkeypatch):
    for number in range(3):
        (tmp_path / "photos" / str(number)).mkdir(parents=True)
        for photo in range(12):
            (tmp_path / "photos" / str(number) / f"{photo}.jpg").write_bytes(b"x")
    code, said = answer(capsys, monkeypatch, "--photos", tmp_path / "photos", "--out", tmp_path / "out")
    assert code == 2
    assert "has 3 subfolders with 12 photos or more" in said
    assert said.count("\n") == 1
    assert not Path(tmp_path / "out").exists()


def test_an_unknown_set_is_refused_by_name(tmp_path, capsys, monkeypatch):
    code, said = answer(capsys, monkeypatch, "--sets", "tulips", "--out", tmp_path / "out")
    assert code == 2
    assert "tulips" in said
