import re
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from itertools import chain, pairwise

import numpy as np
import pytest
from discoveries import made_up, patterns
from hypothesis import given, settings
from hypothesis import strategies as st
from outline import Outline

from medi.discovery.result import ClassCount, Neighbour
from medi.photos.folders import Skipped
from medi.photos.thumbnails import LARGEST_BYTES
from medi.report.page import MOST_SHOWN, render

COMMAND = "medi discover --known known --novel 'my pictures' --out out"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "' onmouseover='alert(1)",
    "a\nb\tc\r\0\x1b[31m\x7f",
    "{{ 7 * 7 }}{% raw %}",
    "not utf-8 \udcff",
    "\u202egpj.exe",
    "&lt;&amp;&#39;",
    "<!--",
    "]]>",
    "日本語 🐈\u200d⬛",
    "",
]


def paths_of(discovery) -> list[str]:
    return [f"album/picture {number:03}.jpg" for number in range(len(discovery.labels))]


def page(discovery=None, thumbnails=patterns, skipped=(), command=COMMAND, facts=None) -> Outline:
    discovery = discovery or made_up([4, 3])
    return Outline(render(discovery, paths_of(discovery), thumbnails, skipped, command, facts or {"Seed": "0"}))


def blank(numbers) -> list[bytes]:
    return [b""] * len(numbers)


# The page as a document


@pytest.mark.parametrize("verdict", ["trustworthy", "doubtful", "no help"])
@pytest.mark.parametrize("given_k", [True, False])
@pytest.mark.parametrize("sizes", [[1], [5, 5], [3, 0, 1], [2] * 60])
def test_the_page_is_well_formed_and_accessible(verdict, given_k, sizes):
    discovery = made_up(sizes, given=given_k, verdict=verdict)
    outline = page(discovery, skipped=[Skipped("a.jpg", "empty")])
    assert outline.faults == []
    assert all("alt" in outline.tags[i][1] for i in outline.find("img"))
    assert outline.tags[outline.find("html")[0]][1]["lang"] == "en"
    for landmark in ("main", "h1", "nav"):
        assert len(outline.find(landmark)) == 1
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_names_no_other_file_and_its_policy_allows_no_script_but_its_own():
    html = render(made_up([4, 3]), ["a"] * 7, patterns, [], COMMAND, {})
    outline = Outline(html)
    sources = [v for _, a in outline.tags for k, v in a.items() if k in ("src", "href", "srcset", "data", "action")]
    assert all(source.startswith(("data:image/jpeg;base64,", "#")) for source in sources)
    assert "url(" not in html
    assert "@import" not in html
    assert not any(name.startswith("on") for _, attributes in outline.tags for name in attributes)
    script = re.search("<script>(.*)</script>", html, re.DOTALL).group(1)
    policy = next(a["content"] for _, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy


def test_500_pictures_with_long_names_in_any_number_of_groups_take_less_than_5_mb():
    for groups in (1, 20, 40, 250):
        discovery = made_up([500 // groups + (i < 500 % groups) for i in range(groups)])
        names = [f"{'a folder/' * 10}picture number {i}.jpg" for i in range(500)]
        html = render(discovery, names, lambda numbers: [bytes(LARGEST_BYTES)] * len(numbers), [], COMMAND, {})
        assert len(html.encode()) < 5_000_000


@pytest.mark.parametrize("sizes", [[3000, 20, 1], [2] * 1200])
def test_of_thousands_of_pictures_the_first_and_last_of_each_group_are_shown(sizes):
    discovery, asked = made_up(sizes), []
    outline = page(discovery, lambda numbers: asked.extend(numbers) or blank(numbers))
    assert outline.faults == []
    shown = [int(name.removeprefix("picture-")) for name in outline.ids() if name.startswith("picture-")]
    assert len(shown) <= max(MOST_SHOWN, len(sizes))
    assert sorted(shown) == asked, "thumbnails of others are not asked for"
    assert set(discovery.medoids) <= set(shown)
    assert len(outline.find("a", class_="point")) == len(shown)
    room = max(1, MOST_SHOWN // len(sizes))
    assert Counter(discovery.labels[i] for i in shown) == {g: min(size, room) for g, size in enumerate(sizes)}
    if room > 1:
        assert {i for i, doubtful in enumerate(discovery.doubtful) if doubtful} <= set(shown)
    for number, size in list(enumerate(sizes))[:3]:
        article = outline.text("article", id=f"group-{number}")
        assert f"{size:,} picture" in article
        assert (f"and {size - room:,} more" in article) == (size > room)


def test_no_group_is_cut_where_all_pictures_can_be_shown():
    outline = page(made_up([990, 10]), blank)
    assert len(outline.find("figure", class_="picture")) == 1000
    assert not outline.find("p", class_="more")


# Strings that users choose


def hostile_page(text: str) -> Outline:
    discovery = made_up([4, 3])
    discovery = replace(
        discovery,
        nearest_known=(text,) * 7,
        neighbours=((Neighbour(text, 0.5),),) * 2,
        representation=text,
        representation_scores={text: 0.5},
        count=replace(discovery.count, how=text),
        diagnosis=replace(discovery.diagnosis, reasons=(text,)),
    )
    html = render(discovery, [text] * 7, patterns, [Skipped(text, text)], "medi", {text: text})
    html.encode()  # what cannot be encoded cannot be written
    assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", html)
    return Outline(html)


HARMLESS = hostile_page("harmless")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_strings_change_no_tag_of_the_page(text):
    outline = hostile_page(text)
    assert outline.faults == []
    assert [(tag, sorted(a)) for tag, a in outline.tags] == [(tag, sorted(a)) for tag, a in HARMLESS.tags]


@settings(max_examples=25, deadline=None)
@given(st.text(st.characters(exclude_categories=())))
def test_any_string_changes_no_tag_of_the_page(text):
    test_hostile_strings_change_no_tag_of_the_page(text)


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.isprintable()])
def test_printable_names_are_shown_letter_for_letter(text):
    outline = hostile_page(text)
    alts = [outline.tags[i][1]["alt"] for i in outline.find("img")]
    assert alts.count(text) >= 7
    assert outline.texts[outline.find("td")[0]] == text


def test_characters_that_cannot_be_seen_are_spelled_out():
    outline = hostile_page("a\nb\udcff\u202ec")
    assert r"a\nb\udcff\u202ec" in outline.texts[outline.find("td")[0]]


@settings(max_examples=25, deadline=None)
@given(st.text(st.sampled_from("ab -'\"<>&\n\\")))
def test_the_command_is_shown_to_the_letter(command):
    outline = page(command=command)
    assert outline.texts[outline.find("code", id="command")[0]] == command


# What the page says


def test_it_says_how_many_groups_and_how_sure_before_anything_else():
    outline = page(made_up([10, 6, 4]))
    lead = [outline.texts[i] for i in outline.find("p", class_="lead")]
    assert outline.text("h1") == "3 groups in 20 pictures"
    assert lead[0] == "3 is the most likely number; anything from 2 to 5 would fit as well."
    assert lead[1].startswith("17 of 20 pictures sit clearly in their group; 3 are doubtful")
    assert outline.find("h1")[0] < outline.find("section")[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"candidates": (), "scores": ()}, "You asked for 3 groups; the number was not estimated."),
        ({"low": 3, "high": 3}, "The pictures point to 3."),
        ({"low": 3, "high": 3, "certain": False}, "The pictures cannot tell: 3 is a guess."),
        (
            {"certain": False},
            "The pictures cannot tell the number well: anything from 2 to 5 would fit, and 3 is a guess.",
        ),
    ],
)
def test_it_says_how_sure_the_number_of_groups_is(changes, sentence):
    discovery = made_up([4, 4, 4])
    outline = page(replace(discovery, count=replace(discovery.count, **changes)))
    assert outline.texts[outline.find("p", class_="lead")[0]] == sentence


