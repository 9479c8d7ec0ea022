from dataclasses import replace

import pytest
import torch

from medi.bench import paper
from medi.bench import run as bench_run
from medi.bench.figures import COMPARED, LATER
from medi.bench.grid import ALL, Run, config_of
from medi.bench.paper import Part, parts_of, run_paper, what_is_left
from medi.bench.published import published
from medi.errors import InputError
from medi.methods import METHODS
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent

BESIDE = (*COMPARED, *LATER)
KMEANS = Run("glyphs", "kmeans", "default", None, 5, 5, "honest", "episode", 0)


def parts_by_name(abundant: tuple[str, ...]) -> dict[str, tuple[Run, ...]]:
    return {part.name: part.runs for part in parts_of(paper.DATASETS, abundant)}


def test_the_parts_ask_for_every_number_that_the_paper_prints():
    parts = parts_by_name(("svhn", "omniglot"))
    cells = {(run.dataset, run.observations, run.method, run.sampler) for run in parts["ablation"] if published(run)}
    assert len(cells) == 8 * 4  # eight settings, MM and MP with CATA and without
    for name, told in {
        "few-observations": (False, "equal"),
        "few-observations-balanced": (True, "equal"),
        "few-observations-unequal": (False, "unequal"),
    }.items():
        asked = {(run.dataset, run.observations, run.method) for run in parts[name]}
        assert asked == {(dataset, n, method) for dataset in paper.DATASETS for n in (5, 1) for method in BESIDE}
        assert {(run.balance, run.sizes) for run in parts[name]} == {told}
    abundant = {(run.dataset, run.method) for run in parts["abundant"] if run.observations == ALL}
    assert abundant == {(dataset, method) for dataset in ("svhn", "omniglot") for method in BESIDE}
    assert {run.method for run in parts["records"]} == {"medi"}


def test_kmeans_is_asked_for_on_pixels_and_features_and_for_all_characters_at_once():
    parts = parts_by_name(paper.DATASETS)
    of_all = [run for run in parts["kmeans"] if run.way == 659]
    assert {(run.dataset, run.observations, run.score) for run in of_all} == {("omniglot", n, "pooled") for n in (5, 1)}
    assert [published(run) for run in of_all] == [published(replace(run, way=20)) for run in of_all] != [None, None]
    learnt = [run for run in parts["abundant"] if run.config == "features"]
    assert [run.dataset for run in learnt] == list(paper.DATASETS)
    for run in learnt:  # the network that DTC starts from
        assert config_of(run).pretraining == METHODS["dtc"].preset("default", run.dataset).pretraining


def test_mp_as_published_differs_in_distance_and_sampler_alone():
    runs = parts_by_name(())["mp-published"]
    settings = {run.config: config_of(run) for run in runs}
    assert len(runs) == 2 * 2 * 2 * 8  # distances, samplers, regimes, settings
    squared, plain = settings.values()
    assert (squared.distance, plain.distance) == ("squared", "euclidean")
    assert replace(plain, distance="squared") == squared
    published_recipe = METHODS["mp"].presets["paper"]
    assert squared == replace(published_recipe, schedule=squared.schedule)
    for length in ("steps", "halve_every"):
        assert 4 * getattr(squared.schedule, length) == getattr(published_recipe.schedule, length)


def test_no_run_is_asked_for_twice_within_a_part():
    for part in parts_of(paper.DATASETS, ("svhn",)):
        assert len(set(part.runs)) == len(part.runs)


def test_what_is_left_is_judged_by_what_is_there():
    mp = replace(KMEANS, method="mp", sampler="uniform")
    other = replace(KMEANS, dataset="rules")
    done = {KMEANS: {"seconds": 120.0}}
    assert "nothing" in what_is_left([KMEANS], done)
    assert "about 2 min" in what_is_left([KMEANS, replace(KMEANS, seed=1)], done)
    assert "about 2 min" in what_is_left([other], done)  # another dataset says a little of this one
    assert "no estimate" in what_is_left([mp], done)


@pytest.fixture
def small(monkeypatch, glyphs):
    monkeypatch.setattr(bench_run, "load_dataset", lambda name, *_: glyphs)
    monkeypatch.setattr(paper, "load", lambda name, device: glyphs)
    pooled = replace(KMEANS, score="pooled")
    parts = [
        Part("one", (KMEANS,), least_seeds=3),
        Part("two", (pooled, replace(pooled, observations=1)), drawn="pooled"),
    ]
    monkeypatch.setattr(paper, "parts_of", lambda datasets, abundant: parts)


def test_tables_and_figures_are_written_and_a_second_call_runs_nothing(tmp_path, small):
    options = {"seeds": range(2), "episodes": 3, "device": torch.device("cpu"), "reporter": Silent()}
    written = run_paper(["glyphs"], tmp_path / "out", resume=False, **options)
    assert [path.name for path in written] == ["one.md", "two.md", "two.png"]
    rows = read_journal(tmp_path / "out" / "results.jsonl")
    assert [row["seed"] for row in rows] == [0, 0, 0, 1, 1, 1, 2]  # one seed over everything first
    tables = [path.read_bytes() for path in written]
    assert run_paper(["glyphs"], tmp_path / "out", resume=True, **options) == written
    assert [path.read_bytes() for path in written][:2] == tables[:2]
    assert len(read_journal(tmp_path / "out" / "results.jsonl")) == 7


def test_one_part_can_be_run_by_itself_and_an_unknown_one_is_refused(tmp_path, small):
    options = {"seeds": range(1), "episodes": 3, "device": torch.device("cpu"), "reporter": Silent(), "resume": False}
    assert [path.name for path in run_paper(["glyphs"], tmp_path / "out", only=["two"], **options)] == [
        "two.md",
        "two.png",
    ]
    with pytest.raises(InputError, match=r"part of the paper 'tow'.*two"):
        run_paper(["glyphs"], tmp_path / "other", only=["tow"], **options)
    assert not (tmp_path / "other").exists()
