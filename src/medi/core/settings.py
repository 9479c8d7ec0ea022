"""Settings as data: what differs from a dataclass, as JSON, and a file of such changes by name.

Presets and candidates have one format: `{"small": {"network": "conv4"}, "long": {"from": "small", "schedule": {"steps":
100}}}`. Names and types are checked against the dataclass that holds the settings, whichever it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from medi.core.errors import InputError, unknown_name
from medi.core.reading import input_errors, read_file

Changes = dict[str, Any]
"""Fields and their new values, as JSON has them; what a nested dataclass changes is an object of the same kind."""

FROM = "from"
"""Key of what an object starts from: a preset of the dataclass it is of, or an earlier entry of the same file."""

Named = Callable[[type, str], Any]
"""From a dataclass and the name of one of its presets to the settings."""


def read_changes(path: Path, cure: str) -> dict[str, Changes]:
    """The entries of a JSON file, each with all that it starts from in the file; `cure` says how to write one.

    What starts from no entry above it keeps the key `from`.
    """
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    with input_errors(path, "read"):
        content = read_file(path)
    try:
        found = json.loads(content, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a JSON file ({error}): {cure}") from error
    if not isinstance(found, dict) or not found:
        raise InputError(f"{path} is empty: {cure}")
    whole: dict[str, Changes] = {}
    for name, changes in found.items():
        if not isinstance(changes, dict) or not name.strip():
            raise InputError(f"{path}, '{name}': give a name and an object of settings.")
        start = changes.get(FROM, "")
        if not isinstance(start, str):
            raise InputError(f"{path}, '{name}': '{FROM}' is {as_json(start)}; name a preset, or an entry above.")
        if start in whole:
            changes = merge(whole[start], {key: value for key, value in changes.items() if key != FROM})
        whole[name] = changes
    return whole


def merge(first: Changes, then: Changes) -> Changes:
    """Both changes; the second one wins."""
    merged = dict(first)
    for name, value in then.items():
        old = merged.get(name)
        merged[name] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def apply_changes(config: Any, changes: Mapping[str, Any], named: Named | None = None) -> Any:
    """A dataclass like `config` with some fields changed; an `InputError` names the field at fault.

    `named` are the presets that nested settings may start from; what `config` itself starts from is no change.
    """
    values = {name: value for name, value in changes.items() if name != FROM}
    return _Builder(named).build(type(config), values, config, "") if values else config


def as_json(value: Any) -> str:
    """A value as messages show it."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class _Builder:
    """Makes dataclasses of JSON; a path says where in the settings it is."""

    named: Named | None

    def build(self, kind: Any, changes: Mapping[str, Any], current: Any, path: str) -> Any:
        """A dataclass of a kind: changed fields, then those that the current value has, then defaults."""
        changes = dict(changes)
        if FROM in changes and self.named is not None and hasattr(kind, "presets"):
            current = self.named(kind, str(changes.pop(FROM)))
        settable = {field.name: field for field in fields(kind) if field.init}
        for name in changes:
            if name not in settable:
                raise unknown_name("setting", path + name, (path + known for known in settable))
        types = get_type_hints(kind)
        values = {}
        for name, field in settable.items():
            default = field.default if field.default_factory is MISSING else field.default_factory()
            value = getattr(current, name, default)
            if name in changes:
                value = self.convert(changes[name], types[name], value, path + name)
            if value is MISSING:
                raise InputError(f"{path}{name} is missing: give {_describe(types[name])}.")
            values[name] = value
        try:
            return kind(**values)
        except (InputError, ValueError, TypeError) as error:  # what the class itself checks
            raise InputError(f"{path.rstrip('.')}: {error}" if path else str(error)) from error

    def convert(self, value: Any, declared: Any, current: Any, path: str) -> Any:
        """A JSON value as the declared type of a field."""
        kinds: list[Any] = [member for member in _members(declared) if _fits(value, member)]
        if not kinds:
            raise InputError(f"{path} is {as_json(value)}; give {_describe(declared)}.")
        kind = kinds[0]
        if is_dataclass(kind):
            return self.build(kind, value, current if type(current) is kind else None, f"{path}.")
        if get_origin(kind) is tuple:
            return self.convert_all(value, get_args(kind), current if isinstance(current, tuple) else (), path)
        if get_origin(kind) in (dict, Mapping):
            return {name: self.convert(item, get_args(kind)[1], None, f"{path}.{name}") for name, item in value.items()}
        return float(value) if kind is float else value

    def convert_all(
        self, items: Sequence[Any], types: Sequence[Any], current: Sequence[Any], path: str
    ) -> tuple[Any, ...]:
        """A tuple of items; objects change what stands at the same place now."""
        if types[1:] == (...,):
            types = [types[0]] * len(items)
        if len(types) != len(items):
            raise InputError(f"{path} has {len(items)} values; give {len(types)}.")
        now = [*current, *[None] * len(items)]
        return tuple(self.convert(item, types[i], now[i], f"{path}.{i}") for i, item in enumerate(items))


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
            parts += map(as_json, get_args(kind))
        else:
            parts.append(words.get(kind) or ("a list" if get_origin(kind) is tuple else "an object"))
    return " or ".join(parts)


def _members(declared: Any) -> Sequence[Any]:
    return get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"'{next(name for name in names if names.count(name) > 1)}' is there twice")
    return found
