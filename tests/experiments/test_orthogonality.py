import orthogonality
import pytest
import torch
import views
from orthogonality import study_term, term_table

from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.rules import rules
from medi.methods.cata_views import ViewsConfig
from medi.methods.mp import MP
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent
from medi.train.schedule import Schedule


def test_every_reading_of_the_term_is_measured_once_under_its_own_weight(tmp_path, monkeypatch):
    readings = (("mean", "0"), ("mean", "10"), ("sum", "1/30"))
    monkeypatch.setattr(orthogonality, "READINGS", readings)
    monkeypatch.setattr(views, "SHUFFLES", 3)
    known, novel = rules(known_images=20, novel_images=20)
    benchmark = Benchmark(facts_of("rules"), known, novel)
    options = {
        "seeds": 1,
        "device": torch.device("cpu"),
        "reporter": Silent(),
        "views": ViewsConfig(network="mlp", hidden=8, batch=32, schedule=Schedule(steps=3, rate=0.01)),
        "method": MP(network="mlp", queries=3, images=40, schedule=Schedule(steps=2)),
        "episodes": 3,
    }
    rows = study_term(benchmark, tmp_path, **options)
    weights = [row["settings"]["orthogonality"] for row in rows]
    assert weights == pytest.approx([0, 10, 64 / 30])  # the sum: 8² times the mean
    assert all(0 < row["mean_cosine"] < 1 and 0 < row["acc"] <= 1 and row["weight_norm"] > 0 for row in rows)
    again = study_term(benchmark, tmp_path, **options)
    assert again == read_journal(tmp_path / "orthogonality.jsonl")
    assert [row["acc"] for row in again] == [row["acc"] for row in rows]
    _heading, *lines = term_table(rows)
    assert [line[:2] for line in lines] == [["none", "0"], *map(list, readings[1:])]
    assert lines[0][-1] == f"{100 * rows[0]['acc']:.1f} ± 0.0"
