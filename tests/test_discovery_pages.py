"""The pages on the number of classes, on the estimator and on pools of photos show what the committed results give."""

import json
from pathlib import Path
from statistics import fmean

from studies import benchmark

from medi.runtime.files import read_journal

ROOT = Path(__file__).resolve().parent.parent


def test_the_table_of_verdicts_is_what_the_committed_results_give():
    rows = read_journal(ROOT / "results" / "diagnose" / "cpu.jsonl")
    assert benchmark("diagnose").table(rows) in (ROOT / "docs" / "estimator.md").read_text()


def test_the_tables_of_pools_are_what_the_committed_results_give():
    study, page = benchmark("pool"), (ROOT / "docs" / "cluster.md").read_text()
    figures = json.loads((ROOT / "results" / "cluster" / "pool.json").read_text())
    assert study.memory_table(figures) in page
    assert study.process_table(figures) in page


def test_the_pages_tables_are_what_the_committed_results_give():
    study = benchmark("choose_k")
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
