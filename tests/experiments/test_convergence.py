import pytest
import torch
from convergence import FAMILIES, balls, boxes, gaussians, pair_of, study_convergence
from PIL import Image

from medi.errors import InputError
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
@pytest.mark.parametrize("family", FAMILIES)
def test_overlaps_called_exact_are_those_of_counting_points(family, dimension):
    inside = {
        "boxes": lambda z: ((z >= 0) & (z <= 1)).all(1),
        "touching": lambda z: ((z >= 0) & (z <= 1)).all(1),
        "balls": lambda z: z.norm(dim=1) <= 1,
        "gaussians": lambda z: (z.abs() <= 1).all(1),
    }[family]
    pair = pair_of(family, dimension)
    z, y = pair.sample(40_000, dimension, torch.Generator().manual_seed(0))
    assert inside(z[y == 0]).all()
    moved = z.clone()
    moved[:, 0] -= pair.shift
    both = inside(z) & inside(moved)
    assert float(both.float().mean()) == pytest.approx(pair.tau, abs=0.01)
    assert pair.tau == pytest.approx(0.0 if family == "touching" else 0.5)


def test_pairs_far_apart_share_nothing_and_pairs_in_one_place_everything():
    for far, near in ((boxes(1.5), boxes(0.0)), (balls(2.5, 3), balls(0.0, 3)), (gaussians(2.5), gaussians(0.0))):
        assert far.tau == pytest.approx(0)
        assert near.tau == pytest.approx(1)


def test_a_family_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="cones"):
        pair_of("cones", 2)


def test_a_study_measures_each_case_once_and_draws_it(tmp_path):
    options = {"seeds": 1, "reporter": Silent(), "sizes": (40,), "dimensions": (1, 2)}
    rows = study_convergence(tmp_path, **options)
    assert len(rows) == len(FAMILIES) * 2
    assert all(row["low"] <= row["tau"] <= row["high"] for row in rows)
    assert Image.open(tmp_path / "convergence.png").width > 600
    assert study_convergence(tmp_path, **options) == rows == read_journal(tmp_path / "convergence.jsonl")
