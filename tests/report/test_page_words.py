"""What the page says: nothing that a biologist could misread."""

import re
from base64 import b64decode
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from discoveries import made_up, patterns
from hypothesis import given, settings
from hypothesis import strategies as st
from outline import Outline

from medi.discovery.result import ClassCount
from medi.photos.folders import Skipped
from medi.report.page import render

MIXED = {"known": {"cat": 3, "dog": 2}, "alone": 2}


def paths_of(discovery) -> list[str]:
    return [f"album/picture {number:03}.jpg" for number in range(len(discovery.kinds))]


def page(discovery=None, thumbnails=patterns, skipped=(), facts=None) -> Outline:
    discovery = discovery or made_up([4, 3], **MIXED)
    return Outline(render(discovery, paths_of(discovery), thumbnails, skipped, "medi discover", facts or {}))


def blank(numbers) -> list[bytes]:
    return [b""] * len(numbers)


def with_confidence(discovery, confidence: float, kind: str = "novel"):
    changed = [confidence if k == kind else c for k, c in zip(discovery.kinds, discovery.confidence, strict=True)]
    return replace(discovery, confidence=tuple(changed), doubtful=tuple(c < 2 / 3 for c in changed))


def caption(outline: Outline, number: int) -> str:
    (figure,) = outline.find("figure", id=f"picture-{number}")
    return outline.texts[figure]


@pytest.mark.parametrize(
    ("discovery", "headline"),
    [
        (made_up([10, 6, 4]), "3 groups in 20 pictures"),
        (
            made_up([5] * 8, known={"cat": 12}, alone=3),
            "8 groups, 12 pictures that look known, 3 that resemble nothing else",
        ),
        (made_up([5], known={"cat": 1}, alone=1), "1 group, 1 picture that looks known, 1 that resembles nothing else"),
        (made_up([5, 5], alone=3), "2 groups, 3 pictures that resemble nothing else"),
        (made_up([], known={"cat": 12}), "No groups, 12 pictures that look known"),
        (made_up([], alone=4), "No groups, 4 pictures that resemble nothing else"),
        (made_up([1], given=True), "1 group in 1 picture"),
    ],
)
def test_the_headline_has_all_kinds_that_there_are(discovery, headline):
    outline = page(discovery)
    assert outline.text("h1") == headline
    assert outline.find("h1")[0] < outline.find("section")[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Our best estimate is 3 groups; the chances are about 9 in 10 that there are 2 to 5."),
        (
            {"candidates": (), "probabilities": ()},
            "You asked for 3 groups. Whether that is the right number was not checked.",
        ),
        ({"low": 3, "high": 3}, "The chances are at least 9 in 10 that there are 3 groups."),
        ({"low": 3, "high": 3, "certain": False}, "That there are 3 groups is a guess."),
        (
            {"certain": False},
            "The number is uncertain. Our best estimate is 3 groups; "
            "the chances are about 9 in 10 that there are 2 to 5.",
        ),
    ],
)
def test_it_says_how_sure_the_number_of_groups_is(changes, sentence):
    discovery = made_up([4, 4, 4])
    outline = page(replace(discovery, count=replace(discovery.count, **changes)))
    assert outline.text("p", class_="lead") == sentence


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("trustworthy", "Trustworthy"),
        ("doubtful", "Doubtful"),
        ("no help", "Known classes do not help here"),
    ],
)
def test_the_verdict_stands_with_its_reasons(verdict, title):
    discovery = made_up([4, 3], verdict=verdict)
    outline = page(discovery)
    assert outline.text("h2", id="verdict") == f"Can you trust this? {title}"
    assert set(discovery.diagnosis.reasons) <= {outline.texts[i] for i in outline.find("li")}


def outside_details(outline: Outline, html: str) -> str:
    """The text that is seen before anything is clicked."""
    return Outline(re.sub("<details.*?</details>", "", html, flags=re.DOTALL)).text("body")


@pytest.mark.parametrize("calibrated", [True, False])
def test_all_statistics_are_behind_one_click(calibrated):
    discovery = replace(made_up([4, 3], **MIXED, calibrated=calibrated), representation_scores={"some way": 0.321})
    html = render(discovery, paths_of(discovery), patterns, [], "medi discover", {})
    outline = Outline(html)
    behind, before = outline.text("details", id="figures"), outside_details(outline, html)
    assert "some way" in behind
    assert "32\N{NO-BREAK SPACE}%" in outline.texts[outline.find("details", id="figures")[0]]
    for name in ("Rehearsal", "What your known classes teach", "unlike your known classes", "How alike"):
        assert name in behind
        assert name not in before
    for number in ("93 of 100", "4 more of 100", "0.91", "12 of 100"):
        assert (number in behind) == calibrated
        assert number not in before


def test_a_figure_of_known_pictures_says_so_in_the_same_sentence():
    discovery = made_up([4, 3])
    discovery = replace(discovery, diagnosis=replace(discovery.diagnosis, expected=0.67))
    behind = page(discovery).text("details", id="figures")
    sentence = next(s for s in re.split(r"(?<=\.) ", behind) if "93 of 100" in s)
    assert "93 of 100 of those known pictures" in sentence
    assert "Your new pictures may be harder or easier; for them we expect about 67 of 100 to be right." in behind
    assert "Your new pictures are not in this table." in behind


