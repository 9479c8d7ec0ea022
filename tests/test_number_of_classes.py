"""The page on the number of classes shows what the committed results give."""

import importlib.util
from pathlib import Path

from medi.files import read_journal

ROOT = Path(__file__).resolve().parent.parent


def test_the_pages_tables_are_what_the_committed_results_give():
    spec = importlib.util.spec_from_file_location("choose_k_study", ROOT / "benchmarks" / "choose_k.py")
    study = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(study)
    rows = [row for path in sorted((ROOT / "results" / "choose_k").glob("*.jsonl")) for row in read_journal(path)]
    page = (ROOT / "docs" / "number-of-classes.md").read_text()
    assert study.table(rows) in page
    assert study.intervals(rows) in page
