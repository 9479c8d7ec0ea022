import csv
import json

import pytest

from medi import demo
from medi.core.errors import InputError
from medi.core.progress import Silent


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
