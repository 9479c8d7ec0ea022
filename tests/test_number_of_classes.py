"""The page on the number of classes shows what the committed results give."""

import importlib.util
from pathlib import Path
from statistics import fmean

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


def test_the_means_over_all_settings_are_those_of_the_results():
    page = " ".join((ROOT / "docs" / "number-of-classes.md").read_text().split())
    for dataset, words in (
        ("omniglot", "{:.1f} (ours), {:.1f} (silhouette) and {:.1f} (DTC) on Omniglot"),
        ("cifar100", "{:.1f}, {:.1f} and {:.1f} on CIFAR-100"),
        ("glyphs", "{:.1f}, {:.1f} and {:.1f} on glyphs"),
    ):
        rows = read_journal(ROOT / "results" / "choose_k" / f"{dataset}.jsonl")
        errors = [
            fmean(row["mae"] for row in rows if row["method"] == method)
            for method in ("calibrated", "silhouette", "dtc probe")
        ]
        assert words.format(*errors) in page
