"""Everything public has an example in its docstring, and examples are true."""

import doctest
import inspect
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
INSIDE = {name for contract in CONTRACTS for name in contract.get("protected_modules", ())}
FACE = {f"medi.grouping.{path.stem}" for path in (ROOT / "src/medi/grouping").glob("[a-z]*.py")} - INSIDE
PUBLIC = ["medi.estimator", "medi.metrics", "medi.theory.bound", "medi.theory.supports", *sorted(FACE)]


def examples(thing, module):
    return doctest.DocTestFinder(recurse=False).find(thing, thing.__name__, module=module, globs=vars(module).copy())


def public(module):
    """The classes and functions that a module defines."""
    found = inspect.getmembers(module, lambda one: inspect.isclass(one) or inspect.isfunction(one))
    return [one for name, one in found if not name.startswith("_") and one.__module__ == module.__name__]


@pytest.mark.parametrize("name", [*PUBLIC, "medi.bench.score"])
def test_examples_of_docstrings_are_true(name, capsys):
    module = import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL)
    for thing in public(module):
        for test in examples(thing, module):
            assert test.examples or name not in PUBLIC, f"{name}.{test.name} shows no example"
            runner.run(test)
    assert runner.summarize().failed == 0, capsys.readouterr().out
    assert runner.tries > 0