def test_figures_that_could_not_be_had_are_said_to_be_missing():
    behind = page(made_up([4, 3], calibrated=False)).text("details", id="figures")
    assert behind.count("Could not be measured.") == 3
    assert "Nothing could be rehearsed" in behind
    assert "nan" not in behind


@pytest.mark.parametrize(
    ("gain", "words"), [(-0.021, "2 fewer of 100 known"), (0.1, "10 more of 100 known"), (0.001, "about as many known")]
)
def test_what_learning_changes_is_told_in_pictures(gain, words):
    discovery = made_up([4, 3])
    outline = page(replace(discovery, diagnosis=replace(discovery.diagnosis, gain=gain)))
    assert words in outline.text("details", id="figures")


@pytest.mark.parametrize(
    ("distance", "words"),
    [(0.5, "less than hidden"), (1.0, "about as much as hidden"), (1.25, "somewhat more than"), (3, "far more than")],
)
def test_the_distance_is_told_in_words(distance, words):
    discovery = made_up([4, 3])
    outline = page(replace(discovery, diagnosis=replace(discovery.diagnosis, distance=distance)))
    assert words in outline.text("details", id="figures")


def test_sentences_that_were_misread_are_gone():
    said = page().text("main").lower()
    for words in (
        "puts",
        "sit clearly",
        "times as far",
        "standard error",
        "points",
        "where both occur",
        "stability",
        "% sure",
        "accuracy",
        "held back",
        "acc ",
    ):
        assert words not in said


# Pictures


def test_each_group_shows_its_medoid_first_then_sure_pictures_then_doubtful_ones():
    discovery = made_up([6, 5, 3])
    outline = page(discovery)
    order = [int(name.removeprefix("picture-")) for name in outline.ids() if name.startswith("picture-")]
    assert sorted(order) == list(range(14))
    groups = [[i for i in order if discovery.labels[i] == group] for group in range(3)]
    assert order == list(chain.from_iterable(groups))
    for found, (first, *others) in zip(discovery.groups, groups, strict=True):
        assert first == found.medoid
        assert others == sorted(others, key=lambda i: (discovery.doubtful[i], -discovery.confidence[i]))
    medoids = {group.medoid for group in discovery.groups}
    for i in range(14):
        text = caption(outline, i)
        assert ("most typical" in text) == (i in medoids)
        assert ("doubtful" in text) == ("?" in text) == discovery.doubtful[i]
        assert f"{100 * discovery.confidence[i]:.0f}\N{NO-BREAK SPACE}%" in text
        image = outline.tags[outline.find("figure", id=f"picture-{i}")[0] + 1][1]
        assert image["alt"] == paths_of(discovery)[i]
        assert b64decode(image["src"].partition(",")[2]) == patterns([i])[0]


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1))
def test_no_picture_is_certain_and_none_that_is_more_likely_wrong_is_typical(confidence):
    outline = page(with_confidence(made_up([4, 1, 1]), confidence), blank)
    text = outline.text("body")
    assert "100 %" not in text.replace("\N{NO-BREAK SPACE}", " ")
    assert ("over 99" in caption(outline, 0)) == (confidence > 0.99)
    typical = sum("most typical" in caption(outline, i) for i in range(6))
    assert typical == (1 if confidence >= 2 / 3 else 0), "one in a group of one is never typical"


def test_each_group_shows_its_size_its_verdict_and_its_most_similar_known_classes():
    discovery = made_up([6, 4, 4, 4, 1])
    outline = page(discovery)
    said = [outline.text("article", id=f"group-{number}") for number in range(5)]
    assert said[0].startswith("0 Group 0 Tight: very probably one kind of thing 6 pictures")
    assert f"on average {100 * np.mean(discovery.confidence[:6]):.0f} % likely to be right" in said[0]
    assert "1 doubtful" in said[0]
    assert "Most similar known classes, the most similar first: cat, dog, lynx " in said[0]
    assert "May be one with group 1" in said[2]
    assert "Mixed: probably two things in one" in said[3]
    assert "Uncertain: a single picture 1 picture" in said[4]
    link = outline.find("article", id="group-2")[0]
    assert any(a.get("href") == "#group-1" for _, a in outline.tags[link : link + 12])


def test_a_group_that_may_be_one_with_an_unnamed_group_has_no_link():
    discovery = made_up([4])
    group = replace(discovery.groups[0], verdict="may be one", sibling=None)
    outline = page(replace(discovery, groups=(group,)))
    assert outline.faults == []
    assert "May be one with another group" in outline.text("article", id="group-0")


