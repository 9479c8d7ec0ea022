"""The number that is shown and the word beside it agree: in the report, the tables, the pages and the terminal."""

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from discoveries import made_up
from hypothesis import given, settings
from hypothesis import strategies as st
from outline import Outline
from report_pages import blank, page, paths_of
from reviews import ToyPool, write_discovery

from medi.cli.accept import run_accept
from medi.discover.output import write_clusters
from medi.discover.result import SURE_FROM, is_doubtful
from medi.report.assigned import render_assigned
from medi.review.discovery_folder import read_clusters

EDGES = [0.66, 0.6649, 0.66494, 0.66496, 0.665, 0.6651, 0.6666, 2 / 3, 0.6667, 0.67]
NEAR = st.lists(st.floats(0.655, 0.675) | st.sampled_from(EDGES), min_size=2, max_size=8)


def shown(outline: Outline) -> list[tuple[int, bool]]:
    """The number and the mark of each picture, in the page's order."""
    texts = [(outline.texts[i], outline.tags[i][1]["class"]) for i in outline.find("figure", class_="picture")]
    return [(int(re.search(r"(\d+)\s*%", text)[1]), "doubtful" in marks) for text, marks in texts]


@settings(max_examples=30, deadline=None)
@given(NEAR)
def test_report_and_table_say_the_same(sure):
    found = made_up([len(sure)])
    found = replace(found, confidence=tuple(sure), doubtful=tuple(map(is_doubtful, sure)))
    pictures = shown(page(found, blank))
    assert all(doubtful == (number < SURE_FROM) for number, doubtful in pictures)
    with TemporaryDirectory() as folder:
        write_clusters(Path(folder) / "clusters.csv", paths_of(found), found)
        read = read_clusters(Path(folder) / "clusters.csv").confidence
    assert tuple(map(is_doubtful, read)) == found.doubtful
    again = replace(found, confidence=read)
    assert shown(page(again, blank)) == pictures


@settings(max_examples=30, deadline=None)
@given(NEAR)
def test_the_page_of_assign_says_the_same_as_its_table(sure):
    none = {"second_kind": "none", "second_label": "", "second_confidence": "0.1"}
    rows = [{"path": f"{c}.jpg", "kind": "novel", "label": "0", "confidence": f"{c:.4f}"} | none for c in sure]
    outline = Outline(render_assigned(lambda: iter(rows), blank, (), calibrated=True))
    pictures = shown(outline)
    assert all(doubtful == (number < SURE_FROM) for number, doubtful in pictures)
    assert sum(doubtful for _, doubtful in pictures) == sum(is_doubtful(float(row["confidence"])) for row in rows)


@settings(max_examples=8, deadline=None)
@given(NEAR.filter(lambda sure: len(set(map(is_doubtful, sure))) == 2))
def test_the_terminal_leaves_out_what_the_pages_call_doubtful(sure):
    with TemporaryDirectory() as folder:
        pool = ToyPool(np.zeros((len(sure), 2)), np.zeros(len(sure), int), confidence=sure)
        accepted = run_accept(write_discovery(Path(folder), pool), Path(folder) / "known", ["0=holly"])
    assert accepted.doubtful == sum(map(is_doubtful, sure))
    assert sum(accepted.now.values()) == len(sure) - accepted.doubtful
