"""The questions of a review in a real browser, as the engine really asks them, answered by keyboard alone."""

import json

import numpy as np
import pytest
from PIL import Image
from review_pages import serving, settled, show
from reviews import engine_review, review_with_a_known_one

from medi.grouping.engine import Ask
from medi.metrics import acc

TRUTH = np.repeat([0, 1, 2], 16)
SAID = {"half": 2, "merge": 4}
"""What is asked where a person has said so many groups, and there are three."""


@pytest.fixture
def asked(browser, tmp_path, request):
    """A page, its review, and what is asked first."""
    points = 8 * np.eye(4)[TRUTH] + np.random.default_rng(0).normal(size=(len(TRUTH), 4))
    review = engine_review(tmp_path, points, Ask(SAID[request.param]))
    question = review.state()["question"]
    assert question["kind"] == request.param
    with serving(review) as (address, _):
        show(browser, address)
        yield browser, review, question
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []


def sides(browser) -> list[set[int]]:
    """The photos on each side of the question."""
    return [
        set(photos)
        for photos in browser.run(
            """[...document.querySelectorAll("#question figure")].map((side) =>
                [...side.querySelectorAll("img[src*=photo]")].map((one) => Number(one.src.match(/photo.(\\d+)/)[1])))"""
        )
    ]


def answer(browser, letter: str, *, walk: bool) -> None:
    """With a letter, or as people do who go from button to button."""
    if not walk:
        return browser.press(letter.lower())
    for _ in range(30):
        if browser.run("document.activeElement.dataset.answer") == letter:
            return browser.press("Enter")
        browser.press("Tab")
    raise AssertionError(f"no way to the answer {letter}")


def seen(review) -> str:
    return json.dumps({**review.state(), "seq": 0})


def again(review, question) -> bool:
    """Whether the same is still asked."""
    return any(all(one[key] == question[key] for key in ("kind", "a", "b")) for one in review.state()["questions"])


@pytest.mark.parametrize("walk", [False, True], ids=["letter", "walk"])
@pytest.mark.parametrize("letter", ["Y", "D"])
@pytest.mark.parametrize("asked", list(SAID), indirect=True)
def test_yes_and_no_change_the_groups_as_they_say_and_are_undone(asked, letter, walk):
    browser, review, question = asked
    before, members, groups = seen(review), review.history.state.members, review.history.state.groups
    a, b, half = question["a"], question["b"], set(question["items"])
    left, right = sides(browser)
    assert 1 < len(left & (half or set(members[groups[a]]))) == len(left)
    assert 1 < len(right & (set(members[groups[b]]) - half)) == len(right)

    answer(browser, letter, walk=walk)
    settled(browser, review, 1)
    now = review.history.state.groups
    one = (question["kind"] == "merge") == (letter == "Y")
    assert (now[a] == now[b]) == one
    assert not again(review, question)
    if letter == "Y":  # which is true here
        assert acc(TRUTH, np.array(now)) == 1
    cards = browser.run("[...document.querySelectorAll('.card[data-group]')].map((one) => Number(one.dataset.group))")
    assert sorted(cards) == sorted(review.history.state.members)

    browser.press("z")
    settled(browser, review, 2)
    assert seen(review) == before
    assert sides(browser) == [left, right]


@pytest.mark.parametrize("asked", list(SAID), indirect=True)
def test_what_is_passed_on_is_gone_and_changes_nothing(asked):
    browser, review, question = asked
    before = sides(browser)
    browser.press("p")
    assert sides(browser) != before or browser.run("document.getElementById('question').hidden")
    assert review.history.seq == 0
    assert again(review, question)


@pytest.mark.parametrize("is_rose", [True, False])
def test_a_photo_that_looks_like_a_known_class_is_put_there_or_never_again(browser, tmp_path, is_rose):
    review = review_with_a_known_one(tmp_path)
    for name in ("rose", "tulip"):
        Image.new("RGB", (40, 30), (200, 60, 60)).save(review.folder.known / name / "1.png")
    before, asked = seen(review), review.state()["questions"]
    earlier, question = next((place, one) for place, one in enumerate(asked) if "rose" in str(one["known"]))
    rank = next(rank for rank, name in question["known"] if name == "rose")
    with serving(review) as (address, _):
        show(browser, address)
        for _ in range(earlier):
            browser.press("p")
        browser.wait_until("[...document.querySelectorAll('#question img')].every((one) => one.naturalWidth > 0)")
        assert len(sides(browser)) == 1 + len(question["items"]) + len(question["known"])
        answer(browser, "YUI"[rank] if is_rose else "D", walk=False)
        settled(browser, review, 1)
        now = review.history.state
        assert (now.known[question["a"]] == "rose") == is_rose
        assert ((question["a"], "rose") in now.refused) != is_rose
        browser.press("z")
        settled(browser, review, 2)
        assert seen(review) == before
        assert browser.complaints("http://127.0.0.1:", "about:blank") == []