def test_one_group_of_one_picture_is_spoken_of_in_the_singular():
    outline = page(made_up([1], given=True))
    assert outline.text("h1") == "1 group in 1 picture"
    assert outline.texts[outline.find("p", class_="lead")[1]] == "No picture is doubtful."


def test_where_every_picture_is_doubtful_it_says_so():
    outline = page(replace(made_up([2, 2]), doubtful=(True,) * 4))
    assert outline.texts[outline.find("p", class_="lead")[1]].startswith("Every picture is doubtful")


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("trustworthy", "Trustworthy"),
        ("doubtful", "Doubtful"),
        ("no help", "Known classes do not help here"),
    ],
)
def test_the_verdict_stands_with_its_reasons_and_figures(verdict, title):
    discovery = made_up([4, 3], verdict=verdict)
    outline = page(discovery)
    assert outline.text("h2", id="verdict") == f"Can you trust this? {title}"
    items = {outline.texts[i] for i in outline.find("li")}
    assert set(discovery.diagnosis.reasons) <= items
    values = [outline.texts[i] for i in outline.find("dd", class_="value")]
    assert values == ["12\N{NO-BREAK SPACE}%", "+4.3 points", "0.91", "0.88"]


def test_figures_that_could_not_be_had_are_said_to_be_missing():
    discovery = made_up([4, 3])
    blank = replace(discovery.diagnosis, overlap=None, gain=None, distance=None, stability=float("nan"))
    outline = page(replace(discovery, diagnosis=blank))
    assert {outline.texts[i] for i in outline.find("dd", class_="value")} == {"not measured"}


