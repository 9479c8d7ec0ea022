from dataclasses import replace

import pytest
import torch
from tiny import KMEANS_RUN, TINY_RUN

from medi.bench import choose
from medi.bench.choose import hold_out, try_candidates
from medi.bench.rows import read_rows
from medi.bench.setup import Setup
from medi.cli.bench_show import show_choices
from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.core.progress import Silent
from medi.data.benchmarks import Benchmark

KMEANS, MP = (replace(run, dataset="glyphs") for run in (KMEANS_RUN, TINY_RUN))


@pytest.fixture(params=[5])
def benchmark(request, monkeypatch, glyphs) -> Benchmark:
    """Glyphs with so many known classes."""
    few = replace(glyphs, known=glyphs.known.of_classes(range(request.param)))
    monkeypatch.setattr(choose, "load_dataset", lambda name, **_: few)
    return few


twelve = pytest.mark.parametrize("benchmark", [12], indirect=True)


def compare(runs, out, resume=False, **options):
    setup = Setup(out, 3, torch.device("cpu"), Silent(), resume)
    return try_candidates(runs, setup, **options)


@twelve
def test_candidates_are_compared_on_held_out_known_classes_and_continued(tmp_path, benchmark):
    runs = [replace(MP, way=2), replace(MP, way=2, regime="transductive")]
    first = compare(runs, tmp_path)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert len(rows) == 2 * 5
    assert not {name for row in rows for name in row["held_out"]} & set(benchmark.novel.class_names)
    assert {row["settings"]["schedule"]["steps"] for row in rows} == {4}
    assert [summary.splits for summary in first] == [5, 5]
    assert compare(runs, tmp_path, resume=True) == first
    assert read_journal(tmp_path / "choices.jsonl") == rows


@twelve
def test_a_candidate_that_diverges_is_a_trial_without_scores_and_the_others_are_tried(tmp_path, benchmark, capsys):
    wild = replace(MP, way=2, config="wild", changes={**MP.changes, "schedule": {"steps": 40, "rate": 1e30}})
    found = compare([wild, replace(MP, way=2)], tmp_path, splits=2)
    assert [(one.acc is None, one.splits) for one in found] == [(True, 0), (False, 2)]
    rows = read_rows(tmp_path / "choices.jsonl")
    assert ["diverged" in row for row in rows] == [True, False, True, False]
    assert compare([wild, replace(MP, way=2)], tmp_path, resume=True, splits=2) == found
    show_choices(found)
    shown = capsys.readouterr().out
    assert shown.index("diverged") > shown.index(f"{100 * found[1].acc:.1f}")


@twelve
@pytest.mark.parametrize("families", [False, True])
def test_candidates_can_be_compared_with_held_out_classes_observed_in_full(tmp_path, monkeypatch, benchmark, families):
    known = replace(benchmark.known, class_names=tuple(f"{'abcd'[number % 4]}/{number}" for number in range(12)))
    benchmark = replace(benchmark, known=known, facts=replace(benchmark.facts, families=families))
    monkeypatch.setattr(choose, "load_dataset", lambda name, **_: benchmark)
    run = replace(KMEANS, way=20, observations="all", score="pooled")
    (summary,) = compare([run], tmp_path, splits=2)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert summary.splits == 2
    assert [row["split"] for row in rows] == [0, 2]
    assert {row["way"] for row in rows} == {20}, "the run's own, whatever was asked"
    assert {row["episodes"] for row in rows} == {2 if families else 1}
    assert all(row["chance"] < row["acc"] and row["seconds"] > 0 for row in rows)


def test_trials_of_more_held_out_classes_are_kept_apart(tmp_path, benchmark):
    (pairs,) = compare([KMEANS], tmp_path, splits=2)
    (threes,) = compare([KMEANS], tmp_path, splits=2, resume=True, held_out=3)
    assert (pairs.splits, threes.splits) == (2, 2)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert [len(row["held_out"]) for row in rows] == [row["asked_way"] for row in rows] == [2, 2, 3, 3]
    assert compare([KMEANS], tmp_path, splits=2, resume=True) == [pairs]
    assert read_journal(tmp_path / "choices.jsonl") == rows


def test_what_cannot_be_asked_of_the_last_dataset_is_refused_before_there_is_a_folder(tmp_path, monkeypatch, glyphs):
    sets = {"glyphs": glyphs, "rules": replace(glyphs, known=glyphs.known.of_classes(range(5)))}
    monkeypatch.setattr(choose, "load_dataset", lambda name, **_: sets[name])
    runs = [replace(KMEANS, dataset=name) for name in sets]
    with pytest.raises(InputError, match="--held-out 4"):
        compare(runs, tmp_path / "out", held_out=4)
    with pytest.raises(InputError, match="images but a task needs"):
        compare([KMEANS, replace(KMEANS, observations=19)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_method_bound_to_its_number_of_classes_is_trained_for_the_held_out_ones(tmp_path, benchmark):
    changes = {"from": "cpu", "inner": {"steps": 1}, "tasks": 1, "schedule": {"steps": 1}}
    run = replace(MP, method="mm", observations=1, changes=changes)
    (summary,) = compare([run], tmp_path, splits=2)
    assert summary.splits == 2
    assert {row["asked_way"] for row in read_journal(tmp_path / "choices.jsonl")} == {2}


def test_held_out_classes_that_are_observed_in_full_keep_a_quarter_of_each_for_questions(glyphs):
    whole, split = hold_out(glyphs, (3, 5)), hold_out(glyphs, (3, 5), "all")
    assert split.known.fingerprint() == whole.known.fingerprint()
    assert torch.bincount(split.novel_train.labels).tolist() == [15, 15]
    assert torch.bincount(split.novel.labels).tolist() == [5, 5]
    pictures = [image.numpy().tobytes() for part in (split.novel_train, split.novel) for image in part.images]
    assert sorted(pictures) == sorted(image.numpy().tobytes() for image in whole.novel.images)
