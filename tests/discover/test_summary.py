from dataclasses import replace

import pytest
from discoveries import facts_of, made_up
from hypothesis import given
from hypothesis import strategies as st

from medi.discover.summary import ADVICE, MOST_CLASSES_NAMED, headline, number_words, summary


def summary_of(discovery, **changes):
    return summary(facts_of(discovery, [f"{i}.jpg" for i in range(len(discovery.kinds))]) | changes)


@pytest.mark.parametrize("verdict", ADVICE)
def test_the_table_has_a_row_for_each_group_and_the_verdict_comes_with_its_reasons_a_line_each(verdict):
    discovery = made_up([5, 4, 3, 2], verdict=verdict)
    said = summary_of(discovery)
    assert [len(row) for row in said.rows] == [len(said.header)] * 4
    assert [row[:2] for row in said.rows] == [("0", "5"), ("1", "4"), ("2", "3"), ("3", "2")]
    start = next(i for i, line in enumerate(said.after) if ADVICE[verdict].title in line)
    assert list(said.after[start + 1 :]) == [f"- {reason}" for reason in discovery.diagnosis.reasons]
    assert {row[2] for row in summary_of(made_up([5, 4], calibrated=False)).rows} == {"a guess"}


@pytest.mark.parametrize(("given_k", "certain"), [(False, False), (False, True), (True, False)])
def test_the_option_that_gives_the_number_is_named_where_it_is_uncertain_and_was_not_given(given_k, certain):
    discovery = made_up([5, 4], given=given_k)
    said = summary_of(replace(discovery, count=replace(discovery.count, certain=certain)))
    assert any("--classes N" in line for line in said.before) == (not given_k and not certain)


def test_names_cannot_break_a_line_or_colour_the_terminal():
    discovery = made_up([2], known={"bad\n\x1b[31mname": 2})
    discovery = replace(discovery, groups=(replace(discovery.groups[0], neighbours=("a\rb",)),))
    said = summary_of(discovery)
    assert all(text.isprintable() for text in [*said.before, *said.after, *(cell for row in said.rows for cell in row)])


def test_of_many_known_classes_the_rest_is_counted():
    said = summary_of(made_up([2], known={f"class {i:02}": 2 for i in range(12)}))
    line = next(line for line in said.after if "look known" in line)
    assert line.count(" like ") == MOST_CLASSES_NAMED
    assert line.endswith("and 8 others.")


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 2000))
def test_the_headline_speaks_of_those_kinds_that_there_are(groups, known, alone):
    said = headline(groups, known, alone, groups + known + alone)
    assert ("known" in said) == bool(known)
    assert ("nothing else" in said) == bool(alone)
    if groups:
        assert said.startswith(f"{groups:,} group")


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.booleans(), st.booleans(), st.booleans())
def test_the_number_comes_with_its_interval_unless_it_was_given(k, below, above, given_k, certain, calibrated):
    low, high = max(0, k - below), k + above
    said = number_words(k, low, high, given=given_k, certain=certain, calibrated=calibrated)
    if given_k:
        assert said.startswith("You asked for") or (not k and not said)
        return
    assert (f"{low} to {high}" in said) == (low < high)
    assert calibrated or ("9 in 10" not in said and "guess" in said)
