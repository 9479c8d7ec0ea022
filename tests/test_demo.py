import csv
import json

import pytest

from medi import demo
from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.grouping.engine import ALONE


def test_letters_are_written_as_a_person_would_have_them(tmp_path):
    truth = demo.write_letters(tmp_path)
    known = {path.name: list(path.iterdir()) for path in (tmp_path / "known").iterdir()}
    assert len(known) == 20
    assert sum(map(len, known.values())) == 20 * demo.OF_KNOWN - demo.HIDDEN * demo.LETTERS_HIDDEN
    assert sorted(path.name for path in (tmp_path / "novel").iterdir()) == sorted(truth)
    labels = list(truth.values())
    assert sum(label == ALONE for label in labels) == 4
    assert sum(label < ALONE for label in labels) == demo.HIDDEN * demo.LETTERS_HIDDEN
    assert all(labels.count(group) == demo.OF_NOVEL for group in range(8))


def test_the_demo_sorts_says_how_many_are_right_and_can_be_repeated(tmp_path):
    for _ in range(2):
        done = demo.run_demo(tmp_path, "plain", Silent())
    with (tmp_path / "found" / "clusters.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == done.drawings == 64
    assert (tmp_path / "found" / "report.html").is_file()
    assert json.loads((tmp_path / "found" / "discovery.json").read_text())["n_classes"] == done.facts["n_classes"]
    assert done.right / done.drawings > 0.7, "letters are easy for the default encoder"


def test_a_method_that_the_demo_does_not_have_is_refused(tmp_path):
    with pytest.raises(InputError, match="plain"):
        demo.run_demo(tmp_path, "rs", Silent())
    assert not list(tmp_path.iterdir())
