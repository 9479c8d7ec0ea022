from dataclasses import replace

import pytest

from medi.bench.grid import Grid, Run, batches
from medi.bench.grid_options import parse_list, parse_observations
from medi.bench.published import published
from medi.core.errors import InputError
from medi.methods import METHODS
from medi.registry import METHOD_NAMES

RUN = Run("cifar10", "mp", "default", "uniform", 5, 5, "honest", "episode", 0)


def grid(**changes):
    options = {
        "datasets": ["cifar10", "omniglot"],
        "methods": ["kmeans", "mp"],
        "observations": [1, 5],
        "regimes": ["honest", "grouped"],
        "seeds": [0, 1, 2],
    }
    return Grid(**(options | changes)).runs()


def test_a_grid_is_the_product_of_its_parts_each_once():
    runs = grid()
    assert len(runs) == len(set(runs)) == 2 * 2 * 2 * 2 * 3
    assert {run.way for run in runs if run.dataset == "cifar10"} == {5}
    assert {run.way for run in runs if run.dataset == "omniglot"} == {20}
    assert {run.sampler for run in runs if run.method == "kmeans"} == {None}


def test_runs_that_share_a_learner_stand_together():
    seen = [run.training for run in grid()]
    blocks = [key for i, key in enumerate(seen) if i == 0 or seen[i - 1] != key]
    assert len(blocks) == len(set(blocks))


def test_a_row_leads_back_to_its_run_whatever_its_settings():
    changed = replace(RUN, changes={"images": 3})
    assert Run.of_row(changed.as_row() | {"acc": 0.5}) == RUN == changed


def test_lists_are_split_and_repetitions_dropped():
    assert parse_list("a, b,a", "--x") == ["a", "b"]
    with pytest.raises(InputError, match="--x is empty"):
        parse_list(" , ", "--x")
    assert parse_observations("1,05,5") == [1, 5]
    assert parse_observations("all") == ["all"]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "five", "1,,x", "²"])
def test_observations_that_are_no_numbers_are_refused(text):
    with pytest.raises(InputError, match="--observations"):
        parse_observations(text)


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"observations": ["all"]}, "with --score pooled"),
        ({"way": 1}, "at least 2"),
        ({"regimes": ["honset"]}, "did you mean 'honest'"),
        ({"balance": "on", "sizes": "unequal"}, "--sizes unequal"),
        ({"balance": "on", "observations": ["all"], "score": "pooled"}, "--observations all"),
        ({"sizes": "unequal", "observations": ["all"], "score": "pooled"}, "--sizes equal"),
    ],
)
def test_impossible_grids_are_refused_with_the_cure(changes, culprit):
    with pytest.raises(InputError, match=culprit):
        grid(**changes)


def test_the_papers_numbers_are_found_by_setting_and_sampler():
    assert published(RUN).mean == pytest.approx(0.579)
    assert published(replace(RUN, sampler="cata")).mean == pytest.approx(0.585)
    assert published(replace(RUN, method="kmeans", sampler=None)).mean == pytest.approx(0.328)
    assert published(replace(RUN, observations="all")).mean == pytest.approx(0.732)
    assert published(replace(RUN, way=3)) is None
    assert published(replace(RUN, dataset="glyphs")) is None
    assert published(replace(RUN, method="kcl")) is None


def test_everything_is_asked_about_all_novel_classes():
    runs = Grid(datasets=["svhn", "omniglot"], methods=["rs"], observations=["all", 5], score="pooled").runs()
    assert [(run.dataset, run.observations, run.way) for run in runs] == [
        ("svhn", "all", 5),
        ("svhn", 5, 5),
        ("omniglot", "all", 659),
        ("omniglot", 5, 20),
    ]


def test_what_methods_are_told_is_as_their_presets_have_it_or_the_same_for_all():
    def told(**changes):
        return {run.method for run in grid(**changes) if run.balance}

    assert told() == {"mp"}
    assert told(balance="on") == {"kmeans", "mp"}
    assert told(balance="off") == told(sizes="unequal") == set()
    assert told(observations=["all"], score="pooled") == set()
    assert {run.regime for run in grid(balance="on") if run.balance} == {"honest"}  # an oracle needs no sizes


def test_a_batch_has_one_learner_and_is_told_one_thing():
    runs = grid(regimes=["honest", "transductive", "grouped"]) + grid(balance="off") + grid(sizes="unequal")
    together = batches(runs)
    assert sorted(run.describe() for batch in together for run in batch) == sorted(run.describe() for run in runs)
    for batch in together:
        assert len({(run.training, run.score, run.sizes) for run in batch}) == 1
        assert len({run.balance for run in batch if run.regime != "grouped"}) <= 1
    both = [replace(RUN, balance=True), RUN, replace(RUN, regime="grouped")]
    assert batches(both) == [(both[0], both[2]), (both[1],)]
    assert batches(both[2:]) == [(both[2],)]


@pytest.mark.parametrize("name", METHOD_NAMES)
def test_the_preset_for_a_cpu_uses_sizes_as_the_default_does(name):
    assert METHODS[name].preset("cpu").balanced == METHODS[name].preset("default").balanced
