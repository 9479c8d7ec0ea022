"""The tables of the documents, from rows made up here: what was measured is in them, what was not is no number."""

import re
from statistics import fmean, stdev

import pytest
import tables
import trials
from hypothesis import given
from hypothesis import strategies as st

from medi.bench.figures import COMPARED
from medi.bench.grid import ALL, Run
from medi.bench.published import best_published, published, published_by_authors
from medi.bench.tables import summarise
from medi.data.facts import BENCHMARKS
from medi.methods import METHODS


def row(acc: float, method: str, dataset: str = "cifar10", observations: int | str = 5, **other: object) -> dict:
    facts = BENCHMARKS[dataset]
    run = {
        "dataset": dataset,
        "method": method,
        "config": "default",
        "sampler": "uniform" if METHODS[method].takes_sampler else None,
        "way": facts.novel if observations == ALL else facts.way,
        "observations": observations,
        "regime": "honest",
        "score": "episode",
        "seed": 0,
    }
    scores = {"acc": acc, "nmi": 0.5, "ari": 0.5, "chance": 0.25, "acc_ci95": None, "episodes": 600, "balance": True}
    return run | scores | other


def cells(table: str) -> list[dict[str, str]]:
    """The rows of a Markdown table, by the names of its columns."""
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    head = [name.strip() for name in lines[0]]
    return [dict(zip(head, (cell.strip() for cell in line), strict=True)) for line in lines[2:]]


BEFORE = [row(0.3, "kmeans"), row(0.5, "mm"), row(0.6, "mp"), row(0.7, "mp", regime="grouped")]


def test_the_headline_has_no_column_of_what_was_not_measured():
    (found,) = [
        r for r in cells(tables.by_setting(summarise(BEFORE), lambda find: tables.headline("mp", find))) if r["MP"]
    ]
    assert found == {
        "setting": "CIFAR-10 5-way 5-obs",
        "chance": "25.0",
        "K-means on pixels": "30.0",
        "MM": "50.0",
        "MP": "**60.0**",
        "MP, oracle": "70.0",
        "paper's best": "58.5 ± 0.2",
    }


@pytest.mark.parametrize(("acc", "bold"), [(0.65, "medi"), (0.55, "MP")])
def test_the_headline_shows_our_method_once_it_is_there_and_the_best_honest_score_in_bold(acc, bold):
    ours = [row(acc, "medi"), row(acc + 0.1, "medi", regime="transductive"), row(0.9, "medi", regime="grouped")]
    (found,) = cells(tables.by_setting(summarise(BEFORE + ours), lambda find: tables.headline("medi", find), (5,)))[1:2]
    assert {name for name, cell in found.items() if cell.startswith("**")} == {bold}
    assert found["medi"].strip("*") == f"{100 * acc:.1f}"
    assert found["medi, transductive"] == f"{100 * acc + 10:.1f}"
    assert found["medi, oracle"] == "90.0"
    assert "MP, oracle" not in found
    assert list(found)[2:6] == ["K-means on pixels", "MM", "MP", "medi"]  # though the first row has none of them


def test_records_have_a_row_for_what_was_measured_alone():
    assert tables.by_setting(summarise(BEFORE), tables.records) == tables.NOT_YET
    ours = [row(0.64, "medi"), row(0.66, "medi", seed=1), row(0.8, "medi", regime="grouped")]
    assert cells(tables.by_setting(summarise(BEFORE + ours), tables.records)) == [
        {
            "setting": "CIFAR-10 5-way 5-obs",
            "chance": "25.0",
            "medi": f"**65.0 ± {100 * stdev([0.64, 0.66]):.1f}**",
            "medi, oracle": "80.0",
            "MP": "60.0",
            "paper's best": "58.5 ± 0.2",
        }
    ]


@pytest.mark.parametrize("dataset", ["svhn", "cifar10", "cifar100", "omniglot"])
@pytest.mark.parametrize("observations", [1, 5])
def test_the_papers_best_is_the_highest_of_its_four_columns(dataset, observations):
    way = BENCHMARKS[dataset].way
    columns = [
        published(Run(dataset, method, "default", sampler, way, observations, "honest", "episode", 0)).mean
        for method in ("mm", "mp")
        for sampler in ("uniform", "cata")
    ]
    assert best_published(dataset, way, observations).mean == max(columns)
    assert best_published(dataset, way + 1, observations) is None


def pooled(acc: float, method: str, **other: object) -> dict:
    return row(acc, method, **{"score": "pooled"} | other)


