"""docs/algorithms.md quotes lines that stand where it says."""

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "algorithms.md"
QUOTED = re.findall(r"^- .+: \[`(\w+)`\]\((\S+)\)\n  `(.+)`$", PAGE.read_text(encoding="utf-8"), re.M)


def test_all_three_algorithms_are_quoted():
    assert len(QUOTED) == PAGE.read_text(encoding="utf-8").count("\n- ") > 12


@pytest.mark.parametrize(("name", "file", "line"), QUOTED)
def test_a_quoted_line_stands_in_the_function_that_is_named(name, file, line):
    source = (PAGE.parent / file).read_text(encoding="utf-8")
    bodies = [
        ast.get_source_segment(source, node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    assert any(line in body for body in bodies), f"{file} has no {name} with this line"
