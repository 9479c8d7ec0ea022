"""Settings that are no preset: candidates from a file, and `--set field=value`.

Both say what differs from a preset, as JSON: `{"from": "default", "network": "conv4", "schedule": {"steps": 100}}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from medi.core.errors import InputError
from medi.core.settings import FROM, Changes, as_json, merge, read_changes
from medi.presets import DEFAULT


class NamedSettings(NamedTuple):
    """What a run's `config` stands for: a preset's name or a candidate's, and what differs from it.

    `source` says where the changes are from: errors begin with it.
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
    found = read_changes(path, "write it as `medi bench choose --help` shows.")
    return [
        NamedSettings(name, {FROM: DEFAULT} | changes, f"{path}, candidate '{name}'") for name, changes in found.items()
    ]


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
                    f"--set {assignment}: {parent} is set to {as_json(place)} already; leave one of them out."
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
            found.append(f"{path}{name}={as_json(value)}")
    return found