def test_few_observations_have_a_column_a_method_and_say_how_many_seeds():
    rows = [
        pooled(0.4, "kcl"),
        pooled(0.5, "mp"),
        pooled(0.6, "mp", seed=1),
        pooled(0.7, "mp", dataset="svhn"),
        pooled(0.9, "mp", regime="grouped"),
        row(0.1, "mp"),
    ]
    table = tables.few(summarise(rows), "honest")
    svhn, cifar10 = cells(table)
    assert cifar10 == {"setting": "CIFAR-10 5-way 5-obs", "chance": "25.0", "KCL": "40.0", "MP": "55.0 ± 7.1"}
    assert svhn["KCL"] == ""
    assert "Seeds: KCL 1, MP 1 to 2." in table
    assert cells(tables.few(summarise(rows), "grouped"))[0]["MP"] == "90.0"
    assert tables.few([], "honest") == tables.NOT_YET


def test_scores_by_episodes_have_their_intervals_and_leave_other_scores_out():
    rows = [
        row(0.4, "rs", observations=1, acc_ci95=0.031),
        row(0.5, "kcl", acc_ci95=0.02),
        row(0.6, "rs", acc_ci95=0.01),
        row(0.9, "rs", regime="grouped"),
        pooled(0.7, "dtc"),
    ]
    five, one = cells(tables.by_episodes(rows))
    assert five == {"setting": "CIFAR-10 5-way 5-obs", "chance": "25.0", "KCL": "50.0 ± 2.0", "RS": "60.0 ± 1.0"}
    assert (one["KCL"], one["RS"]) == ("", "40.0 ± 3.1")
    assert tables.by_episodes([]) == tables.NOT_YET


def test_a_full_table_of_few_observations_has_every_method_in_every_setting():
    rows = [
        pooled(0.5, method, dataset=dataset, observations=count)
        for method in COMPARED
        for dataset in tables.HEADLINE
        for count in (1, 5)
    ]
    table = tables.few(summarise(rows), "honest")
    assert len(cells(table)) == 8
    assert all(len(found) == 9 and all(found.values()) for found in cells(table))
    assert max(map(len, table.splitlines())) <= 120


def test_everything_observed_has_both_scores_beside_the_papers_and_the_authors():
    rows = [
        pooled(0.7, "dtc", dataset="svhn", observations=ALL, acc_observed=0.75),
        pooled(0.8, "dtc", dataset="omniglot", observations=ALL, acc_observed=0.85),
        pooled(0.9, "mp", dataset="svhn", observations=ALL),
    ]
    chance, *found = cells(tables.abundant(rows))
    assert (chance["method"], chance["SVHN, asked"], chance["SVHN, paper"]) == ("chance", "25.0", "")
    assert [line["method"] for line in found] == ["K-means", "KCL", "MCL", "DTC", "RS", "MM", "MP"]
    by_method = {line["method"]: line for line in found}
    assert by_method["DTC"] == {
        "method": "DTC",
        "SVHN, asked": "70.0",
        "SVHN, observed": "75.0",
        "SVHN, paper": "60.9 ± 1.6",
        "Omniglot, asked": "80.0",
        "Omniglot, observed": "85.0",
        "Omniglot, paper": "89.0",
        "Omniglot, authors": "89.0",
        "seeds": "1",
    }
    assert (by_method["MP"]["SVHN, asked"], by_method["MP"]["SVHN, observed"]) == ("90.0", "")
    assert by_method["MCL"]["Omniglot, asked"] == ""
    assert by_method["MCL"]["Omniglot, authors"] == "85.7"
    assert published_by_authors("svhn", "mcl") is None
    assert tables.abundant([]) == tables.NOT_YET


def trial(acc: float, config: str, split: int, method: str = "dtc", **other: object) -> dict:
    return row(acc, method, config=config, split=split, held_out=[str(split)], **other)


def test_candidates_with_most_splits_come_first_and_others_are_compared_on_shared_ones():
    rows = [
        *(trial(acc, "short", split) for split, acc in enumerate([0.5, 0.7, 0.9])),
        *(trial(acc, "long", split) for split, acc in enumerate([0.6, 0.7, 0.95])),
        trial(0.99, "lucky", 2),
        trial(0.4, "elsewhere", 7),
        trial(0.1, "short", 0, regime="transductive"),
    ]
    long, short, lucky, elsewhere = cells(trials.choices(rows))
    assert long == {
        "dataset": "CIFAR-10",
        "candidate": "`long`",
        "ACC": "75.0",
        "std": "18.0",
        "splits": "3",
        "to the first": "",
    }
    assert (short["candidate"], short["to the first"]) == ("`short`", f"-5.0 ± {stdev([-10, 0, -5]) / 3**0.5:.1f}")
    assert (lucky["candidate"], lucky["std"], lucky["to the first"]) == ("`lucky`", "", "+4.0 (1)")
    assert (elsewhere["candidate"], elsewhere["splits"], elsewhere["to the first"]) == ("`elsewhere`", "1", "")
    assert cells(trials.choices(rows, regime="transductive"))[0]["ACC"] == "10.0"
    assert trials.choices([]) == tables.NOT_YET


