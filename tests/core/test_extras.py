"""A package that a plain installation does not bring is said in one line, and no other fault is taken for that."""

import sys

import pytest

from medi.core import extras
from medi.core.errors import InputError


def test_a_package_that_is_not_there_is_said_in_one_line_with_the_command_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for ask in (extras.needs, extras.imported):
        with pytest.raises(InputError, match=r'^--method mp needs torch: pip install "medi\[train\]"$'):
            ask("train", "torch", "--method mp")


def test_a_package_that_is_there_is_let_through():
    extras.needs("train", "json", "nothing")
    assert extras.imported("train", "json.decoder", "nothing").JSONDecoder is not None


def test_a_fault_inside_what_is_imported_is_not_taken_for_a_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "medi.missing", None)
    with pytest.raises(ModuleNotFoundError), extras.wanted("train", "torch", "--method mp"):
        import medi.missing  # noqa: F401
