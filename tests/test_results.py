"""Generated tables are those of the committed results, links lead somewhere, and the Python in documents works."""

import re
import subprocess
from pathlib import Path

import pytest
import render

ROOT = Path(__file__).resolve().parent.parent
CHANGED = "7600dd6515da0202080885b0e4dc1154473ef408"
"""Since this commit a GPU no longer rounds ResNet-18's features."""
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def python_of(page: str) -> dict:
    """The names that the Python of a document leaves behind."""
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
        exec(code, names)
    return names


def test_every_table_is_what_the_committed_results_give():
    for path, text in render.files().items():
        assert path.read_text() == text, f"{path.relative_to(ROOT)} is out of date: run `make results`"


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target, heading in re.findall(r"\]\(([^):#]*)(?:#([^)]*))?\)", document.read_text()):
        file = document.parent / target if target else document
        assert file.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert heading in anchors, f"{target}#{heading}"


def test_the_estimators_python_finds_the_digits():
    names = python_of("docs/estimator.md")
    novel = names["novel"]
    assert names["acc"](names["y"][novel], names["model"].labels_[novel]) > 0.6


def test_the_theorys_python_estimates_an_overlap():
    names = python_of("docs/theory.md")
    assert 0 <= names["theory"].overlap(names["z"], names["y"]).tau <= 1


def test_rows_with_rounded_features_are_those_of_commits_before_the_change():
    def git(*question: str) -> int:
        return subprocess.run(["git", *question], cwd=ROOT, capture_output=True, timeout=20).returncode

    if git("cat-file", "-e", f"{CHANGED}^{{commit}}"):
        pytest.skip("the history is not here")
    rows = render.rows_of("abundant", "earlier", "few", "medi", "mm", "mp")
    commits = {row["commit"] for row in rows if row["device"].startswith("NVIDIA")}
    before = {one for one in commits if git("merge-base", "--is-ancestor", CHANGED, one)}
    assert before == {one for one in commits if one.startswith(render.ROUNDED)}
