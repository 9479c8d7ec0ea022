"""No statement about a photo contradicts another: words, marks and verdicts follow from one probability."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import gaussian_classes, split

from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import Outcome, discover_groups
from medi.discover.result import Discovery, is_doubtful
from medi.discover.verdict import EXPECTED, MAY_BE_ONE, MIXED_BELOW, PURE, SURE_LINES, percent


def check(found: Discovery) -> None:
    """Everything that a discovery says agrees."""
    confidence, labels = np.array(found.confidence), np.array(found.labels)
    assert found.doubtful == tuple(map(is_doubtful, confidence.tolist()))
    assert len(found.groups) == found.count.k == labels.max(initial=-1) + 1
    for number, group in enumerate(found.groups):
        mine = labels == number
        assert group.items == mine.sum()
        assert group.confidence == pytest.approx(confidence[mine].mean())
        if group.verdict == "tight":
            assert (group.confidence >= SURE_LINES, group.pure >= PURE) == (True, True)
        if group.verdict == "mixed":
            assert (group.confidence < SURE_LINES, group.pure < MIXED_BELOW) == (True, True)
        assert (group.verdict == "may be one") == (group.sibling_probability >= MAY_BE_ONE)
    diagnosis = found.diagnosis
    if diagnosis.expected is not None:
        assert diagnosis.expected == pytest.approx(confidence.mean())
    if diagnosis.verdict == "trustworthy":
        assert diagnosis.expected >= EXPECTED
    assert found.count.low <= found.count.k <= found.count.high
    if not diagnosis.calibrated:
        assert not {"tight", "mixed"} & {group.verdict for group in found.groups}
        assert confidence[confidence < 1].max(initial=0) <= 0.5, "only a copy of a labelled item is certain"


def check_answers(outcome: Outcome, items: np.ndarray) -> None:
    """The first guess of further items is the likeliest, however it is asked for."""
    for asked in ({}, {"none_rate": 0.1}, {"none_rate": 0.6}, {"sure": 0.6}, {"sure": 0.95}):
        for answer in outcome.recogniser.recognise(items, **asked):
            assert 1 >= answer.confidence >= answer.second.confidence >= 0
            assert answer.kind == "none" or answer.confidence >= asked.get("sure", 0)


@given(
    seed=st.integers(0, 50),
    apart=st.sampled_from([0.5, 1.5, 3.0, 6.0]),
    known=st.sampled_from([2, 5, 9, 14]),
    asked=st.sampled_from([{}, {"classes": 3}, {"only_novel": False}, {"only_novel": False, "classes": 4}]),
)
@settings(max_examples=25, deadline=None)
def test_whatever_is_grouped_no_statement_contradicts_another(seed, apart, known, asked):
    labelled, novel = split(gaussian_classes(known + 4, 8, apart=apart, seed=seed), known)
    generator = np.random.default_rng(seed)
    pool = generator.permutation(np.concatenate([novel.values[:24], labelled.values[:6] + 0.01, labelled.values[:1]]))
    outcome = discover_groups(labelled, pool, DiscoveryConfig(**asked), Workplace())
    check(outcome.discovery)
    check_answers(outcome, novel.values)


def test_files_terminal_and_report_say_the_same(medi_, tmp_path):
    out = tmp_path / "demo"
    shown = medi_("demo", "--out", out)
    assert shown.code == 0
    folder = next(path.parent for path in out.rglob("discovery.json"))
    facts = json.loads((folder / "discovery.json").read_text())
    with (folder / "clusters.csv").open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.DictReader(file))
    report = " ".join((folder / "report.html").read_text().split())
    for group in facts["groups"]:
        mine = [float(line["confidence"]) for line in lines if line["cluster"] == str(group["cluster"])]
        assert len(mine) == group["photos"]
        assert np.mean(mine) == pytest.approx(group["confidence"], abs=1e-4)
        said = percent(group["confidence"])
        assert said in shown.out
        assert f"{said} likely" in report
    assert np.mean([float(line["confidence"]) for line in lines]) == pytest.approx(
        facts["diagnostics"]["expected"], abs=1e-4
    )
