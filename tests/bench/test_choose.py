from dataclasses import replace

import pytest
import torch
from tiny import KMEANS_RUN, TINY, TINY_RUN

from medi.bench import choose
from medi.bench.choose import hold_out, splits_of, try_candidates
from medi.data.benchmarks import Benchmark
from medi.data.splits import held_out_splits
from medi.errors import InputError
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent

KMEANS, MP = (replace(run, dataset="glyphs") for run in (KMEANS_RUN, TINY_RUN))


@pytest.fixture
def twelve(monkeypatch, glyphs) -> Benchmark:
    benchmark = replace(glyphs, known=glyphs.known.of_classes(range(12)))
    monkeypatch.setattr(choose, "load_dataset", lambda name, *_: benchmark)
    return benchmark


@pytest.fixture
def five(monkeypatch, glyphs) -> Benchmark:
    benchmark = replace(glyphs, known=glyphs.known.of_classes(range(5)))
    monkeypatch.setattr(choose, "load_dataset", lambda name, *_: benchmark)
    return benchmark


def compare(runs, out, **options):
    defaults = {"episodes": 3, "device": torch.device("cpu"), "resume": False, "reporter": Silent()}
    return try_candidates(runs, out, **(defaults | options))


def test_candidates_are_compared_on_held_out_known_classes_and_continued(tmp_path, twelve):
    runs = [replace(MP, way=2), replace(MP, way=2, regime="transductive")]
    first = compare(runs, tmp_path)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert len(rows) == 2 * 5
    assert not {name for row in rows for name in row["held_out"]} & set(twelve.novel.class_names)
    assert {row["settings"]["schedule"]["steps"] for row in rows} == {4}
    assert [summary.splits for summary in first] == [5, 5]
    assert compare(runs, tmp_path, resume=True) == first
    assert read_journal(tmp_path / "choices.jsonl") == rows


@pytest.mark.parametrize("families", [False, True])
def test_candidates_can_be_compared_with_held_out_classes_observed_in_full(tmp_path, monkeypatch, twelve, families):
    known = replace(twelve.known, class_names=tuple(f"{'abcd'[number % 4]}/{number}" for number in range(12)))
    benchmark = replace(twelve, known=known, facts=replace(twelve.facts, families=families))
    monkeypatch.setattr(choose, "load_dataset", lambda name, *_: benchmark)
    run = replace(KMEANS, way=20, observations="all", score="pooled")
    (summary,) = compare([run], tmp_path, splits=2)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert summary.splits == 2
    assert [row["split"] for row in rows] == [0, 2]
    assert {row["way"] for row in rows} == {20}, "the run's own, whatever was asked"
    assert {row["episodes"] for row in rows} == {2 if families else 1}
    assert all(row["chance"] < row["acc"] and row["seconds"] > 0 for row in rows)


def test_trials_of_more_held_out_classes_are_kept_apart(tmp_path, five):
    (pairs,) = compare([KMEANS], tmp_path, splits=2)
    (threes,) = compare([KMEANS], tmp_path, splits=2, resume=True, held_out=3)
    assert (pairs.splits, threes.splits) == (2, 2)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert [len(row["held_out"]) for row in rows] == [row["asked_way"] for row in rows] == [2, 2, 3, 3]
    assert compare([KMEANS], tmp_path, splits=2, resume=True) == [pairs]
    assert read_journal(tmp_path / "choices.jsonl") == rows


def test_what_cannot_be_asked_of_the_last_dataset_is_refused_before_there_is_a_folder(tmp_path, monkeypatch, glyphs):
    sets = {"glyphs": glyphs, "rules": replace(glyphs, known=glyphs.known.of_classes(range(5)))}
    monkeypatch.setattr(choose, "load_dataset", lambda name, *_: sets[name])
    runs = [replace(KMEANS, dataset=name) for name in sets]
    with pytest.raises(InputError, match="--held-out 4"):
        compare(runs, tmp_path / "out", held_out=4)
    with pytest.raises(InputError, match="images but a task needs"):
        compare([KMEANS, replace(KMEANS, observations=19)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_candidate_with_other_settings_than_its_trials_is_refused(tmp_path, twelve):
    compare([MP], tmp_path, splits=1)
    other = replace(MP, changes=TINY | {"images": 61})
    with pytest.raises(InputError, match=r"tiny.* other settings"):
        compare([other], tmp_path, splits=1, resume=True)


def test_a_method_bound_to_its_number_of_classes_is_trained_for_the_held_out_ones(tmp_path, five):
    changes = {"from": "cpu", "inner": {"steps": 1}, "tasks": 1, "schedule": {"steps": 1}}
    run = replace(MP, method="mm", observations=1, changes=changes)
    (summary,) = compare([run], tmp_path, splits=2)
    assert summary.splits == 2
    assert {row["asked_way"] for row in read_journal(tmp_path / "choices.jsonl")} == {2}


def test_holding_out_takes_the_novel_classes_away(glyphs):
    split = hold_out(glyphs, (3, 5))
    assert split.novel.class_names == (glyphs.known.class_names[3], glyphs.known.class_names[5])
    assert not set(split.known.class_names) & set(split.novel.class_names)
    assert not set(split.known.class_names + split.novel.class_names) & set(glyphs.novel.class_names)
    assert split.novel_train is None


def test_held_out_classes_that_are_observed_in_full_keep_a_quarter_of_each_for_questions(glyphs):
    whole, split = hold_out(glyphs, (3, 5)), hold_out(glyphs, (3, 5), "all")
    assert split.known.fingerprint() == whole.known.fingerprint()
    assert torch.bincount(split.novel_train.labels).tolist() == [15, 15]
    assert torch.bincount(split.novel.labels).tolist() == [5, 5]
    pictures = [image.numpy().tobytes() for part in (split.novel_train, split.novel) for image in part.images]
    assert sorted(pictures) == sorted(image.numpy().tobytes() for image in whole.novel.images)


def test_families_that_are_observed_in_full_are_held_out_whole(glyphs):
    names = tuple(f"{'abcdefgh'[number % 8]}/{number}" for number in range(20))
    known = replace(glyphs.known.of_classes(range(20)), class_names=names)
    benchmark = Benchmark(replace(glyphs.facts, families=True), known, glyphs.novel)
    for classes in splits_of(benchmark, "all"):
        split = hold_out(benchmark, classes, "all")
        held, learnt = ({name[0] for name in part.class_names} for part in (split.novel, split.known))
        assert len(held) == 2
        assert not held & learnt
        assert split.novel_train is None
    assert splits_of(benchmark, 5) == held_out_splits(20)
