import numpy as np
import pytest
import torch
import views
from PIL import Image
from views import agreement_with, study_views, views_table

from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.rules import rules
from medi.methods.cata_views import ViewsConfig
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent
from medi.train.schedule import Schedule


def test_views_that_are_the_attribute_share_all_its_bits_and_shuffled_ones_next_to_none():
    values = torch.arange(3000) % 4
    bits, random = agreement_with(values, values)
    assert bits == pytest.approx(2)
    assert random < 0.02
    coin = torch.as_tensor(np.random.default_rng(1).integers(0, 3, 3000))
    assert agreement_with(coin, values)[0] < 0.02


def test_a_study_is_written_once_and_drawn(tmp_path, monkeypatch):
    quick = ViewsConfig(network="mlp", hidden=16, batch=32, schedule=Schedule(steps=10, rate=0.01))
    known, novel = rules(known_images=20, novel_images=1)
    benchmark = Benchmark(facts_of("rules"), known, novel)
    monkeypatch.setattr(views, "load", lambda name, device: benchmark)
    monkeypatch.setattr(views, "SHUFFLES", 5)
    options = {"seeds": 1, "device": torch.device("cpu"), "reporter": Silent(), "paper": quick}
    first = study_views(["rules"], tmp_path, **options)
    assert [row["kind"] for row in first] == ["paper", "without-term", "specialised"]
    assert [row["settings"]["orthogonality"] for row in first] == [pytest.approx(1 / 3), 0, pytest.approx(1 / 3)]
    for row in first:
        assert sum(row["sizes"]) == len(known)
        assert set(row["agreement"]) == {"colour", "shape", "frame", "rule"}
        assert 0 <= row["topped_up"] <= 1
        assert 0 < row["mean_cosine"] < 1
    assert Image.open(tmp_path / "views-rules-paper.png").width > 600
    assert study_views(["rules"], tmp_path, **options) == read_journal(tmp_path / "views.jsonl")
    assert len(read_journal(tmp_path / "views.jsonl")) == 3
    heading, *lines = views_table(first)
    assert [line[heading.index("views")] for line in lines] == ["paper", "without-term", "specialised"]
    assert lines[0][heading.index("sizes")] == " ".join(map(str, first[0]["sizes"]))
