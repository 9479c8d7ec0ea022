import pytest
from common import of_rule
from embeddings import Recipe
from PIL import Image
from solvability import TEACHERS, check_conditions, study_solvability

from medi.data.rules import rules
from medi.runtime.progress import Silent


def measured(tau: float) -> dict[str, float]:
    return {"tau": tau, "low": tau - 0.02, "high": tau + 0.02}


def transformation(known: float, novel: float) -> dict:
    return {"known": {"colour": measured(known)}, "novel": {"shape": measured(novel)}}


def test_a_transformation_that_suits_both_makes_discovery_solvable():
    found = check_conditions([transformation(0.0, 0.1), transformation(0.5, 0.6)], "colour", "shape")
    assert found["shared"]
    assert found["separable"]
    assert not found["impossible"]
    assert (found["epsilon_known"], found["epsilon_novel"]) == (0.0, 0.1)


def test_all_conditions_of_the_impossibility_theorem_are_needed():
    impossible = [transformation(0.0, 0.4), transformation(0.8, 0.1)]
    assert check_conditions(impossible, "colour", "shape")["impossible"]
    no_gap = [transformation(0.0, 0.9), transformation(0.8, 0.1)]
    assert not check_conditions(no_gap, "colour", "shape")["gap"]
    harder_known = [transformation(0.3, 0.4), transformation(0.8, 0.1)]
    assert not check_conditions(harder_known, "colour", "shape")["easier"]
    shared = [*impossible, transformation(0.01, 0.11)]  # not told from the best of either
    assert check_conditions(shared, "colour", "shape")["shared"]
    for rows in (no_gap, harder_known, shared):
        assert not check_conditions(rows, "colour", "shape")["impossible"]


def test_the_classes_of_a_rule_are_labelled_by_it():
    known, novel = rules(known_images=4, novel_images=3)
    for images, first in ((known, 0), (novel, 5)):
        for rule in ("colour", "shape", "frame"):
            some = of_rule(images, rule)
            assert some.n_classes == 5
            assert (some.labels + first == some.attributes[rule]).all()


def test_a_study_tries_every_teacher_once_and_draws_it(tmp_path):
    options = {"seeds": 1, "reporter": Silent(), "images": 20, "episodes": 3, "recipe": Recipe("mlp", steps=3)}
    rows = study_solvability(tmp_path, **options)
    assert [row["job"]["teacher"] for row in rows] == list(TEACHERS)
    for row in rows:
        assert set(row["known"]) == set(row["novel"]) == {"colour", "shape", "frame"}
        assert all(0 <= one["acc"] <= 1 for one in row["novel"].values())
        assert row["novel"]["colour"]["chance"] == pytest.approx(0.313, abs=0.01)
    assert Image.open(tmp_path / "solvability.png").width > 600
    assert study_solvability(tmp_path, **options) == rows
    assert {(row["job"]["images"], row["job"]["batch"]) for row in rows} == {(20, 50)}
