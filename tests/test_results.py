"""Numbers in the documents are those of the committed results, and documents do not point at nothing."""

import re
from pathlib import Path
from statistics import fmean

import pytest
import render

from medi.bench.grid import Run
from medi.bench.rows import read_rows
from medi.bench.run import settings_of
from medi.methods.mm import MM

ROOT = Path(__file__).resolve().parent.parent


def test_every_table_is_what_the_committed_results_give():
    for path, text in render.files().items():
        assert path.read_text() == text, f"{path.name} is out of date: run `make results`"


@pytest.mark.parametrize("folder", ["mp", "cata", "mm", "few", "abundant", "medi"])
def test_measured_rows_were_made_with_what_their_settings_stand_for_now(folder):
    for row in read_rows(ROOT / "results" / folder / "results.jsonl"):
        run = Run.of_row(row)
        assert row["settings"] == settings_of(run), f"measure {run.describe()} again: its settings have changed"


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
