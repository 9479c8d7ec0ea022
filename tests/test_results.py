"""Generated tables are those of the committed results, and links between documents lead somewhere."""

import re
from pathlib import Path

import pytest
import render

ROOT = Path(__file__).resolve().parent.parent
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
