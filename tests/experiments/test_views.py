"""CATA's views, and both readings of its orthogonality term, are measured once each."""

import numpy as np
import orthogonality
import pytest
import torch
import views
from PIL import Image

from medi.core.files import read_journal
from medi.core.progress import Silent
from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.rules import rules
from medi.methods.cata_views import ViewsConfig
from medi.methods.mp import MP
from medi.nn.schedule import Schedule

QUICK = ViewsConfig(network="mlp", hidden=8, batch=32, schedule=Schedule(steps=10, rate=0.01))
OPTIONS = {"seeds": 1, "device": torch.device("cpu"), "reporter": Silent()}


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.setattr(views, "SHUFFLES", 3)
    return Benchmark(facts_of("rules"), *rules(known_images=20, novel_images=20))


def test_every_kind_of_view_is_written_once_and_drawn(tmp_path, monkeypatch, benchmark):
    monkeypatch.setattr(views, "load", lambda name, device: benchmark)
    rows = views.study_views(["rules"], tmp_path, paper=QUICK, **OPTIONS)
    assert [row["kind"] for row in rows] == ["paper", "without-term", "specialised"]
    for row in rows:
        assert sum(row["sizes"]) == len(benchmark.known)
        assert set(row["agreement"]) == {"colour", "shape", "frame", "rule"}
    values = benchmark.known.labels
    assert views.agreement_with(values, values)[0] == pytest.approx(np.log2(benchmark.known.n_classes))
    assert Image.open(tmp_path / "views-rules-paper.png").width > 600
    assert views.study_views(["rules"], tmp_path, paper=QUICK, **OPTIONS) == read_journal(tmp_path / "views.jsonl")
    assert len(views.views_table(rows)) == 4


def test_every_reading_of_the_term_is_measured_once_under_its_own_weight(tmp_path, monkeypatch, benchmark):
    monkeypatch.setattr(orthogonality, "READINGS", (("mean", "0"), ("mean", "10"), ("sum", "1/30")))
    method = MP(network="mlp", queries=3, images=40, schedule=Schedule(steps=2))
    options = OPTIONS | {"views": QUICK, "method": method, "episodes": 3}
    rows = orthogonality.study_term(benchmark, tmp_path, **options)
    weights = [row["settings"]["orthogonality"] for row in rows]
    assert weights == pytest.approx([0, 10, 64 / 30])  # the sum: 8² times the mean
    assert all(0 < row["mean_cosine"] < 1 and 0 < row["acc"] <= 1 and row["weight_norm"] > 0 for row in rows)
    again = orthogonality.study_term(benchmark, tmp_path, **options)
    assert again == read_journal(tmp_path / "orthogonality.jsonl")
    assert len(again) == len(rows)
    assert len(orthogonality.term_table(rows)) == 4
