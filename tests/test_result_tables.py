"""The tables of the documents, from rows made up here: what was measured is in them, what was not is no number."""

from functools import partial
from statistics import stdev

import pytest
import tables
from markdown_cells import cells

from medi.bench.grid import ALL
from medi.data.facts import BENCHMARKS


def row(acc: float, method: str, dataset: str = "cifar10", observations: int | str = 5, **other: object) -> dict:
    run = {
        "dataset": dataset,
        "method": method,
        "config": "default",
        "sampler": "uniform" if method in ("mp", "mm") else None,
        "way": BENCHMARKS[dataset].way,
        "observations": observations,
        "regime": "honest",
        "score": "episode",
        "seed": 0,
    }
    scores = {"acc": acc, "nmi": 0.5, "ari": 0.5, "chance": 0.25, "acc_ci95": None, "episodes": 600, "balance": True}
    return run | scores | other


def trial(acc: float, config: str, split: int, settings: dict | None = None, **other: object) -> dict:
    return row(acc, "dtc", config=config, held_out=[str(split)], settings=settings or {}, device="cpu") | other


def test_the_headline_has_the_best_honest_score_in_bold_and_no_column_of_what_was_not_measured():
    rows = [row(0.3, "kmeans"), row(0.6, "mp"), row(0.5, "medi"), row(0.9, "medi", regime="transductive")]
    (found,) = [one for one in cells(tables.by_setting(rows, tables.headline)) if one["MP"]]
    assert found == {
        "setting": "CIFAR-10 5-way 5-obs",
        "chance": "25.0",
        "K-means on pixels": "30.0",
        "MP": "**60.0**",
        "medi": "50.0",
        "medi, transductive": "90.0",
        "paper's best": "58.5 ± 0.2",
    }


def test_seeds_become_a_mean_and_a_standard_deviation():
    rows = [row(0.64, "mp"), row(0.66, "mp", seed=1), row(0.8, "mp", regime="grouped"), row(0.1, "mp", sampler="cata")]
    (found,) = [one for one in cells(tables.by_setting(rows, partial(tables.of_method, "mp"))) if one["MP"]]
    assert found["MP"] == f"**65.0 ± {100 * stdev([0.64, 0.66]):.1f}**"
    assert (found["oracle"], found["published, without CATA"]) == ("80.0", "57.9 ± 0.1")


def test_everything_observed_stands_over_the_papers_and_the_authors_figures():
    everything = {"observations": ALL, "score": "pooled"}
    rows = [
        row(0.7, "dtc", "svhn", **everything),
        row(0.6, "kmeans", "svhn", **everything, config="features"),
        row(0.8, "dtc", "omniglot", **everything, way=659),
    ]
    svhn, of_paper, omniglot, _, of_authors = cells(tables.abundant(rows))
    assert svhn == {
        "set": "SVHN", "chance": "25.0", "by": "us", "K-means on features": "60.0", "DTC": "70.0",
    }  # fmt: skip
    assert (of_paper["by"], of_paper["K-means on features"], of_paper["DTC"]) == ("paper", "42.6 ± 0.0", "60.9 ± 1.6")
    assert (omniglot["set"], omniglot["DTC"], of_authors["DTC"]) == ("Omniglot", "80.0", "89.0")
    assert tables.abundant([]) == tables.NOT_YET


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, "70.0"),
        ({"supervised_batch": None, "setting of before": 3}, "70.0"),  # what did not exist then is not other
        ({"stage": {"epochs": 40}, "known": 79}, "70.0"),  # as today
        ({"stage": {"epochs": 200}}, "70.0 †"),
        ({"supervised": {"drop_at": [0.5]}}, "70.0 †"),
    ],
)
def test_a_row_of_other_settings_than_the_preset_is_marked(settings, shown):
    rows = [row(0.7, "rs", "svhn", observations=ALL, score="pooled", settings=settings)]
    rows += [row(0.2, "uno", "omniglot", observations=ALL, score="pooled", config="sgd-0.1", sampler=None)]
    svhn, _, omniglot, *_ = cells(tables.abundant(rows))
    assert (svhn["RS"], omniglot["UNO"]) == (shown, "20.0 †")


def test_candidates_with_most_splits_come_first_and_others_are_compared_on_shared_ones():
    rows = [
        *(trial(acc, "short", split) for split, acc in enumerate([0.5, 0.7, 0.9])),
        *(trial(acc, "long", split) for split, acc in enumerate([0.6, 0.7, 0.95])),
        trial(0.99, "lucky", 2),
        trial(0.4, "elsewhere", 7),
    ]
    long, short, lucky, elsewhere = cells(tables.trials(rows))
    assert long == {"candidate": "`long`", "ACC": "75.0", "std": "18.0", "splits": "3", "to the first": ""}
    assert (short["candidate"], short["to the first"]) == ("`short`", f"-5.0 ± {stdev([-10, 0, -5]) / 3**0.5:.1f}")
    assert (lucky["candidate"], lucky["std"], lucky["to the first"]) == ("`lucky`", "", "+4.0 (1)")
    assert (elsewhere["candidate"], elsewhere["to the first"]) == ("`elsewhere`", "")
