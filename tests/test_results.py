"""Numbers in the documents are those of the committed results, and documents do not point at nothing."""

import re
from pathlib import Path
from statistics import fmean, stdev

import pytest
import render

from medi.bench.grid import ALL
from medi.bench.rows import read_rows
from medi.methods import method_of
from medi.methods.medi import READINGS, WINNERS
from medi.methods.mm import MM
from medi.methods.rs import RS

ROOT = Path(__file__).resolve().parent.parent


def test_every_table_is_what_the_committed_results_give():
    for path, text in render.files().items():
        assert path.read_text() == text, f"{path.name} is out of date: run `make results`"


@pytest.mark.parametrize("document", [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")], ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_the_readmes_python_works():
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict = {}
    exec(code, names)
    labels = names["groups"].labels[0].view(3, 3)
    assert (labels == labels[:, :1]).all()
    assert names["groups"].assign(names["features"], names["torch"].tensor([[3, 803, 1603]])).labels.shape == (1, 3)


def test_the_choice_of_mm_on_glyphs_is_what_the_committed_trials_give():
    scores: dict[str, list[float]] = {}
    for row in read_rows(ROOT / "results" / "mm" / "choices.jsonl"):
        if row["dataset"] == "glyphs":
            scores.setdefault(row["config"], []).append(row["acc"])
    assert {len(splits) for splits in scores.values()} == {5}
    assert max(scores, key=lambda config: fmean(scores[config])) == MM.chosen["glyphs"]


CHOSEN_BY_TRIALS = [
    ("few/choices", "cifar10", "rs"),
    ("few/choices", "svhn", "rs"),
    ("abundant/choices", "svhn", "dtc"),
    ("abundant/threes", "svhn", "rs"),
    ("abundant/choices", "omniglot", "dtc"),
    ("abundant/choices", "omniglot", "rs"),
    ("medi/choices", "glyphs", "medi"),
    ("medi/choices", "rules", "medi"),
]


def first_of_trials(file: str, dataset: str, method: str) -> str:
    """The candidate with the best mean ACC, of those that were tried on most splits and numbers of observations."""
    scores: dict[str, dict[tuple, float]] = {}
    for row in read_rows(ROOT / "results" / f"{file}.jsonl"):
        if (row["dataset"], row["method"], row["regime"]) == (dataset, method, "honest"):
            scores.setdefault(row["config"], {})[*row["held_out"], row["observations"]] = row["acc"]
    assert len(scores) > 1
    most = max(map(len, scores.values()))
    (tried,) = {frozenset(trials) for trials in scores.values() if len(trials) == most}  # else there is no order
    return max((config for config in scores if set(scores[config]) == tried), key=lambda c: fmean(scores[c].values()))


@pytest.mark.parametrize(("file", "dataset", "method"), CHOSEN_BY_TRIALS)
def test_what_default_stands_for_is_the_first_of_the_committed_trials(file, dataset, method):
    best, everything = first_of_trials(file, dataset, method), file.startswith("abundant")
    assert method_of(method).preset("default", dataset, everything=everything) == method_of(method).preset(best)


def mean_and_spread(values: list[float]) -> str:
    """Mean, and standard deviation where there are several."""
    mean = f"{fmean(values):.1f}"
    return f"{mean} ± {stdev(values):.1f}" if len(values) > 1 else mean


def test_the_settings_of_rs_on_svhn_are_told_with_what_came_of_each():
    def found(config: str, *files: str) -> list[float]:
        rows = [row for file in files for row in read_rows(ROOT / "results" / f"{file}.jsonl")]
        of = ("svhn", "rs", config, ALL)
        return [
            100 * row["acc"]
            for row in rows
            if (row["dataset"], row["method"], row["config"], row["observations"]) == of
        ]

    text = (ROOT / "docs" / "baselines.md").read_text().partition("### What was chosen, and what came of it")[2]
    lines = re.findall(r"^\| `(\S+)`.* \|(.*)\|(.*)\|(.*)\|$", text.partition("###")[0], re.MULTILINE)
    assert len(lines) == 6
    for config, *cells in lines:
        novel = found("default" if RS.abundant["svhn"] == config else config, "abundant/results", "earlier/results")
        twos, threes = found(config, "abundant/choices"), found(config, "abundant/threes")
        means = [f"{fmean(accs):.1f}" if accs else "" for accs in (twos, threes)]
        assert [cell.strip() for cell in cells] == [*means, mean_and_spread(novel)], config


def trials_of_medi(dataset: str, regime: str = "honest") -> dict[str, float]:
    """Mean ACC of every candidate, over splits and over one and five observations."""
    scores: dict[str, list[float]] = {}
    for row in read_rows(ROOT / "results" / "medi" / "choices.jsonl"):
        if (row["dataset"], row["regime"]) == (dataset, regime):
            scores.setdefault(row["config"], []).append(row["acc"])
    assert {len(values) for values in scores.values()} == {4}  # two splits, one and five observations
    return {config: fmean(values) for config, values in scores.items()}


@pytest.mark.parametrize(
    ("dataset", "recipes", "readings", "read_by"),
    [
        ("cifar10", ["photo-tasks", "photo-spliced-tasks"], ["white", "levels", "turned"], "photo-spliced-tasks"),
        ("svhn", ["digit-spliced", "digit-crossed"], ["white", "turned"], "digit-crossed"),
        ("cifar100", ["objects-tasks", "objects-mixed-tasks"], ["white", "views"], "objects-tasks"),
        ("omniglot", ["character", "character-turned", "character-deep"], ["white"], "character-deep"),
    ],
)
def test_the_winners_of_medi_are_what_the_rules_in_its_document_give(dataset, recipes, readings, read_by):
    scores = trials_of_medi(dataset)
    recipe = max(recipes, key=lambda name: fmean(scores[f"{name}-{reading}"] for reading in readings))
    reading = max(READINGS, key=lambda name: scores.get(f"{read_by}-{name}", 0.0))
    seen_together = trials_of_medi(dataset, "transductive")
    grouping = max(seen_together, key=lambda config: seen_together[config])
    assert WINNERS[dataset] == (recipe, f"{reading}-neighbours" if grouping.endswith("-neighbours") else reading)
