import re
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.discovery.verdict import (
    EXPECTED,
    FAR,
    FEWEST_CLASSES,
    GROUPED,
    MUCH_KNOWN,
    USEFUL,
    WIDE,
    Figures,
    diagnosis_of,
    group_verdict,
    judge,
    percent,
    reasons,
)

GOOD = Figures(
    expected=0.86,
    rehearsed=0.93,
    rehearsed_spread=0.02,
    gain=0.1,
    gain_spread=0.02,
    distance=1.0,
    overlap=0.1,
    known_share=0.1,
    low=7,
    k=8,
    high=9,
    number_given=False,
    calibrated=True,
    known_classes=20,
    items=50,
)
EMPTY = replace(GOOD, items=0, low=0, k=0, high=0, expected=None, known_share=0.0)
NO_CLASSES = replace(
    GOOD,
    known_classes=0,
    calibrated=False,
    **dict.fromkeys(["expected", "rehearsed", "rehearsed_spread", "gain", "gain_spread", "distance", "overlap"]),
)
SHARE = st.none() | st.floats(0, 1)
ANY = st.builds(
    lambda low, wider, used, **others: Figures(low=low, k=low + min(used, wider), high=low + wider, **others),
    low=st.integers(0, 40),
    wider=st.integers(0, 40),
    used=st.integers(0, 40),
    expected=SHARE,
    rehearsed=SHARE,
    rehearsed_spread=st.none() | st.floats(0, 0.3),
    gain=st.none() | st.floats(-1, 1),
    gain_spread=st.none() | st.floats(0, 0.3),
    distance=st.none() | st.floats(0, 5),
    overlap=SHARE,
    known_share=st.floats(0, 1),
    number_given=st.booleans(),
    calibrated=st.booleans(),
    known_classes=st.integers(0, 50),
    items=st.integers(0, 1000),
)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "trustworthy"),
        ({"gain": -0.2}, "trustworthy"),  # good features need not be bettered
        ({"gain": None, "gain_spread": None, "distance": None, "overlap": None}, "trustworthy"),
        ({"low": 2, "k": 2, "high": 3}, "trustworthy"),
        ({"low": 5, "high": 12}, "doubtful"),
        ({"low": 5, "high": 12, "number_given": True}, "trustworthy"),
        ({"known_share": 0.4}, "doubtful"),
        ({"expected": 0.67}, "doubtful"),
        ({"expected": None}, "doubtful"),
        ({"calibrated": False}, "doubtful"),
        ({"known_classes": 3}, "doubtful"),
        ({"rehearsed": None, "rehearsed_spread": None}, "doubtful"),
        ({"rehearsed_spread": 0.2}, "doubtful"),  # good on average, bad on some splits
        ({"rehearsed_spread": None}, "doubtful"),
        ({"rehearsed": 0.4}, "doubtful"),  # learning mends it
        ({"rehearsed": 0.4, "gain": 0.04}, "no help"),
        ({"rehearsed": 0.4, "gain": 0.1, "gain_spread": 0.06}, "no help"),
        ({"rehearsed": 0.4, "gain": None, "gain_spread": None}, "no help"),
        ({"distance": 9.0}, "no help"),
    ],
)
def test_the_verdict_follows_from_the_figures(change, verdict):
    assert judge(replace(GOOD, **change)) == verdict


def test_nothing_and_no_known_classes_are_doubtful():
    assert judge(EMPTY) == "doubtful"
    assert judge(NO_CLASSES) == "doubtful"


@settings(max_examples=300)
@given(ANY)
def test_what_is_trustworthy_keeps_every_rule(figures):
    if judge(figures) != "trustworthy":
        return
    assert figures.items
    assert figures.number_given or figures.high <= WIDE * figures.low
    assert figures.known_share < MUCH_KNOWN
    assert figures.expected >= EXPECTED
    assert figures.calibrated
    assert figures.known_classes >= FEWEST_CLASSES
    assert figures.rehearsed >= GROUPED
    assert figures.distance is None or figures.distance <= FAR


@settings(max_examples=300)
@given(ANY)
def test_no_help_means_far_or_grouped_badly_and_not_mended(figures):
    far = figures.distance is not None and figures.distance > FAR
    badly = figures.rehearsed is not None and figures.rehearsed < GROUPED
    measured = figures.gain is not None and figures.gain_spread is not None
    mended = measured and figures.gain > max(USEFUL, 2 * figures.gain_spread)
    assert (judge(figures) == "no help") == (far or (badly and not mended))


