"""One word for one thing: no two modules give a class, a type or a constant the same public name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import medi

ROOT = Path(medi.__file__).parent


def names(source: str) -> Iterator[str]:
    """Public names of classes, types and constants at the top of a module."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            found = [node.name]
        elif isinstance(node, ast.Assign):
            found = [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found = [node.target.id]
        else:
            continue
        yield from (name for name in found if name[0].isupper())


def test_no_two_modules_use_one_name():
    places = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for name in names(path.read_text()):
            places[name].append(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
