"""The engine of discover, scored by bench: draws are what they claim, and scores are what counting gives."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from worlds import gaussian_classes, split

from medi.bench.candidates import NamedSettings
from medi.bench.grid import Run
from medi.bench.grid_options import runs_asked
from medi.bench.pools import Pools, draw_pools, score_pools
from medi.bench.rows import read_rows
from medi.bench.run import rows_of as rows_of_batch
from medi.bench.run import run_grid
from medi.bench.setup import Setup
from medi.bench.tables import pool_cells
from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.core.workplace import Workplace
from medi.data.benchmarks import Benchmark
from medi.data.facts import Augmentation
from medi.data.imageset import ImageSet
from medi.discover.config import DiscoveryConfig
from medi.discover.learning import learn
from medi.grouping.engine import ALONE, known_label
from medi.metrics import acc

RUN = Run("blobs", "plain", "default", None, 4, 5, "honest", "episode", 0, grouping="posterior")
MIXED = Run("blobs", "plain", "default", None, 4, 5, "honest", "episode", 0, grouping="posterior", pool="mixed")


@pytest.fixture(scope="module")
def pools():
    known, novel = split(gaussian_classes(20, 30, apart=4.0), 11)
    return Pools.of(known, novel, observations=5, seed=0)


def rows_of(items):
    return {row.tobytes() for row in items}


def test_what_is_kept_for_pools_is_never_learnt_from(pools):
    assert not rows_of(pools.known.values) & rows_of(pools.kept.values)
    assert pools.kept.counts().tolist() == [7] * 11  # one in four of thirty
    assert len(pools.known) + len(pools.kept) == 11 * 30


@pytest.mark.parametrize("run", [RUN, MIXED])
def test_a_pool_holds_what_it_says(pools, run):
    novel, kept = rows_of(pools.novel.values), rows_of(pools.kept.values)
    for draw in draw_pools(pools, run, 5):
        assert np.bincount(draw.truth[draw.truth >= 0]).tolist() == [5] * 4
        assert rows_of(draw.pool[draw.truth >= ALONE]) <= novel
        assert rows_of(draw.pool[draw.truth <= known_label(0)]) <= kept
        assert not rows_of(draw.pool) & rows_of(draw.query)
        assert (draw.truth == ALONE).sum() == (4 if run is MIXED else 0)
        assert len(np.unique(draw.truth[draw.truth <= known_label(0)])) == (4 if run is MIXED else 0)
        for item, label in zip(draw.pool, draw.truth, strict=True):
            if label <= known_label(0):
                of_class = pools.kept.values[pools.kept.labels == known_label(0) - label]
                assert (of_class == item).all(1).any()


def test_every_method_gets_the_same_pools(pools):
    other = Run("blobs", "mp", "cpu", "uniform", 4, 5, "honest", "episode", 0, grouping="posterior", pool="mixed")
    for a, b in zip(draw_pools(pools, MIXED, 3), draw_pools(pools, other, 3), strict=True):
        assert np.array_equal(a.pool, b.pool)
        assert np.array_equal(a.query, b.query)


def test_more_classes_than_there_are_cannot_be_asked_for(pools):
    with pytest.raises(InputError, match="9 novel classes"):
        next(draw_pools(pools, Run("blobs", "plain", "default", None, 10, 5, "honest", "episode", 0), 1))


@pytest.fixture(scope="module")
def learnt(pools):
    config = DiscoveryConfig(only_novel=False)
    return learn(pools.known, pools.novel.values, config, Workplace("cpu"))


def test_separate_classes_are_found_counted_and_named(pools, learnt):
    score = score_pools(learnt, list(draw_pools(pools, MIXED, 4)), DiscoveryConfig(only_novel=False), Silent())
    assert score["episodes"] == 4
    assert score["acc"] > 0.8
    assert score["novel_right"] > 0.8
    assert score["known_named"] > 0.4
    assert score["novel_called_known"] < 0.2
    assert 0 <= score["line_ece"] <= 1


def test_scores_are_those_of_counting(pools, learnt):
    (draw,) = draw_pools(pools, RUN, 1)
    config = DiscoveryConfig(classes=4)
    score = score_pools(learnt, [draw], config, Silent())
    from medi.discover.pipeline import discover_with

    outcome = discover_with(learnt, draw.pool, config)
    found = np.array(
        [-1 if one.kind != "novel" else int(one.label) for one in outcome.recogniser.recognise(draw.query)]
    )
    assert score["acc_observed"] == pytest.approx(acc(draw.truth, np.array(outcome.discovery.labels)))
    assert score["acc"] <= acc(draw.labels, np.where(found < 0, 99, found)) + 1e-12
    assert score["acc_ci95"] is None
    assert "number_near" not in score  # the number was told
    assert "known_named" not in score  # nothing known was there


def test_features_that_are_all_alike_score_chance(pools, learnt):
    draws = [
        replace(draw, pool=np.ones_like(draw.pool), query=np.ones_like(draw.query))
        for draw in draw_pools(pools, RUN, 3)
    ]
    assert score_pools(learnt, draws, DiscoveryConfig(classes=4), Silent())["acc"] <= 0.25 + 1e-12


@pytest.fixture
def features_file(tmp_path):
    world = gaussian_classes(14, 12, apart=4.0)
    paths = np.array([f"class {c:02}/{i}.jpg" for i, c in enumerate(world.labels)])
    np.savez(tmp_path / "features.npz", path=paths, vector=world.values.astype(np.float32))
    return f"features:{tmp_path / 'features.npz'}"


def grid(**asked):
    options = {"dataset": "glyphs", "method": "plain", "grouping": "posterior"} | asked
    return runs_asked(NamedSettings("default", {}), [0], **options)


def done(runs, out, resume=False):
    return run_grid(runs, Setup(out, 2, torch.device("cpu"), Silent(), resume))


def drawings(count, per_class, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.rand(count, 1, 1, 8, 8, generator=generator).repeat(1, per_class, 1, 1, 1)
    images = (255 * (0.8 * shapes + 0.2 * torch.rand(shapes.shape, generator=generator))).byte().flatten(0, 1)
    return ImageSet(images, torch.arange(count).repeat_interleave(per_class), tuple(map(str, range(count))))


@pytest.mark.parametrize("method", ["mp", "mm"])
def test_classes_with_fewer_images_than_a_task_takes_are_learnt_from_all_the_same(method, tmp_path):
    known, novel = drawings(8, 14, seed=0), drawings(3, 20, seed=1)  # of 14, some are kept and some held out
    benchmark = Benchmark.of("drawings", known, novel, way=3, augmentation=Augmentation())
    changes = {"network": "mlp", "schedule": {"steps": 2}}
    run = Run("drawings", method, "cpu", "uniform", 3, 5, "honest", "episode", 0, changes, grouping="posterior")
    setup = Setup(tmp_path, 1, torch.device("cpu"), Silent())
    (row,) = rows_of_batch([run], benchmark, setup)
    assert row["network"] == "mlp"
    assert 0 <= row["acc"] <= 1
    assert list(setup.models.glob(f"{method}-*.safetensors"))


def test_a_divergence_is_a_row_without_scores_for_every_pool_that_would_have_used_it(tmp_path):
    benchmark = Benchmark.of("drawings", drawings(8, 14, 0), drawings(3, 20, 1), way=3, augmentation=Augmentation())
    changes = {"network": "mlp", "schedule": {"steps": 50, "rate": 1e30}}
    run = Run("drawings", "mp", "cpu", "uniform", 3, 5, "honest", "episode", 0, changes, grouping="posterior")
    setup = Setup(tmp_path, 1, torch.device("cpu"), Silent())
    rows = list(rows_of_batch([run, replace(run, classes="auto")], benchmark, setup))
    assert all("mp diverged" in row["diverged"] for row in rows)
    assert [(row["acc"], row["nmi"], row["ari"]) for row in rows] == [(None, None, None)] * 2
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = read_rows(tmp_path / "results.jsonl")
    assert pool_cells(read) == []


def test_a_file_of_features_is_a_dataset_and_a_grid_of_it_resumes(features_file, tmp_path):
    runs = grid(dataset=features_file, classes="given,auto", pool="pure,mixed", observations="3")
    assert len(runs) == 4
    rows = done(runs, tmp_path / "out")
    assert {(row["classes"], row["pool"]) for row in rows} == {
        (a, b) for a in ("given", "auto") for b in ("pure", "mixed")
    }
    assert all(row["acc"] > row["chance"] for row in rows if row["pool"] == "pure")
    assert done(runs, tmp_path / "out", resume=True) == rows
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_a_partition_of_ones_own_is_scored_on_the_same_road(features_file, tmp_path):
    (tmp_path / "own.py").write_text("def one(points, k, generator):\n    return [0] * len(points)\n")
    runs = grid(dataset=features_file, grouping=f"{tmp_path / 'own.py'}:one", observations="3")
    (row,) = done(runs, tmp_path / "out")
    assert row["number"] == 1
    assert row["novel_right"] == pytest.approx(1 / row["way"])


@pytest.mark.parametrize(
    ("asked", "culprit"),
    [
        ({"observations": "all"}, "--observations all"),
        ({"regime": "grouped"}, "--regime grouped"),
        ({"score": "pooled"}, "--score pooled"),
        ({"balance": "on"}, "--balance on"),
        ({"pool": "both"}, "both"),
        ({"classes": "some"}, "some"),
        ({"grouping": "posterier"}, "posterior"),
        ({"grouping": "mine.py"}, r"FILE\.py:NAME"),
    ],
)
def test_what_people_never_have_is_refused(asked, culprit):
    with pytest.raises(InputError, match=culprit):
        grid(**{"method": "mp"} | asked)


@pytest.mark.parametrize("asked", [{"method": "plain"}, {"classes": "auto"}, {"pool": "mixed"}])
def test_what_methods_by_themselves_cannot_do_is_refused_by_what_was_asked(asked):
    ((option, value),) = asked.items()
    with pytest.raises(InputError, match=f"^--{option} {value}: .*--grouping posterior"):
        grid(**{"method": "mp", "grouping": "kmeans"} | asked)
