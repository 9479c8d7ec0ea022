"""What the page says of groups, pictures and numbers."""

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
from report_pages import blank, html_of, page, paths_of

from medi.discover.result import ClassCount, is_doubtful
from medi.photos.folders import Skipped

MIXED = {"known": {"cat": 3, "dog": 2}, "alone": 2}


def with_confidence(discovery, confidence: float):
    changed = [confidence if k == "novel" else c for k, c in zip(discovery.kinds, discovery.confidence, strict=True)]
    return replace(discovery, confidence=tuple(changed), doubtful=tuple(map(is_doubtful, changed)))


def caption(outline: Outline, number: int) -> str:
    (figure,) = outline.find("figure", id=f"picture-{number}")
    return outline.texts[figure]


def figures(**changes) -> str:
    discovery = made_up([4, 3])
    changed = replace(discovery, diagnosis=replace(discovery.diagnosis, **changes))
    return page(changed).text("details", id="figures")


@pytest.mark.parametrize(
    ("discovery", "numbers"),
    [
        (made_up([10, 6, 4]), [3, 20]),
        (made_up([5] * 8, known={"cat": 12}, alone=3), [8, 12, 3]),
        (made_up([5, 5], alone=3), [2, 3]),
        (made_up([], known={"cat": 12}), [12]),
        (made_up([], alone=4), [4]),
        (made_up([1], given=True), [1, 1]),
    ],
)
def test_the_headline_counts_all_kinds_that_there_are(discovery, numbers):
    outline = page(discovery)
    assert [int(number) for number in re.findall(r"\d+", outline.text("h1"))] == numbers
    assert outline.find("h1")[0] < outline.find("section")[0]


@pytest.mark.parametrize("verdict", ["trustworthy", "doubtful", "no help"])
def test_the_verdict_stands_with_its_reasons(verdict):
    discovery = made_up([4, 3], verdict=verdict)
    outline = page(discovery)
    assert outline.find("h2", id="verdict")
    assert set(discovery.diagnosis.reasons) <= {outline.texts[i] for i in outline.find("li")}


@pytest.mark.parametrize("calibrated", [True, False])
def test_all_statistics_are_behind_one_click(calibrated):
    discovery = replace(made_up([4, 3], **MIXED, calibrated=calibrated), representation_scores={"some way": 0.321})
    html = html_of(discovery)
    behind = Outline(html).text("details", id="figures")
    before = Outline(re.sub("<details.*?</details>", "", html, flags=re.DOTALL)).text("body")
    assert "some way" in behind
    assert "32 %" in behind
    assert "nan" not in behind
    for number in ("93 of 100", "4 more of 100", "0.91", "12 of 100"):
        assert (number in behind) == calibrated
        assert number not in before


def test_figures_that_differ_in_kind_are_told_in_other_words():
    for name, values in (("gain", (-0.021, 0.1, 0.001, None)), ("distance", (0.5, 1.0, 1.25, 3.0, None))):
        told = {re.sub(r"[\d.]+", "", figures(**{name: value})) for value in values}
        assert len(told) == len(values)


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
    assert typical == (not is_doubtful(confidence)), "one in a group of one is never typical"


def test_each_group_shows_its_size_its_verdict_and_its_most_similar_known_classes():
    discovery = made_up([6, 4, 4, 4, 1])
    outline = page(discovery)
    said = [outline.text("article", id=f"group-{number}") for number in range(5)]
    for part in ("6 pictures", f"{100 * np.mean(discovery.confidence[:6]):.0f} %", "1 doubtful", "cat, dog, lynx"):
        assert part in said[0]
    assert len(discovery.groups) == len({text.partition("picture")[0] for text in said})
    link = outline.find("article", id="group-2")[0]
    assert any(a.get("href") == "#group-1" for _, a in outline.tags[link : link + 12])


def test_a_group_that_may_be_one_with_an_unnamed_group_has_no_link():
    discovery = made_up([4])
    group = replace(discovery.groups[0], verdict="may be one", sibling=None)
    outline = page(replace(discovery, groups=(group,)))
    assert outline.faults == []
    assert not [a for _, a in outline.tags if a.get("href", "").startswith("#group-") and a.get("href") != "#group-0"]


def test_pictures_that_look_known_stand_by_class_in_a_section_of_their_own():
    discovery = made_up([4, 3], known={"dog": 2, "cat": 3}, alone=2)
    outline = page(discovery)
    assert [outline.text(id=f"known-{c}-title").split()[-1] for c in (0, 1)] == ["cat", "dog"]
    assert "3 pictures" in outline.text("article", id="known-0")
    for i, kind in enumerate(discovery.kinds):
        assert f"{100 * discovery.confidence[i]:.0f}\N{NO-BREAK SPACE}%" in caption(outline, i)
        (figure,) = outline.find("figure", id=f"picture-{i}")
        within = [name for name in ("groups", "known", "alone") if outline.find("section", id=name)[0] < figure]
        assert within[-1] == {"novel": "groups", "known": "known", "alone": "alone"}[kind]
    assert "2 pictures" in outline.text("section", id="alone")


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
    assert not outline.find("section", id="known")
    assert not outline.find("section", id="alone")


def test_confidence_that_known_classes_did_not_set_is_called_a_guess():
    outline = page(made_up([4, 3], **MIXED, calibrated=False))
    for name in ("groups", "known", "alone"):
        assert "guess" in outline.text("section", id=name)
    assert "likely to be right" not in outline.text("main")


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
    without = replace(made_up([2, 2, 2]), count=ClassCount(3, 2, 4, (2, 4), (0.1, 0.2), True, "So."))
    for shown, used in ((discovery, 1), (without, 0)):  # of the number used, there may be no probability
        assert len(page(shown).find("rect", class_="number")) == len(shown.count.candidates)
        assert len(page(shown).find("rect", class_="used")) == used
    assert not page(made_up([4, 4], given=True)).find("rect", class_="number")


def test_skipped_files_stand_with_their_reasons_and_the_facts_at_the_end():
    skipped = [Skipped("a/b.jpg", "cut short"), Skipped("c.png", "a text file")]
    outline = page(skipped=skipped, facts={"Encoder": "EfficientNet-Lite0"})
    assert [outline.texts[i] for i in outline.find("td")][-4:] == ["a/b.jpg", "cut short", "c.png", "a text file"]
    assert "EfficientNet-Lite0" in outline.text("section", id="repeat")