def test_pictures_that_look_known_stand_by_class_in_a_section_of_their_own():
    discovery = made_up([4, 3], known={"dog": 2, "cat": 3}, alone=2)
    outline = page(discovery)
    section = outline.text("section", id="known")
    assert [outline.text(id=f"known-{c}-title") for c in (0, 1)] == ["K Looks like cat", "K Looks like dog"]
    assert "3 pictures" in outline.text("article", id="known-0")
    for i, kind in enumerate(discovery.kinds):
        inside = f"{100 * discovery.confidence[i]:.0f}\N{NO-BREAK SPACE}%" in caption(outline, i)
        assert inside
        (figure,) = outline.find("figure", id=f"picture-{i}")
        within = [name for name in ("groups", "known", "alone") if outline.find("section", id=name)[0] < figure]
        assert within[-1] == {"novel": "groups", "known": "known", "alone": "alone"}[kind]
    assert "most typical" not in section
    assert "2 pictures" in outline.text("section", id="alone")


def test_a_pool_of_new_things_alone_has_no_other_section():
    outline = page(made_up([4, 3]))
    assert not outline.find("section", id="known")
    assert not outline.find("section", id="alone")
    assert "look known" not in outline.text("main")


def test_without_known_classes_none_are_spoken_of():
    discovery = made_up([3, 3])
    discovery = replace(
        discovery,
        nearest_known=("",) * 6,
        groups=tuple(replace(group, neighbours=()) for group in discovery.groups),
    )
    outline = page(discovery)
    assert outline.faults == []
    assert not outline.find("p", class_="near")


def test_confidence_that_known_classes_did_not_set_is_called_a_guess():
    outline = page(made_up([4, 3], **MIXED, calibrated=False))
    for name in ("groups", "known", "alone"):
        assert "a rough guess" in outline.text("section", id=name)
    assert "likely to be right" not in outline.text("main")
    assert "rough guess" in outline.text("p", class_="lead")


def test_pictures_that_are_not_marked_are_not_said_to_be_right():
    assert "does not mean that all are right" in page(with_confidence(made_up([4]), 0.9)).text("section", id="groups")
    assert "Every picture is marked as doubtful." in page(with_confidence(made_up([4]), 0.4)).text(
        "section", id="groups"
    )
    assert "2 of 7 are marked as doubtful; some of the others may be wrong" in page(made_up([4, 3])).text(
        "section", id="groups"
    )


# Map, number and the rest


def test_the_map_has_a_point_for_every_picture_at_its_place():
    discovery = made_up([6, 5], **MIXED)
    outline = page(discovery)
    points = {outline.tags[i][1]["id"]: i for i in outline.find("a", class_="point")}
    assert len(points) == len(discovery.kinds)
    places = []
    for i, kind in enumerate(discovery.kinds):
        tag = points[f"point-{i}"]
        attributes = outline.tags[tag][1]
        assert attributes["href"] == f"#picture-{i}"
        assert outline.texts[tag] == {"novel": str(discovery.labels[i]), "known": "K", "alone": "A"}[kind]
        assert ("neutral" in attributes["class"].split()) == ("style" not in attributes) == (kind != "novel")
        belongs = {
            "novel": f"Group {discovery.labels[i]}",
            "known": f"Looks like {discovery.known[i]}",
            "alone": "Resembles nothing else",
        }
        assert belongs[kind] in attributes["aria-label"]
        places.append([float(number) for number in re.findall(r"[\d.]+", attributes["transform"])])
    assert np.allclose(places, 50 + 900 * np.array(discovery.positions), atol=0.06)


def test_the_probabilities_are_there_only_where_the_number_was_estimated():
    discovery = made_up([4, 4])
    outline = page(discovery)
    assert len(outline.find("rect", class_="number")) == len(discovery.count.candidates)
    assert len(outline.find("rect", class_="used")) == 1
    title = outline.text("title", id="curve-title")
    assert "most probable is 2 with" in title
    assert "lies between 1 and 4" in title
    rows = outline.text("section", id="count")
    assert "2 (used)" in rows
    assert not page(made_up([4, 4], given=True)).find("rect", class_="number")


def test_a_count_without_a_probability_for_the_number_used_still_has_its_bars():
    count = ClassCount(3, 2, 4, (2, 4), (0.1, 0.2), True, "So.")
    outline = page(replace(made_up([2, 2, 2]), count=count))
    assert outline.find("rect", class_="number")
    assert not outline.find("rect", class_="used")


def test_skipped_files_stand_with_their_reasons():
    outline = page(skipped=[Skipped("a/b.jpg", "cut short"), Skipped("c.png", "a text file")])
    assert outline.text("section", id="skipped").startswith("Skipped files 2 files could not be used.")
    cells = [outline.texts[i] for i in outline.find("td")]
    assert cells[-4:] == ["a/b.jpg", "cut short", "c.png", "a text file"]
    assert "None: every file could be used." in page().text("section", id="skipped")


def test_the_facts_stand_at_the_end():
    assert "EfficientNet-Lite0" in page(facts={"Encoder": "EfficientNet-Lite0"}).text("section", id="repeat")


def test_paths_of_another_discovery_are_refused():
    with pytest.raises(ValueError, match="3 paths for a discovery among 7"):
        render(made_up([4, 3]), ["a"] * 3, patterns, [], "medi", {})
