"""JSON Schemas (2020-12) of what MEDI writes and prints for programs, one file each.

They are the contract: tests hold what commands really write against them, unknown keys are refused. The number at the
end of an `$id` rises when a field goes or changes its meaning.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from medi.core.errors import InputError, refuse_unknown
from medi.core.reading import input_errors, parse, read_file
from medi.core.system import FILE_NAME_ERRORS

_ENDING = ".schema.json"
LARGEST = 2**53
"""Integers beyond this are none to other programs; nothing of ours has one."""


def names() -> list[str]:
    """The schemas there are."""
    found = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING))


def text(name: str) -> str:
    """A schema as it is written; an unknown name is an error that suggests the nearest."""
    refuse_unknown("schema", name, names())
    return files(__name__).joinpath(name + _ENDING).read_text(encoding="utf-8")


@cache
def schema(name: str) -> dict[str, Any]:
    """A schema as a dictionary."""
    found: dict[str, Any] = json.loads(text(name))
    return found


def read_document(path: Path, name: str, cure: str) -> dict[str, Any]:
    """What a JSON file holds; damage is an error that says where it is, with the cure."""
    with input_errors(path, "read"):
        content = read_file(path)
    try:
        document: dict[str, Any] = parse(content)
        place = fault(schema(name), document)
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}): {cure}.") from error
    if place is not None:
        raise InputError(f"{path} is damaged ({place or 'it'} is not as `medi schema {name}` has it): {cure}.")
    return document


def fault(rule: Mapping[str, Any], value: object, whole: Mapping[str, Any] | None = None) -> str | None:
    """Where a value breaks a schema, as a path such as `effect.places.3`; None where it keeps it.

    Knows the words that our schemas use. Stricter than they are: no NaN, nothing beyond a float, no text that cannot be
    written down.
    A part of a schema needs the whole one, for the definitions that it refers to.
    """
    whole = rule if whole is None else whole
    if "$ref" in rule:
        return fault(whole["$defs"][rule["$ref"].rpartition("/")[2]], value, whole)
    if not _allows(rule, value):
        return ""
    places = [fault(form, value, whole) for form in rule.get("oneOf", ())]
    if places and places.count(None) != 1:  # the form that it is nearest to
        return max((place for place in places if place is not None), key=len, default="")
    if "anyOf" in rule and all(fault(form, value, whole) is not None for form in rule["anyOf"]):
        return ""
    if isinstance(value, dict):
        taken = rule["oneOf"][places.index(None)] if places else {}
        return _fault_of_object(rule, value, whole, taken.get("properties", {}))
    return _fault_of_list(rule, value, whole) if isinstance(value, list) else None


def _allows(rule: Mapping[str, Any], value: object) -> bool:
    """Whether a value keeps what a rule says of single values."""
    kinds = rule.get("type", list(_KINDS))
    if not any(_KINDS[kind](value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if isinstance(value, float | int) and not rule.get("minimum", -math.inf) <= value <= rule.get("maximum", math.inf):
        return False
    if isinstance(value, str) and not re.search(rule.get("pattern", ""), value):
        return False
    among = rule.get("enum", [rule["const"]] if "const" in rule else [value])
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in among)


def _fault_of_object(
    rule: Mapping[str, Any], value: Mapping[str, Any], whole: Mapping[str, Any], checked: Mapping[str, Any]
) -> str | None:
    """`checked` are properties that another rule allows."""
    known, more = rule.get("properties", {}), rule.get("additionalProperties", rule.get("unevaluatedProperties", {}))
    also = (name for key, names in rule.get("dependentRequired", {}).items() if key in value for name in names)
    for name in (*rule.get("required", ()), *also):
        if name not in value:
            return str(name)
    for name, item in value.items():
        inner = known.get(name, {} if name in checked else more)
        if inner is False or fault(rule.get("propertyNames", {}), name, whole) is not None:
            return name
        if (place := fault(inner, item, whole)) is not None:
            return _joined(name, place)
    return None


def _fault_of_list(rule: Mapping[str, Any], value: Sequence[object], whole: Mapping[str, Any]) -> str | None:
    first, others = rule.get("prefixItems", ()), rule.get("items", {})
    if len(value) < rule.get("minItems", 0) or (others is False and len(value) > len(first)):
        return ""
    for number, item in enumerate(value):
        if (place := fault(first[number] if number < len(first) else others, item, whole)) is not None:
            return _joined(str(number), place)
    return None


def _joined(name: str, place: str) -> str:
    return f"{name}.{place}" if place else name


def _is_writable(text: str) -> bool:
    """Whether it is Unicode, or a file name that is none as Python has it."""
    try:
        return text.isascii() or bool(text.encode(errors=FILE_NAME_ERRORS))
    except UnicodeEncodeError:
        return False


_KINDS: Mapping[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str) and _is_writable(value),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST,
    "number": lambda value: _KINDS["integer"](value) or (isinstance(value, float) and math.isfinite(value)),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
