"""Problems of discovery whose outcome is known, and the verdicts on them."""

import torch
from diagnose import VERDICTS, diagnose, table

from medi.data.imageset import ImageSet


def classes(count: int, seed: int) -> ImageSet:
    """Vectors of classes far apart."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.arange(count).repeat_interleave(15)
    items = (20 * torch.randn(count, 6, generator=g))[labels] + torch.randn(len(labels), 6, generator=g)
    return ImageSet(items, labels, tuple(map(str, range(count))))


def test_a_row_has_the_verdict_and_what_was_reached(few_bags):
    row = diagnose(classes(12, 0), classes(9, 1), lambda images: images, seed=0)
    assert row["acc"] > 0.8
    assert row["verdict"] in VERDICTS
    assert 4 <= row["classes"] <= 8
    assert table([{"world": "apart"} | row]).splitlines()[-1].startswith("| apart | ")
