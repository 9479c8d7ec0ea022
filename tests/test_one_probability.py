"""No statement about a photo contradicts another: words, marks and verdicts follow from one probability."""

import csv
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reviews import review_with_a_known_one
from worlds import gaussian_classes, split

from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import Outcome, discover_groups
from medi.discover.result import Discovery, is_doubtful
from medi.discover.verdict import EXPECTED, MAY_BE_ONE, MIXED_BELOW, PURE, SURE_LINES, percent
from medi.review.actions import RefusedError
from medi.review.session import Review, opened


def check(found: Discovery) -> None:
    """Everything that a discovery says agrees."""
    confidence, labels = np.array(found.confidence), np.array(found.labels)
    assert found.doubtful == tuple(map(is_doubtful, confidence.tolist()))
    assert len(found.groups) == found.count.k == labels.max(initial=-1) + 1
    for number, group in enumerate(found.groups):
        mine = labels == number
        assert group.items == mine.sum()
        assert group.confidence == pytest.approx(confidence[mine].mean())
        assert group.together >= group.pure
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


def check_pool(outcome: Outcome, pool: np.ndarray, labelled: np.ndarray) -> None:
    """What is kept for the review, and what is said when the pool is recognised, is what was said of it."""
    found, kept = outcome.discovery, outcome.pool.standing()
    assert (kept.kinds, kept.labels, kept.known) == (found.kinds, found.labels, found.known)
    assert kept.confidence == found.confidence
    assert kept.chances.max(1) == pytest.approx(np.array(found.confidence))
    for number, group in enumerate(found.groups):
        assert kept.pure[number] == group.pure
        if group.sibling is not None:
            assert kept.kin[number, group.sibling] == group.sibling_probability
    copies = {item.tobytes() for item in labelled}
    for item, answer in enumerate(outcome.recogniser.recognise(pool)):
        if pool[item].tobytes() in copies:
            assert (answer.kind, answer.confidence) == ("known", 1.0)
            continue
        assert answer.kind == ("none" if found.kinds[item] == "alone" else found.kinds[item])
        assert answer.label == (str(found.labels[item]) if found.labels[item] >= 0 else found.known[item])
        assert answer.confidence == found.confidence[item]


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
@settings(max_examples=12, deadline=None)
def test_whatever_is_grouped_no_statement_contradicts_another(seed, apart, known, asked):
    labelled, novel = split(gaussian_classes(known + 4, 8, apart=apart, seed=seed), known)
    generator = np.random.default_rng(seed)
    pool = generator.permutation(np.concatenate([novel.values[:24], labelled.values[:6] + 0.01, labelled.values[:1]]))
    outcome = discover_groups(labelled, pool, DiscoveryConfig(**asked), Workplace())
    check(outcome.discovery)
    check_pool(outcome, pool, labelled.values)
    check_answers(outcome, novel.values)


def check_review(review: Review) -> None:
    """What a question says of a photo is what its card says, or less; so is what is said of every place."""
    state = review.state()
    places = [
        {one.get("known", one.get("group")): one["probability"] for one in review.likely_places([item])}
        for item in range(len(state["items"]))
    ]
    group_of = {item: group["id"] for group in state["groups"] for item in group["items"]}
    for item in state["items"]:
        card, at = item["confidence"], places[item["id"]]
        if item.get("held"):
            continue
        assert max(at.values(), default=0) <= card + 1e-4
        own = item.get("known") or group_of.get(item["id"])
        if own in at:
            assert at[own] == pytest.approx(card, abs=1e-4)
    for group in state["groups"]:
        sure = [state["items"][item]["confidence"] for item in group["items"]]
        assert group["confidence"] == pytest.approx(np.mean(sure), abs=1e-4)
    for question in state["questions"]:
        if question["kind"] == "which":
            asked = [group_of[item] for item in question["items"]]
            for rank, name in question["known"]:
                asked.insert(rank, name)
            said = [places[question["a"]][place] for place in asked]
            assert said == sorted(said, reverse=True)
            assert question["probability"] == pytest.approx(said[0], abs=1e-4)


@given(st.randoms(use_true_random=False))
@settings(max_examples=6, deadline=None)
def test_nothing_that_a_review_says_contradicts_another_whatever_a_person_does(random):
    with TemporaryDirectory() as folder:
        review = review_with_a_known_one(Path(folder))
        check_review(review)
        for _ in range(5):
            state = review.state()
            group = random.choice(state["groups"])
            item = random.choice(group["items"])
            question = state["question"] or {"a": 0, "b": 1}
            action = random.choice(
                [
                    {"action": "name", "group": group["id"], "name": f"kind {group['id']}"},
                    {"action": "reject", "items": [item]},
                    {"action": "known", "items": [item], "name": "rose"},
                    {"action": "answer", "a": question["a"], "b": question["b"], "same": random.random() < 0.5},
                    {"action": "merge", "groups": [one["id"] for one in state["groups"]][:2]},
                    {"action": "regroup"},
                ]
            )
            with suppress(RefusedError):
                review.act({"seq": review.history.seq, **action})
            check_review(review)


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
    table = tmp_path / "again.csv"
    assert (
        medi_("assign", "--model", folder / "model", "--images", facts["arguments"]["novel"], "--out", table).code == 0
    )
    with table.open(newline="", encoding="utf-8-sig") as file:
        again = {line["path"]: line for line in csv.DictReader(file)}
    for line in lines:
        said = again[line["path"]]
        assert said["kind"] == line["kind"].replace("alone", "none")
        assert said["label"] == (line["cluster"] or line["known"])
        assert said["confidence"] == line["confidence"]
    with opened(folder, "a test") as review:
        assert [item["confidence"] for item in review.state()["items"]] == [float(line["confidence"]) for line in lines]
        check_review(review)
