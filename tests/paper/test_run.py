"""The paper's queue: one seed over everything first, tables as soon as a seed is whole, nothing twice."""

from dataclasses import replace
from pathlib import Path

import pytest
from tiny import tiny_benchmark

from medi.bench import run as bench_run
from medi.bench import work
from medi.bench.grid import Run
from medi.bench.work import do, next_batch
from medi.core.errors import InputError
from medi.core.files import read_journal
from medi.core.progress import Silent
from medi.jobs.workers import rows_of_answer
from paper import run as paper
from paper.parts import Part
from paper.run import Wanted, run_paper

KMEANS = Run("rules", "kmeans", "default", None, 5, 5, "honest", "episode", 0)
POOLED = replace(KMEANS, score="pooled")
PARTS = [Part("one", (KMEANS,), least_seeds=3), Part("two", (POOLED, replace(POOLED, observations=1)), drawn="pooled")]


def here(items, reporter):
    """Workers, in this process."""
    for item in items:
        yield rows_of_answer(do(item.as_json()))


@pytest.fixture
def small(monkeypatch):
    for module in (bench_run, work):
        monkeypatch.setattr(module, "load_dataset", tiny_benchmark)
    monkeypatch.setattr(paper, "load", tiny_benchmark)
    monkeypatch.setattr(paper, "parts_of", lambda datasets, abundant: PARTS)
    work._loaded.cache_clear()
    yield
    work._loaded.cache_clear()


def go(out: Path, *only: str, seeds: int = 2, workers=here, resume: bool = False) -> list[Path]:
    wanted = Wanted(["rules"], seeds, 3, only)
    return run_paper(wanted, out, workers, device="cpu", resume=resume, reporter=Silent())


def rows(out: Path) -> list[dict]:
    return read_journal(out / "results.jsonl")


def test_tables_and_figures_are_written_and_a_second_call_runs_nothing(tmp_path, small):
    written = go(tmp_path)
    assert [path.name for path in written] == ["one.md", "two.md", "two.png"]
    assert [row["seed"] for row in rows(tmp_path)] == [0, 0, 0, 1, 1, 1, 2]  # one seed over everything first
    tables = [path.read_bytes() for path in written[:2]]
    assert go(tmp_path, resume=True) == written
    assert [path.read_bytes() for path in written[:2]] == tables
    assert len(rows(tmp_path)) == 7


def test_a_parts_table_is_there_as_soon_as_a_seed_of_it_is_whole(tmp_path, small):
    def stopped_after_two(items, reporter):
        yield from list(here(items[:2], reporter))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, workers=stopped_after_two)
    assert [path.name for path in (tmp_path / "paper").iterdir()] == ["one.md"]
    assert len(rows(tmp_path)) == 2
    go(tmp_path, resume=True)
    assert len(rows(tmp_path)) == 7


def test_one_part_can_be_run_by_itself_and_an_unknown_one_is_refused(tmp_path, small):
    assert [path.name for path in go(tmp_path / "out", "two", seeds=1)] == ["two.md", "two.png"]
    with pytest.raises(InputError, match=r"part of the paper 'tow'.*two"):
        go(tmp_path / "other", "tow")
    assert not (tmp_path / "other").exists()


def test_the_next_batch_is_of_the_first_ones_seed_and_of_a_kind_that_nobody_is_at():
    def batch(dataset, method, seed):
        return work.RunBatch((replace(KMEANS, dataset=dataset, method=method, seed=seed),), "out", 3, "cpu")

    waiting = [batch("rules", "mp", 0), batch("rules", "mm", 0), batch("rules", "mp", 1)]
    assert next_batch(waiting, []) == 0
    assert next_batch(waiting, [batch("rules", "mp", 0)]) == 1
    assert next_batch(waiting, [batch("rules", "mp", 0), batch("rules", "mm", 0)]) == 0  # rather wait than skip a seed
    assert next_batch(waiting, [batch("rules", "mp", 1)]) == 0
