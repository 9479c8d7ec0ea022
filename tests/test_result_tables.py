"""The tables of the documents, from rows made up here: what was measured is in them, what was not is no number."""

from dataclasses import replace
from functools import partial
from statistics import stdev

import crossing
import glance_tables
import part_tables
import pool_page
import pytest
import tables
from markdown_cells import cells

from medi.bench.grid import ALL, CLASSES, POOLS, Run
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


WHOLE = Run("omniglot", "mm", "whole", "uniform", 20, 5, "honest", "episode", 0, balance=True)
LESS = replace(WHOLE, config="no-inner-steps")


def seeds_of(run: Run, *scores: float) -> list[dict]:
    fixed = {"nmi": 0.4, "ari": 0.3, "chance": 0.167, "acc_ci95": 0.01, "episodes": 200}
    return [replace(run, seed=seed).as_row() | fixed | {"acc": acc} for seed, acc in enumerate(scores)]


def test_the_first_settings_are_the_whole_and_the_others_have_their_difference_to_it():
    found = cells(part_tables.parts(seeds_of(WHOLE, 0.5, 0.6, 0.7) + seeds_of(LESS, 0.49, 0.58, 0.67), "mm"))
    assert [line["Omniglot"] for line in found] == ["16.7", "60.0 ± 10.0", "-2.0 ± 2.5"]  # 1 * t(0.975, 2) / sqrt(3)
    assert [line[""] for line in found] == ["chance", "whole", "no inner steps"]


def test_what_being_told_adds_is_paired_by_seed_and_marked_where_a_version_differs():
    def few(acc: float, method: str, **other: object) -> dict:
        return row(acc, method, "svhn", **{"score": "pooled", "sampler": None, "method_version": 1} | other)

    rows = [few(0.5, "kcl", balance=False), few(0.9, "kcl", balance=False, seed=1), few(0.6, "kcl")]
    rows += [few(0.5, "mcl", balance=False, method_version=None), few(0.4, "mcl")]
    rows += [few(0.7, "dtc"), few(0.2, "rs", balance=False), few(0.2, "kcl", sizes="unequal", balance=False)]
    assert cells(part_tables.told(rows)) == [{"setting": "SVHN 5-way 5-obs", "KCL": "+10.0", "MCL": "-10.0 *"}]
    assert part_tables.told(rows[:2]) == tables.NOT_YET


def test_the_picture_over_observations_names_every_number_that_any_method_has():
    few = {"score": "pooled", "balance": False}
    everywhere = [
        row(0.5, method, dataset, count, sampler="cata" if method in ("mp", "mm") else None, **few)
        for method in crossing.METHODS
        for dataset in crossing.PANELS
        for count in (5, ALL)
    ]
    one_more = [*everywhere, row(0.7, "uno", "cifar10", 20, sampler=None, **few)]
    ticks = [crossing.picture(rows).count(">20</text>") for rows in (everywhere, one_more)]
    assert ticks[1] - ticks[0] == 1  # the axis of ACC has a 20 of its own


SAID = ("line_confidence", "novel_right", "novel_called_known", "known_named", "acc", "confidence")


def pool_rows(method, dataset="glyphs", way=20, **scores):
    asked = Run(dataset, method, "default", None, way, 5, "honest", "episode", 0, grouping="posterior")
    fixed = dict.fromkeys(SAID, 0.5) | {"episodes": 10, "acc_observed": 0.6, "number_near": 0.1, "interval_holds": 0.8}
    named = [{"pool": pool, "classes": classes} for pool in POOLS for classes in CLASSES]
    return [asked.as_row() | one | fixed | scores for one in named]


def test_a_cell_has_its_three_settings_and_chance_where_the_number_is_told():
    plain, _, chance = cells(pool_page.tables(pool_rows("plain") + pool_rows("kmeans", "cifar10", 5))["right"])
    assert (plain["letters"], plain.get("CIFAR-10", ""), plain["n"]) == ("60 / 60 / 60", "", "1 x 10")
    assert 15 < float(chance["letters"]) < 30  # a hundred items in twenty groups
    assert 35 < float(chance["CIFAR-10"]) < 50  # 25 in five


def test_what_is_said_is_compared_on_the_sets_that_all_were_run_on():
    both = pool_rows("plain") + pool_rows("plain", "svhn", 5, acc_observed=0.0) + pool_rows("kmeans")
    plain, kmeans = cells(pool_page.tables(both)["said"])
    assert plain["right lines"] == kmeans["right lines"] == "60"


ONE = {"acc": 0.5, "all right": 0.6, "groups": 4, "classes": 5, "seconds": 2.0}
SURE = {"bins": {"lines": [4, 6], "confidence": [1.0, 5.0], "right": [1, 6]}}


def glance_row(pool: str, name: str = "garden", draw: int = 0, **approaches: dict) -> dict:
    ours = {"medi": ONE | SURE} | ({"medi --only-novel": ONE | SURE} if pool == "pure" else {})
    return {"set": name, "groups": 5, "draw": draw, "pool": pool, "approaches": ours | approaches}


def glance_lines(rows: list[dict], pool: str) -> dict[str, dict[str, str]]:
    """The lines of a table of the page by their first cell."""
    return {line[""]: line for line in cells(glance_tables.page_tables(rows)[pool])}


def test_a_set_has_a_column_and_the_best_guess_is_bold():
    rows = [
        glance_row("pure", HDBSCAN=ONE | {"seconds": 0.01}),
        glance_row("mixed", HDBSCAN=ONE | {"acc": 0.7, "groups": 9}),
        glance_row("mixed", "cifar10", HDBSCAN=ONE | {"acc": 0.3}),
    ]
    found = glance_lines(rows, "mixed")
    ours, theirs = found["MEDI"], found["HDBSCAN"]
    assert list(ours)[1:3] == ["garden", "CIFAR-10"]
    assert (ours["garden"], theirs["garden"]) == ("50", "**70**")
    assert (ours["CIFAR-10"], theirs["CIFAR-10"]) == ("**50**", "30")
    assert (ours["number off by"], theirs["number off by"]) == ("**20**", "50")
    assert [line["time"] for line in glance_lines(rows, "pure").values()] == ["1", "1/200"]