def test_a_candidate_tried_with_several_numbers_of_observations_is_one_row_and_ranked_by_their_mean():
    rows = [
        *(trial(acc, "even", split) for split, acc in enumerate([0.6, 0.8])),
        *(trial(acc, "even", split, observations=1) for split, acc in enumerate([0.5, 0.7])),
        *(trial(acc, "steep", split) for split, acc in enumerate([0.7, 0.9])),
        *(trial(acc, "steep", split, observations=1) for split, acc in enumerate([0.2, 0.3])),
        trial(1.0, "steep", 2),  # with one observation this split is still to come
        trial(1.0, "once", 0),
    ]
    table = trials.choices(rows)
    even, steep, once = cells(table)
    assert even == {
        "dataset": "CIFAR-10",
        "candidate": "`even`",
        "ACC": "65.0",
        "5-obs": "70.0",
        "1-obs": "60.0",
        "std": f"{stdev([55, 75]):.1f}",
        "splits": "2",
        "to the first": "",
    }
    assert (steep["ACC"], steep["5-obs"], steep["1-obs"], steep["splits"]) == ("52.5", "80.0", "25.0", "2")
    assert steep["to the first"] == f"-12.5 ± {stdev([-10, -15]) / 2**0.5:.1f}"
    assert (once["ACC"], once["5-obs"], once["1-obs"]) == ("100.0", "100.0", "")
    assert trials.SEVERAL_NOTE in table


def test_a_split_counts_once_all_numbers_of_observations_are_there():
    rows = [trial(0.5, "half", 0), trial(0.6, "half", 1, observations=1), trial(0.7, "whole", 0)]
    (whole,) = cells(trials.choices(rows))
    assert (whole["candidate"], whole["5-obs"]) == ("`whole`", "70.0")


def test_trials_of_several_methods_and_of_everything_observed_are_kept_apart():
    rows = [
        trial(0.5, "cifar10", 0),
        trial(0.6, "cifar10", 0, method="rs"),
        trial(0.7, "cifar10", 0, observations=ALL),
    ]
    found = cells(trials.choices(rows))
    assert {(line["method"], line["ACC"], line["5-obs"], line["all"]) for line in found} == {
        ("DTC", "50.0", "50.0", ""), ("RS", "60.0", "60.0", ""), ("DTC", "70.0", "", "70.0"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "dataset", "bold", "others"),
    [
        ("dtc", "svhn", {METHODS["dtc"].chosen["svhn"]}, {"svhn-faster", "gone since"}),
        ("medi", "rules", {"cpu-views"}, {"cpu-white"}),  # `cpu` has the same settings
        (
            "medi",
            "cifar10",
            {"photo-spliced-tasks-white", "photo-spliced-tasks-turned-levels"},
            {"photo-spliced-white"},
        ),
    ],
)
def test_what_default_stands_for_is_in_bold(method, dataset, bold, others):
    rows = [trial(0.5, config, 0, method=method, dataset=dataset) for config in bold | others]
    table = trials.choices(rows)
    found = {line["candidate"] for line in cells(table)}
    assert found == {f"**`{config}`**" for config in bold} | {f"`{config}`" for config in others}
    assert (trials.BOLD_RECIPE_NOTE if method == "medi" else trials.BOLD_NOTE) in table
    assert "bold" not in trials.choices([trial(0.5, config, 0, method="dtc") for config in ("svhn", "gone since")])


@given(st.lists(st.lists(st.floats(0.1, 1.0), min_size=1, max_size=6), min_size=1, max_size=12))
def test_a_table_of_choices_holds_every_candidates_mean_in_order(scores):
    rows = [trial(acc, f"c{n}", split) for n, splits in enumerate(scores) for split, acc in enumerate(splits)]
    found = cells(trials.choices(rows))
    means = {f"`c{n}`": fmean(splits) for n, splits in enumerate(scores)}
    assert {line["candidate"]: line["ACC"] for line in found} == {c: f"{100 * mean:.1f}" for c, mean in means.items()}
    order = [(-int(line["splits"]), -float(line["ACC"])) for line in found]
    assert order == sorted(order)
    assert not any(re.search(r"-0\.0", line.get("to the first", "")) for line in found)
