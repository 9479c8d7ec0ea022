"""Whether a benchmark's files are whole, partial, damaged or absent.

A check is a reading: what it lets pass, `benchmarks.load` takes, and what that would refuse it calls damaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from medi.data.facts import Facts
from medi.data.formats import READERS, DamagedFile
from medi.data.store import path_of


class State(StrEnum):
    """What a file, or a benchmark, is found to be."""

    WHOLE = "whole"
    PARTIAL = "partial"
    DAMAGED = "damaged"
    ABSENT = "absent"


@dataclass(frozen=True)
class FileState:
    """A file of a benchmark."""

    path: Path  # where it lies, or would lie
    expected: int  # records of the whole file
    records: int = 0  # whole records found
    fault: DamagedFile | None = None  # the error that refuses a damaged file, None for any other

    @property
    def state(self) -> State:
        """What the file is found to be; readers refuse a file without records, so none means that there is no file."""
        if self.fault:
            return State.DAMAGED
        if not self.records:
            return State.ABSENT
        return State.WHOLE if self.records >= self.expected else State.PARTIAL


def check(facts: Facts) -> list[FileState]:
    """Read every file of a benchmark; a generated one has none."""
    found = []
    for file, expected in facts.records.items():
        path, records, fault = path_of(facts, file), 0, None
        if path.exists():
            try:
                records = len(READERS[facts.name](facts, path))
            except DamagedFile as error:
                fault = error
        found.append(FileState(path, expected, records, fault))
    return found


def summary(files: Sequence[FileState]) -> State:
    """One word for a whole benchmark: damaged if any file is, absent or whole if all are, else partial."""
    states = {file.state for file in files}
    if State.DAMAGED in states:
        return State.DAMAGED
    return states.pop() if len(states) == 1 else State.PARTIAL
