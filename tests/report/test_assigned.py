"""The page of `medi assign`, from tables that are made up."""

import re
from base64 import b64decode
from random import Random

import pytest
from discoveries import patterns
from hypothesis import given, settings
from hypothesis import strategies as st
from outline import Outline
from report_pages import HOSTILE

from medi.discover.result import is_doubtful
from medi.photos.folders import Skipped
from medi.report import strips
from medi.report.assigned import render_assigned

NONE = ("none", "")


def row(path, answer=("novel", "0"), sure=0.9, second=NONE, second_sure=0.05):
    kinds = {"kind": answer[0], "label": answer[1], "second_kind": second[0], "second_label": second[1]}
    return {"path": path, "confidence": f"{sure:.4f}", "second_confidence": f"{second_sure:.4f}"} | kinds


def page(rows, thumbnails=lambda paths: patterns(range(len(paths))), skipped=(), calibrated=True):
    return Outline(render_assigned(lambda: iter(rows), thumbnails, skipped, calibrated=calibrated))


def figures(outline):
    """The pictures as (path, caption, whether it is marked) in the page's order."""
    found = []
    for i in outline.find("figure"):
        inside = next(a["alt"] for tag, a in outline.tags[i:] if tag == "img")
        found.append((inside, outline.texts[i].replace("?", ""), "doubtful" in outline.tags[i][1]["class"]))
    return found


ROWS = [
    row("far.jpg", NONE, 0.8, ("novel", "10"), 0.1),
    row("b.jpg", ("known", "daisy"), 0.5, ("novel", "2"), 0.3),
    row("ten.jpg", ("novel", "10")),
    row("two c.jpg", ("novel", "2"), 0.4, NONE, 0.3),
    row("two a.jpg", ("novel", "2"), 0.7),
    row("two b.jpg", ("novel", "2"), 0.95),
]


def test_answers_that_are_less_sure_than_asked_stand_apart_with_what_they_are():
    unsure = row("far.jpg", NONE, 0.3, NONE, 0.0) | {"likeliest": "2", "likeliest_confidence": "0.7000"}
    none = row("odd.jpg", NONE, 0.8, ("novel", "10"), 0.1) | {"likeliest": "", "likeliest_confidence": "0.8000"}
    rows = [none, unsure]
    outline = Outline(
        render_assigned(lambda: iter(rows), lambda paths: patterns(range(2)), (), calibrated=True, sure=0.8)
    )
    assert outline.faults == []
    captions = {path: " ".join(caption.split()) for path, caption, _ in figures(outline)}
    assert captions == {"odd.jpg": "80 % nearest to group 10, 10 %", "far.jpg": "70 % group 2"}
    heading = next(outline.texts[i] for i in outline.find("h1"))
    assert heading.endswith("1 of neither, 1 less sure than asked")


def test_pictures_come_by_answer_the_sure_ones_first_and_the_doubtful_with_their_second_guess():
    outline = page(ROWS, skipped=[Skipped("bad.jpg", "not an image")])
    assert outline.faults == []
    shown = figures(outline)
    assert [path for path, *_ in shown] == ["two b.jpg", "two a.jpg", "two c.jpg", "ten.jpg", "b.jpg", "far.jpg"]
    assert [path for path, _, doubtful in shown if doubtful] == ["two c.jpg", "b.jpg"]
    captions = {path: " ".join(caption.split()) for path, caption, _ in shown}
    assert captions["two b.jpg"] == "95 %"
    assert captions["two c.jpg"] == "40 % or none of these, 30 %"
    assert captions["b.jpg"] == "50 % or group 2, 30 %"
    assert captions["far.jpg"] == "80 % nearest to group 10, 10 %"
    assert [outline.texts[i] for i in outline.find(class_="name")] == ["Group 2", "Group 10", "daisy", "None of these"]
    assert "68 %" in outline.texts[outline.find(class_="sure")[0]].replace("\N{NO-BREAK SPACE}", " ")
    assert "bad.jpg" in outline.texts[outline.find("main")[0]]


def test_the_page_is_alone_and_runs_nothing():
    outline = page(ROWS)
    sources = [v for _, a in outline.tags for k, v in a.items() if k in ("src", "href", "srcset", "data", "action")]
    assert all(source.startswith(("data:image/jpeg;base64,", "#")) for source in sources)
    assert outline.find("script") == []
    policy = next(a["content"] for _, a in outline.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; style-src")
    first = next(source for source in sources if source.startswith("data:"))
    assert b64decode(first.partition(",")[2]).startswith(b"\xff\xd8")


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_spoils_the_page(name):
    rows = [
        row(name, ("known", name or "x"), 0.5, ("known", name or "y")),
        row(name, NONE, 0.9, ("known", name or "x")),
    ]
    plain, odd = page([row("a", ("known", "x"), 0.5, ("known", "y")), row("a", NONE, 0.9, ("known", "x"))]), page(rows)
    assert odd.faults == []
    assert [tag for tag, _ in odd.tags] == [tag for tag, _ in plain.tags]


def test_an_empty_table_and_a_guess_are_said():
    assert page([]).faults == []
    assert "rough guess" in page(ROWS, calibrated=False).texts[0]
    assert "rough guess" not in page(ROWS).texts[0]


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=45), seed=st.integers(0, 99), room=st.integers(30, 60))
def test_so_many_are_shown_the_surest_and_the_most_doubtful(sizes, seed, room):
    random = Random(seed)
    rows = [row(f"{g} {i}.jpg", ("novel", str(g)), random.random()) for g, n in enumerate(sizes) for i in range(n)]
    random.shuffle(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strips, "MOST_SHOWN", room)
        outline = page(rows, lambda paths: [b""] * len(paths))
    shown = figures(outline)
    assert len(shown) <= room
    assert (len(shown) == len(rows)) == (len(rows) <= room)
    hidden = [int(re.sub(r"\D", "", outline.texts[i])) for i in outline.find("p", class_="more")]
    assert sum(hidden) == len(rows) - len(shown)
    sure = {line["path"]: float(line["confidence"]) for line in rows}
    for g in range(len(sizes)):
        mine = [path for path, *_ in shown if path.startswith(f"{g} ")]
        whole = sorted((path for path in sure if path.startswith(f"{g} ")), key=lambda path: (-sure[path], path))
        assert mine == whole[: len(mine) - len(mine) // 2] + whole[len(whole) - len(mine) // 2 :]
    assert all(doubtful == is_doubtful(sure[path]) for path, _, doubtful in shown)
