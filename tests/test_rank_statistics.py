"""`benchmarks/rank_statistics.py`: shares of pairs against a loop over them, and the page's table."""

import json
import math
from itertools import permutations
from pathlib import Path

import torch
from studies import benchmark

ROOT = Path(__file__).resolve().parent.parent


def test_agreement_counts_pairs_with_equal_sets():
    generator = torch.Generator().manual_seed(0)
    features, labels = torch.rand(12, 5, generator=generator), torch.arange(12) % 3
    sets = [frozenset(row.topk(2).indices.tolist()) for row in features]
    pairs = list(permutations(range(12), 2))
    equal = {pair: sets[pair[0]] == sets[pair[1]] for pair in pairs}
    same = [pair for pair in pairs if labels[pair[0]] == labels[pair[1]]]
    other = [pair for pair in pairs if pair not in set(same)]
    found = benchmark("rank_statistics").agreement(features, labels, 2)
    assert math.isclose(found["same"], sum(equal[p] for p in same) / len(same), abs_tol=1e-6)
    assert math.isclose(found["other"], sum(equal[p] for p in other) / len(other), abs_tol=1e-6)
    assert math.isclose(found["precision"], sum(equal[p] for p in same) / sum(equal.values()), abs_tol=1e-6)


def test_where_no_two_sets_are_equal_there_is_no_precision():
    assert math.isnan(benchmark("rank_statistics").agreement(torch.eye(4), torch.tensor([0, 0, 1, 1]), 1)["precision"])


def test_the_pages_table_is_what_the_committed_results_give():
    rows = json.loads((ROOT / "results" / "diagnose" / "ranks.json").read_text())["rows"]
    assert benchmark("rank_statistics").table(rows) in (ROOT / "docs" / "baselines.md").read_text()
