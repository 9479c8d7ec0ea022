"""Problems of discovery whose outcome is known, and the verdicts on them."""

import torch
from diagnose import VERDICTS, diagnose, problem, table

from medi.data.imageset import ImageSet


def classes(count: int, seed: int) -> ImageSet:
    """Vectors of classes far apart."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(count).repeat_interleave(15)
    items = (20 * torch.randn(count, 6, generator=g))[labels] + torch.randn(len(labels), 6, generator=g)
    return ImageSet(items, labels, tuple(map(str, range(count))))


def test_a_problem_has_few_known_items_and_unequal_novel_classes():
    known, novel = problem(classes(30, 0), classes(9, 1), seed=0)
    assert torch.bincount(known.labels).tolist() == [12] * 20
    sizes = torch.bincount(novel.labels).tolist()
    assert 4 <= len(sizes) <= 8
    assert 3 <= min(sizes) < max(sizes) <= 10


def test_a_row_has_the_verdict_and_what_was_reached():
    row = diagnose(classes(12, 0), classes(9, 1), lambda images: images, seed=0)
    assert row["acc"] > 0.8
    assert row["verdict"] in VERDICTS
    assert 0 < row["expected"] <= 1
    line = table([{"world": "apart"} | row]).splitlines()[-1]
    assert line.startswith("| apart | ")
    assert f"| {row['acc']:.2f} to {row['acc']:.2f} | {row['expected']:.2f} to {row['expected']:.2f} |" in line
