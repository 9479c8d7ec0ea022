"""Settings that are no preset: candidates from a file, and `--set field=value`.

Both say what differs from a preset, as JSON: `{"from": "default", "network": "conv4", "schedule": {"steps": 100}}`.
Names and types are checked against the dataclass that holds the method's settings, so this works for any method.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from medi.errors import InputError, unknown_name
from medi.runtime.files import input_errors

Changes = dict[str, Any]
"""Fields and their new values, as JSON has them; what a nested dataclass changes is an object of the same kind."""

FROM = "from"
"""Key of the preset that a candidate starts from, or of an earlier candidate of the same file."""


class NamedSettings(NamedTuple):
    """What a run's `config` stands for.

    Attributes:
        name: A preset's, or a candidate's.
        changes: What differs from the preset.
        source: Where the changes are from: errors begin with it.
    """

    name: str
    changes: Changes
    source: str = ""

    def changed(self, assignments: Sequence[str] | None) -> NamedSettings:
        """The same with what `--set` changes."""
        if not assignments:
            return self
        source = f"{self.source} with --set" if self.source else "--set"
        return NamedSettings(self.name, merge(self.changes, parse_assignments(assignments)), source)


def read_candidates(path: Path) -> list[NamedSettings]:
    """The candidates of a JSON file; each says which preset, or which candidate above it, it starts from."""
    if not path.is_file():
        raise InputError(f"--candidates {path}: there is no such file.")
    with input_errors(path, "read"):
        content = path.read_bytes()
    try:
        found = json.loads(content, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a JSON file ({error}): write it as `medi bench choose --help` shows."
        ) from error
    if not isinstance(found, dict) or not found:
        raise InputError(f"{path} has no candidates: write it as `medi bench choose --help` shows.")
    whole: dict[str, Changes] = {}
    for name, changes in found.items():
        if not isinstance(changes, dict) or not name.strip():
            raise InputError(f"{path}, candidate '{name}': give a name and an object of settings.")
        start = changes.setdefault(FROM, "default")
        if not isinstance(start, str):
            raise InputError(
                f"{path}, candidate '{name}': '{FROM}' is {_json(start)}; name a preset, or a candidate above."
            )
        before = whole.get(start, changes)
        whole[name] = merge(before, changes) | {FROM: before[FROM]}
    return [NamedSettings(name, changes, f"{path}, candidate '{name}'") for name, changes in whole.items()]


def parse_assignments(assignments: Iterable[str]) -> Changes:
    """What `--set schedule.steps=100 --set network=conv4` says; values are JSON, or text without quotes."""
    changes: Changes = {}
    for assignment in assignments:
        name, sign, text = (part.strip() for part in assignment.partition("="))
        *parents, last = name.split(".")
        if not sign or not all([*parents, last]):
            raise InputError(f"--set {assignment}: write field=value, such as schedule.steps=100.")
        if name == FROM:
            raise InputError(f"--set {assignment}: that is no setting; name a preset with --config.")
        place = changes
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise InputError(
                    f"--set {assignment}: {parent} is set to {_json(place)} already; leave one of them out."
                )
        if last in place:
            raise InputError(f"--set {assignment}: {name} is set already; leave one of them out.")
        try:
            place[last] = json.loads(text)
        except (ValueError, RecursionError):
            place[last] = text
    return changes


def assignments_of(changes: Changes, path: str = "") -> list[str]:
    """Changes as `--set` has them; the preset that a candidate starts from is none."""
    found = []
    for name, value in changes.items():
        if isinstance(value, dict):
            found += assignments_of(value, f"{path}{name}.")
        elif path or name != FROM:
            found.append(f"{path}{name}={_json(value)}")
    return found


def merge(first: Changes, then: Changes) -> Changes:
    """Both changes; the second one wins."""
    merged = dict(first)
    for name, value in then.items():
        old = merged.get(name)
        merged[name] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def apply_changes(config: Any, changes: Mapping[str, Any]) -> Any:
    """A dataclass like `config` with some fields changed; an `InputError` names the field at fault."""
    values = {name: value for name, value in changes.items() if name != FROM}
    return _build(type(config), values, config, "") if values else config


def _build(kind: Any, changes: Mapping[str, Any], current: Any, path: str) -> Any:
    """A dataclass of a kind: changed fields, then those that the current value has, then defaults."""
    settable = {field.name: field for field in fields(kind) if field.init}
    for name in changes:
        if name not in settable:
            raise unknown_name("setting", path + name, (path + known for known in settable))
    types = get_type_hints(kind)
    values = {}
    for name, field in settable.items():
        value = getattr(current, name, _default(field))
        if name in changes:
            value = _value(changes[name], types[name], value, path + name)
        if value is MISSING:
            raise InputError(f"{path}{name} is missing: give {_describe(types[name])}.")
        values[name] = value
    try:
        return kind(**values)
    except (InputError, ValueError, TypeError) as error:  # what the class itself checks
        raise InputError(f"{path.rstrip('.')}: {error}" if path else str(error)) from error


def _value(value: Any, declared: Any, current: Any, path: str) -> Any:
    """A JSON value as the declared type of a field."""
    kinds: list[Any] = [member for member in _members(declared) if _fits(value, member)]
    if not kinds:
        raise InputError(f"{path} is {_json(value)}; give {_describe(declared)}.")
    kind = kinds[0]
    if is_dataclass(kind):
        return _build(kind, value, current if type(current) is kind else None, f"{path}.")
    if get_origin(kind) is tuple:
        return _tuple(value, get_args(kind), current if isinstance(current, tuple) else (), path)
    if get_origin(kind) in (dict, Mapping):
        return {name: _value(item, get_args(kind)[1], None, f"{path}.{name}") for name, item in value.items()}
    return float(value) if kind is float else value


def _tuple(items: Sequence[Any], types: Sequence[Any], current: Sequence[Any], path: str) -> tuple[Any, ...]:
    """A tuple of items; objects change what stands at the same place now."""
    if types[1:] == (...,):
        types = [types[0]] * len(items)
    if len(types) != len(items):
        raise InputError(f"{path} has {len(items)} values; give {len(types)}.")
    now = [*current, *[None] * len(items)]
    return tuple(_value(item, types[i], now[i], f"{path}.{i}") for i, item in enumerate(items))


def _fits(value: Any, kind: Any) -> bool:
    """Whether a JSON value can be of a type, by its outermost part."""
    if is_dataclass(kind) or get_origin(kind) in (dict, Mapping):
        return isinstance(value, dict)
    if get_origin(kind) is tuple:
        return isinstance(value, list)
    if get_origin(kind) is Literal:
        return any(value == option and type(value) is type(option) for option in get_args(kind))
    if kind is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max  # neither NaN nor infinite
    return type(value) is kind


def _describe(declared: Any) -> str:
    """What a field takes, in words."""
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text", NoneType: "null"}
    parts: list[str] = []
    for kind in _members(declared):
        if get_origin(kind) is Literal:
            parts += map(_json, get_args(kind))
        else:
            parts.append(words.get(kind) or ("a list" if get_origin(kind) is tuple else "an object"))
    return " or ".join(parts)


def _members(declared: Any) -> Sequence[Any]:
    return get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' is there twice")
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