@settings(max_examples=300)
@given(ANY)
def test_the_sentences_are_plain_and_their_numbers_are_about_the_users_own_pictures(figures):
    said = reasons(figures)
    for sentence in said:
        assert sentence[0].isupper() or sentence[0].isdigit()
        assert sentence.endswith(".")
        assert not re.search("ACC|standard|posterior|stability|points|held.out|times as far|clearly", sentence)
        assert "100 %" not in sentence
        if "rehearsal, we hid" in sentence:
            assert not re.search(r"\d", sentence), "a figure of the rehearsal is taken for the user's own"
        assert len(re.findall("%", sentence)) == len(re.findall(r"\d+ % of your pictures ", sentence))
    assert sum("program cannot notice that" in sentence for sentence in said) == 1
    assert "program cannot notice that" in said[-1]
    rehearsed = figures.items and figures.known_classes >= FEWEST_CLASSES
    assert any("rough guess" in sentence for sentence in said) == bool(
        figures.items and not (rehearsed and figures.calibrated)
    )


@settings(max_examples=100)
@given(ANY)
def test_every_verdict_but_the_best_begins_with_what_speaks_against_trust(figures):
    first = reasons(figures)[0]
    supports = first.startswith("We expect about") or first.startswith("We expect over") or "most of those" in first
    assert supports == (judge(figures) == "trustworthy")


def test_few_known_classes_are_said_to_rehearse_nothing():
    assert reasons(NO_CLASSES)[0].startswith("You gave no known classes, so nothing could be rehearsed")
    for given_classes in (1, 2, 3):
        first = reasons(replace(NO_CLASSES, known_classes=given_classes))[0]
        assert f"only {given_classes} known class" in first
        assert "rough guess" in first
    assert "general likeness" in reasons(NO_CLASSES)[-1]
    assert "your own known classes" in reasons(GOOD)[-1]


def test_what_is_wrong_is_said_with_its_numbers():
    said = " ".join(reasons(replace(GOOD, expected=0.67, low=5, high=12, known_share=0.451)))
    for words in (
        "only about 67 % of your pictures",
        "from 5 to 12",
        "About 45 % of your pictures",
    ):
        assert words in said


def test_nothing_is_expected_of_pictures_unlike_all_known_classes():
    said = " ".join(reasons(replace(GOOD, distance=2.0)))
    assert "unlike all of your known classes" in said
    assert "We expect" not in said


def test_items_can_be_called_something_else():
    assert "pictures" in " ".join(reasons(GOOD))
    assert not any("picture" in sentence for sentence in reasons(replace(GOOD, expected=0.5), noun="row"))


@given(ANY)
def test_a_diagnosis_holds_the_figures(figures):
    diagnosis = diagnosis_of(figures)
    assert diagnosis.verdict == judge(figures)
    assert diagnosis.reasons == reasons(figures)
    for field in {f.name for f in fields(figures)} & {f.name for f in fields(diagnosis)}:
        assert getattr(diagnosis, field) == getattr(figures, field)


@pytest.mark.parametrize(
    ("together", "sibling", "items", "verdict"),
    [
        (0.95, 0.05, 6, "tight"),
        (0.95, 0.25, 6, "uncertain"),
        (0.7, 0.05, 6, "uncertain"),
        (0.4, 0.05, 6, "mixed"),
        (0.4, 0.6, 6, "mixed"),
        (0.9, 0.4, 6, "may be one"),
        (1.0, 0.0, 1, "uncertain"),
        (1.0, 0.5, 1, "may be one"),
        (0.0, 0.0, 0, "uncertain"),
    ],
)
def test_a_group_has_a_verdict_of_its_own(together, sibling, items, verdict):
    assert group_verdict(together, sibling, items) == verdict


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 50))
def test_without_calibration_no_group_is_tight_and_nothing_else_changes(together, sibling, items):
    checked, guessed = (group_verdict(together, sibling, items, calibrated=c) for c in (True, False))
    assert guessed == ("uncertain" if checked == "tight" else checked)


@given(st.floats(0, 1))
def test_per_cent_never_say_all_or_nothing(share):
    assert re.fullmatch(r"over 99 %|under 1 %|[1-9]\d? %", percent(share))
