import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medi.discover.verdict import (
    EXPECTED,
    FAR,
    FEW_EACH,
    FEWEST_CLASSES,
    GROUPED,
    Figures,
    expectation,
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
    high=9,
    number_given=False,
    calibrated=True,
    known_classes=20,
    known_each=12,
)
MEASURED = ("expected", "rehearsed", "rehearsed_spread", "gain", "gain_spread", "distance", "overlap")
SHARE = st.none() | st.floats(0, 1)
ANY = st.builds(
    lambda low, wider, **others: Figures(low=low, high=low + wider, **others),
    low=st.integers(0, 40),
    wider=st.integers(0, 40),
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
    known_each=st.integers(0, 50),
)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "trustworthy"),
        ({"gain": -0.2}, "trustworthy"),  # good features need not be bettered
        ({"gain": None, "gain_spread": None, "distance": None, "overlap": None}, "trustworthy"),
        ({"low": 2, "high": 3}, "trustworthy"),
        ({"low": 5, "high": 12}, "trustworthy"),  # what is expected to be right has it in it
        ({"known_share": 0.4}, "trustworthy"),
        ({"known_each": 3}, "trustworthy"),
        ({"expected": 0.67}, "doubtful"),
        ({"expected": None}, "doubtful"),
        ({"calibrated": False}, "doubtful"),
        ({"known_classes": 3}, "doubtful"),
        ({"rehearsed": None, "rehearsed_spread": None}, "doubtful"),
        ({"rehearsed_spread": 0.2}, "trustworthy"),
        ({"rehearsed_spread": None}, "doubtful"),
        ({"rehearsed": 0.4}, "doubtful"),  # learning mends it
        ({"rehearsed": 0.4, "gain": 0.04}, "no help"),
        ({"rehearsed": 0.4, "gain": 0.1, "gain_spread": 0.06}, "no help"),
        ({"rehearsed": 0.4, "gain": None, "gain_spread": None}, "no help"),
        ({"distance": 9.0}, "no help"),
        ({"known_classes": 0, "calibrated": False} | dict.fromkeys(MEASURED), "doubtful"),
    ],
)
def test_the_verdict_follows_from_the_figures(change, verdict):
    assert judge(replace(GOOD, **change)) == verdict


@settings(max_examples=300)
@given(ANY)
def test_what_is_trustworthy_keeps_every_rule_and_no_help_means_far_or_grouped_badly(figures):
    far = figures.distance is not None and figures.distance > FAR
    badly = figures.rehearsed is not None and figures.rehearsed < GROUPED
    if judge(figures) == "no help":
        assert far or badly
    if judge(figures) == "trustworthy":
        assert not far
        assert figures.calibrated
        assert (figures.expected >= EXPECTED, figures.rehearsed >= GROUPED) == (True, True)
        assert figures.known_classes >= FEWEST_CLASSES


@given(ANY)
def test_more_of_each_known_class_are_advised_where_most_have_few_and_the_novel_ones_are_not_far(figures):
    more = set(reasons(figures)) - set(reasons(replace(figures, known_each=FEW_EACH)))
    far = figures.distance is not None and figures.distance > FAR
    assert len(more) == (0 < figures.known_each < FEW_EACH and not far)


@given(ANY)
def test_reasons_call_items_what_they_are_and_are_silent_on_what_is_expected_where_it_cannot_be_said(figures):
    assert not any("picture" in sentence for sentence in reasons(figures, noun="row"))
    far = figures.distance is not None and figures.distance > FAR
    if far or not figures.calibrated or figures.expected is None:
        assert expectation(figures) is None
    else:
        assert expectation(figures) == figures.expected


@pytest.mark.parametrize(
    ("confidence", "pure", "sibling", "verdict"),
    [
        (0.9, 0.95, 0.05, "tight"),
        (0.9, 0.7, 0.05, "uncertain"),
        (0.7, 0.95, 0.05, "uncertain"),
        (0.6, 0.2, 0.05, "mixed"),
        (0.9, 0.2, 0.05, "uncertain"),  # one stray among many
        (0.9, 0.95, 0.25, "may be one"),
    ],
)
def test_a_group_has_a_verdict_of_its_own(confidence, pure, sibling, verdict):
    assert group_verdict(confidence, pure, sibling) == verdict
    assert group_verdict(confidence, pure, sibling, calibrated=False) in ("may be one", "uncertain")


@given(st.floats(0, 1))
def test_per_cent_never_say_all_or_nothing(share):
    assert re.fullmatch(r"over 99 %|under 1 %|[1-9]\d? %", percent(share))
