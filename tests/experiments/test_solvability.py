import pytest
from common import of_rule
from embeddings import Recipe
from PIL import Image
from solvability import TEACHERS, check_conditions, minimise_criterion, minimisers_table, study_solvability

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


def taught(teacher: str, known: float, novel: float, acc: float) -> dict:
    rules = ("colour", "shape", "frame")
    return {
        "job": {"teacher": teacher, "seed": 0},
        "known": {rule: measured(known) for rule in rules},
        "novel": {rule: measured(novel) | {"acc": acc} for rule in rules},
    }


def test_the_criterion_is_the_sum_and_its_minimiser_need_not_separate_novel_classes_best():
    rows = [taught("pixels", 0.9, 0.1, 0.8), taught("shape", 0.2, 0.3, 0.5), taught("random", 0.0, 0.6, 0.4)]
    found = minimise_criterion(rows, "colour", "frame")
    assert (found["teacher"], found["criterion"], found["tau"], found["acc"]) == ("shape", 0.5, 0.3, 0.5)
    assert (found["epsilon_novel"], found["best_acc"]) == (0.1, 0.8)
    heading, *lines = minimisers_table(rows)
    shown = dict(zip(heading, lines[0], strict=True))
    assert (len(lines), shown["attained"], shown["in each seed alone"]) == (9, "no", "0 of 1")
    shared = minimisers_table([*rows, taught("colour", 0.0, 0.1, 0.7)])
    assert {line[heading.index("attained")] for line in shared[1:]} == {"yes"}
    near = minimisers_table([*rows, taught("colour", 0.0, 0.11, 0.7)])  # 0.1 is within its interval
    assert {line[heading.index("attained")] for line in near[1:]} == {"not told"}


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
