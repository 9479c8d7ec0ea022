import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest
from discoveries import made_up, patterns
from hypothesis import given, settings
from hypothesis import strategies as st
from outline import Outline
from report_pages import COMMAND, HOSTILE, blank, html_of, page

from medi.photos.folders import Skipped
from medi.photos.thumbnails import LARGEST_BYTES
from medi.report.page import render
from medi.report.strips import MOST_SHOWN

# The page as a document


@pytest.mark.parametrize("verdict", ["trustworthy", "doubtful", "no help"])
@pytest.mark.parametrize("given_k", [True, False])
@pytest.mark.parametrize(
    ("sizes", "known", "alone"),
    [
        ([1], {}, 0),
        ([5, 5], {"cat": 3, "dog": 1}, 2),
        ([3, 0, 1], {}, 1),
        ([2] * 60, {"cat": 1}, 0),
        ([], {"cat": 4}, 0),
        ([], {}, 5),
    ],
)
def test_the_page_is_well_formed_and_accessible(verdict, given_k, sizes, known, alone):
    discovery = made_up(sizes, known=known, alone=alone, given=given_k, verdict=verdict)
    outline = page(discovery, skipped=[Skipped("a.jpg", "empty")])
    assert outline.faults == []
    assert all("alt" in outline.tags[i][1] for i in outline.find("img"))
    assert outline.tags[outline.find("html")[0]][1]["lang"] == "en"
    for landmark in ("main", "h1", "nav"):
        assert len(outline.find(landmark)) == 1
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_names_no_other_file_and_its_policy_allows_no_script_but_its_own():
    html = html_of(made_up([4, 3]))
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


def test_a_page_about_nothing_says_so():
    outline = page(made_up([], given=True), blank)
    assert outline.faults == []
    assert outline.text("h1")
    assert not outline.find("nav")
    assert not outline.find(id="map")


@pytest.mark.parametrize(
    ("sizes", "known", "alone"),
    [([3000, 20, 1], {}, 0), ([2] * 1200, {}, 0), ([500, 500], {"cat": 700, "dog": 3}, 40)],
)
def test_of_thousands_of_pictures_the_first_and_last_of_each_strip_are_shown(sizes, known, alone):
    discovery, asked = made_up(sizes, known=known, alone=alone), []
    outline = page(discovery, lambda numbers: asked.extend(numbers) or blank(numbers))
    assert outline.faults == []
    shown = [int(name.removeprefix("picture-")) for name in outline.ids() if re.fullmatch(r"picture-\d+", name)]
    assert len(shown) <= MOST_SHOWN
    assert sorted(shown) == asked, "thumbnails of others are not asked for"
    assert len(outline.find("a", class_="point")) == len(shown)

    def strip(i: int) -> tuple:
        return discovery.kinds[i], discovery.labels[i], discovery.known[i]

    whole, seen = (Counter(map(strip, numbers)) for numbers in (range(len(discovery.kinds)), shown))
    cut = [seen[name] for name in whole if seen[name] < whole[name]]
    assert max(cut) - min(cut) <= 1, "there is as much room for each"
    assert max(seen.values()) <= max(cut), "short ones are shown whole"
    if min(cut) > 1:
        assert {group.medoid for group in discovery.groups if group.items > 1} <= set(shown)
        assert {i for i, doubtful in enumerate(discovery.doubtful) if doubtful} <= set(shown)
    for number, size in list(enumerate(sizes))[:3]:
        left = size - seen["novel", number, ""]
        assert (f"{left:,} more" in outline.text("article", id=f"group-{number}")) == (left > 0)


def test_no_group_is_cut_where_all_pictures_can_be_shown():
    outline = page(made_up([970, 10], known={"cat": 10}, alone=10), blank)
    assert len(outline.find("figure", class_="picture")) == 1000
    assert not outline.find("p", class_="more")


# Strings that users choose


def hostile_page(text: str) -> Outline:
    discovery = made_up([4, 3], known={"cat": 2}, alone=1)
    discovery = replace(
        discovery,
        known=(*[""] * 7, text, text, ""),
        nearest_known=(text,) * 10,
        groups=tuple(replace(group, neighbours=(text,)) for group in discovery.groups),
        representation=text,
        representation_scores={text: 0.5},
        count=replace(discovery.count, how=text),
        diagnosis=replace(discovery.diagnosis, reasons=(text,)),
    )
    html = render(discovery, [text] * 10, patterns, [Skipped(text, text)], "medi", {text: text})
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
    assert alts.count(text) >= 10
    assert text in [outline.texts[i] for i in outline.find("td")]


def test_paths_of_another_discovery_are_refused():
    with pytest.raises(ValueError, match="3 paths"):
        render(made_up([4, 3]), ["a"] * 3, patterns, [], "medi", {})


def test_characters_that_cannot_be_seen_are_spelled_out():
    outline = hostile_page("a\nb\udcff\u202ec")
    assert r"a\nb\udcff\u202ec" in [outline.texts[i] for i in outline.find("td")]


@settings(max_examples=25, deadline=None)
@given(st.text(st.sampled_from("ab -'\"<>&\n\\")))
def test_the_command_is_shown_to_the_letter(command):
    outline = page(command=command)
    assert outline.texts[outline.find("code", id="command")[0]] == command