def test_a_loss_from_known_classes_has_a_minus_sign():
    discovery = made_up([4, 3])
    outline = page(replace(discovery, diagnosis=replace(discovery.diagnosis, gain=-0.021)))
    assert "−2.1 points" in [outline.texts[i] for i in outline.find("dd", class_="value")]


def test_each_group_shows_its_medoid_first_then_sure_pictures_then_doubtful_ones():
    discovery = made_up([6, 5, 3])
    outline = page(discovery)
    order = [int(name.removeprefix("picture-")) for name in outline.ids() if name.startswith("picture-")]
    assert sorted(order) == list(range(14))
    groups = [[i for i in order if discovery.labels[i] == group] for group in range(3)]
    assert order == list(chain.from_iterable(groups))
    for medoid, (first, *others) in zip(discovery.medoids, groups, strict=True):
        assert first == medoid
        assert others == sorted(others, key=lambda i: (discovery.doubtful[i], -discovery.confidence[i]))
    for i in range(14):
        (figure,) = outline.find("figure", id=f"picture-{i}")
        assert ("most typical" in outline.texts[figure]) == (i in discovery.medoids)
        assert ("doubtful" in outline.texts[figure]) == discovery.doubtful[i]
        assert ("?" in outline.texts[figure]) == discovery.doubtful[i]
        assert f"{100 * discovery.confidence[i]:.0f}\N{NO-BREAK SPACE}%" in outline.texts[figure]
        image = outline.tags[figure + 1][1]
        assert image["alt"] == paths_of(discovery)[i]
        assert b64decode(image["src"].partition(",")[2]) == patterns([i])[0]


def test_each_group_shows_its_size_its_confidence_and_its_nearest_known_classes():
    discovery = made_up([6, 1])
    outline = page(discovery)
    first, second = (outline.text("article", id=f"group-{number}") for number in (0, 1))
    assert first.startswith("0 Group 0 6 pictures")
    assert f"{100 * np.mean(discovery.confidence[:6]):.0f} % sure on average" in first
    assert "1 doubtful" in first
    assert "Nearest known classes: cat 0.42, dog 0.77, lynx 1.10" in first
    assert "1 picture " in second
    assert "none doubtful" in second


def test_without_known_classes_none_are_spoken_of():
    discovery = replace(made_up([3, 3]), neighbours=((), ()), nearest_known=("",) * 6)
    outline = page(discovery)
    assert outline.faults == []
    assert "Nearest known class:" not in outline.text("main")
    assert not outline.find("p", class_="near")


def test_the_map_has_a_point_for_every_picture_at_its_place():
    discovery = made_up([6, 5])
    outline = page(discovery)
    points = {outline.tags[i][1]["id"]: i for i in outline.find("a", class_="point")}
    assert len(points) == 11
    places = []
    for i in range(11):
        tag = points[f"point-{i}"]
        attributes = outline.tags[tag][1]
        assert attributes["href"] == f"#picture-{i}"
        assert f"group {discovery.labels[i]}" in attributes["aria-label"]
        assert outline.texts[tag] == str(discovery.labels[i])
        places.append([float(number) for number in re.findall(r"[\d.]+", attributes["transform"])])
    assert np.allclose(places, 50 + 900 * np.array(discovery.positions), atol=0.06)


def test_the_curve_is_there_only_where_the_number_was_estimated():
    assert page(made_up([4, 4])).find("polyline")
    assert not page(made_up([4, 4], given=True)).find("polyline")


def test_skipped_files_stand_with_their_reasons():
    outline = page(skipped=[Skipped("a/b.jpg", "cut short"), Skipped("c.png", "a text file")])
    assert outline.text("section", id="skipped").startswith("Skipped files 2 files could not be used.")
    cells = [outline.texts[i] for i in outline.find("td")]
    assert cells[-4:] == ["a/b.jpg", "cut short", "c.png", "a text file"]
    assert "None: every file could be used." in page().text("section", id="skipped")


def test_what_pictures_were_compared_by_stands_with_its_accuracy_and_so_do_the_facts():
    outline = page(facts={"Encoder": "EfficientNet-Lite0", "Seed": "7"})
    assert "encoder + projector (used) 75 %" in outline.text("section", id="figures").replace("used)75", "used) 75")
    assert "EfficientNet-Lite0" in outline.text("section", id="repeat")


def test_paths_of_another_discovery_are_refused():
    with pytest.raises(ValueError, match="3 paths for a discovery among 7"):
        render(made_up([4, 3]), ["a"] * 3, patterns, [], COMMAND, {})


def test_a_count_without_scores_for_the_number_used_still_has_its_curve():
    count = ClassCount(3, 2, 4, (2, 4), (0.1, 0.2), True, "So.")
    outline = page(replace(made_up([2, 2, 2]), count=count))
    assert outline.find("polyline")
    assert not outline.find("circle", class_="chosen")
