"""`medi bench rerun`: do a committed result again and compare."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from medi.bench.grid import METHODS_OWN, Run
from medi.bench.rows import read_rows
from medi.bench.run import other_origin, run_grid, settings_of
from medi.bench.setup import Setup
from medi.core.errors import InputError
from medi.core.progress import Reporter
from medi.core.settings import FROM
from medi.methods import method_of
from medi.presets import CPU, DEFAULT

COMPARED_SCORES = {"ACC": "acc", "NMI": "nmi", "ARI": "ari"}
COMPARED_OF_POOLS = COMPARED_SCORES | {"right lines": "acc_observed"}
JUDGED = ("ACC", "right lines")
"""Shares of items, which may differ as much as chance allows."""


@dataclass(frozen=True)
class Comparison:
    """A committed row beside its repetition."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    @property
    def scores(self) -> Mapping[str, str]:
        """The fields that are compared, by what they are called."""
        return COMPARED_SCORES if self.before.get("grouping", METHODS_OWN) == METHODS_OWN else COMPARED_OF_POOLS

    @property
    def same(self) -> bool:
        """Whether every score is the same to the last digit."""
        return all(self.before[name] == self.after[name] for name in self.scores.values())

    @property
    def agrees(self) -> bool:
        """Whether ACC, and of pools the right lines, differ by no more than half the 95 % interval of either ACC.

        A single draw has no interval.
        """
        width = max(row["acc_ci95"] or 0.0 for row in (self.before, self.after))
        shares = [name for title, name in self.scores.items() if title in JUDGED]
        return all(abs(self.before[name] - self.after[name]) <= width for name in shares)

    @property
    def text(self) -> str:
        """Both, line by line, and what to make of it."""
        lines = [f"{'':12}{'before':>12}{'now':>12}"]
        for title, name in self.scores.items():
            lines.append(f"{title:12}{100 * self.before[name]:12.3f}{100 * self.after[name]:12.3f}")
        for name in ("device", "torch", "version", "commit"):
            lines.append(f"{name:12}{self.before.get(name)} -> {self.after.get(name)}")
        lines += [f"Made with other {what} than before." for what in other_origin(self.before, self.after)]
        told = " or ".join(title for title in self.scores if title in JUDGED)
        if self.same:
            lines.append("The same to the last digit.")
        elif self.agrees:
            lines.append(f"Not the same digits; no difference in {told} is beyond ACC's 95 % interval over episodes.")
        else:
            lines.append(f"A difference in {told} is beyond ACC's 95 % interval over episodes.")
        return "\n".join(lines)


def read_row(text: str) -> dict[str, Any]:
    """The row that `FILE:LINE` names."""
    name, _, line = text.rpartition(":")
    if not (name and line.isascii() and line.isdecimal() and int(line) >= 1):
        raise InputError(f"{text}: name a row as FILE:LINE, such as results.jsonl:1; lines are counted from 1.")
    if not Path(name).is_file():
        raise InputError(f"{text}: there is no file {name}.")
    rows = read_rows(Path(name))
    if int(line) > len(rows):
        raise InputError(f"{text}: {name} has {len(rows)} lines.")
    row = rows[int(line) - 1]
    if "held_out" in row:
        raise InputError(f"{text} is a trial on held-out known classes: repeat it with `medi bench choose`.")
    if "diverged" in row:
        raise InputError(f"{text} has no scores to compare, as training diverged: name another row.")
    return row


def rerun(row: Mapping[str, Any], out: Path | None, device: torch.device, reporter: Reporter) -> Comparison:
    """Do a row's run again, in `out` or in a folder that is removed afterwards."""
    run = run_of(row, reporter)
    with TemporaryDirectory(prefix="medi-rerun-") as scratch:
        folder = Path(scratch) if out is None else out
        (again,) = run_grid([run], Setup(folder, row["episodes"], device, reporter))
    return Comparison(row, again)


def run_of(row: Mapping[str, Any], reporter: Reporter) -> Run:
    """The run of a row with the settings that the row stores.

    A row of an earlier version may have settings in another form; its preset is then taken as it is now, and that is
    said.
    """
    run = Run.of_row(dict(row))
    named = replace(run, changes=row.get("set", {}))
    presets = (*method_of(run.method).presets, DEFAULT, CPU)
    start = run.config if run.config in presets else DEFAULT
    for candidate in (named, replace(run, changes={**row.get("settings", {}), FROM: start})):
        with suppress(InputError):
            if settings_of(candidate) == row.get("settings"):
                return candidate
    if run.config not in presets:
        raise InputError(
            f"{run.method} no longer has the settings '{run.config}' of that row: check out commit {row.get('commit')}."
        )
    reporter.say(f"The row's settings are of an earlier version: {run.method}'s preset {run.config} of today is run.")
    return named
