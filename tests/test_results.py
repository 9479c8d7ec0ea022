"""Generated tables are those of the committed results, and links between documents lead somewhere."""

import re
import subprocess
from pathlib import Path

import pytest
import render

ROOT = Path(__file__).resolve().parent.parent
CHANGED = "7600dd6515da0202080885b0e4dc1154473ef408"
"""Since this commit a GPU no longer rounds ResNet-18's features."""
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


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


def test_rows_with_rounded_features_are_those_of_commits_before_the_change():
    def git(*question: str) -> int:
        return subprocess.run(["git", *question], cwd=ROOT, capture_output=True, timeout=20).returncode

    if git("cat-file", "-e", f"{CHANGED}^{{commit}}"):
        pytest.skip("the history is not here")
    rows = render.rows_of("abundant", "earlier", "few", "medi", "mm", "mp")
    commits = {row["commit"] for row in rows if row["device"].startswith("NVIDIA")}
    commits = {one for one in commits if not git("cat-file", "-e", one)}  # some came here as part of another
    before = {one for one in commits if git("merge-base", "--is-ancestor", CHANGED, one)}
    assert before == {one for one in commits if one.startswith(render.ROUNDED)}
