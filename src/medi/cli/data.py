"""`medi data`: what benchmarks there are, download them, check what is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from medi.cli.options import Json
from medi.core.errors import InputError
from medi.core.terminal import say, strict_json
from medi.data.facts import BENCHMARKS, Facts, facts_of
from medi.data.store import data_folder, path_of

if TYPE_CHECKING:
    from medi.data.check import FileState

GENERATED = "generated"

app = typer.Typer(help="Benchmark data: list, fetch, check.", no_args_is_help=True)

NAMES = typer.Argument(metavar="NAME", help="Benchmarks, or `all`.", show_default=False)


@app.command("list")
def list_benchmarks(as_json: Json = False) -> None:
    """List the benchmarks and whether they are at hand."""
    if as_json:
        listed = [
            {
                "name": facts.name,
                "title": facts.title,
                "known": facts.known or None,  # a generated set is counted when it is built
                "novel": facts.novel or None,
                "way": facts.way,
                "megabytes": sum(archive.megabytes for archive in facts.archives),
                "at_hand": _at_hand(facts),
            }
            for facts in BENCHMARKS.values()
        ]
        typer.echo(strict_json({"folder": str(data_folder()), "benchmarks": listed}))
        return
    table = Table("name", "title", box=None, pad_edge=False)
    for heading in ("known", "novel", "way", "download"):
        table.add_column(heading, justify="right")
    table.add_column("at hand")
    for facts in BENCHMARKS.values():
        size = f"{sum(archive.megabytes for archive in facts.archives)} MB"
        table.add_row(
            facts.name,
            facts.title,
            str(facts.known or "–"),
            str(facts.novel or "–"),
            str(facts.way),
            "–" if facts.generated else size,
            _at_hand(facts),
        )
    console = Console()
    console.print(table)
    say(console, f"\nBenchmark data lies in {data_folder()} (set MEDI_DATA to choose another folder).")


def _at_hand(facts: Facts) -> str:
    """Whether the files exist, at a glance: what is in them is for `medi data check` to say."""
    there = [path_of(facts, file).exists() for file in facts.records]
    if facts.generated:
        return GENERATED
    return "yes" if all(there) else "in part" if any(there) else "no"


@app.command("fetch")
def fetch_benchmarks(names: Annotated[list[str], NAMES]) -> None:
    """Download benchmarks; what is there already is left alone, unless it is damaged."""
    from medi.core.progress import Reporter
    from medi.data.download import fetch

    console = Console()
    for facts in _chosen(names):
        if facts.generated:
            say(console, f"{facts.name}: nothing to fetch, it is generated")
            continue
        folder = data_folder() / facts.folder
        if fetch(facts, Reporter()):
            say(console, f"{facts.name}: fetched into {folder} ({facts.licence})")
        else:
            say(console, f"{facts.name}: nothing to fetch, it is in {folder} (delete that to fetch it anew)")


@app.command("check")
def check_benchmarks(names: Annotated[list[str] | None, NAMES] = None, as_json: Json = False) -> None:
    """Say of each benchmark whether it is whole, partial, damaged or absent."""
    from medi.data.check import check

    console, documents, faults = Console(), [], []
    if not as_json:
        say(console, f"In {data_folder()}:")
    for facts in _chosen(names or ["all"]):
        files = check(facts)
        faults += [file.fault for file in files if file.fault]
        described = [
            {"path": str(file.path), "state": file.state, "records": file.records, "expected": file.expected}
            | {"why": file.fault.why if file.fault else None}
            for file in files
        ]
        documents.append({"name": facts.name, "state": _state(files), "files": described})
        if not as_json:
            _tell(console, facts, files)
    if as_json:
        typer.echo(strict_json({"folder": str(data_folder()), "benchmarks": documents}))
    if faults:
        total = f" (Damaged files in all: {len(faults)}.)" if len(faults) > 1 else ""
        raise InputError(f"{faults[0]}{total}") from faults[0]


def _state(files: Sequence[FileState]) -> str:
    """One word for a benchmark; a generated one has no files."""
    from medi.data.check import summary

    return summary(files) if files else GENERATED


def _tell(console: Console, facts: Facts, files: Sequence[FileState]) -> None:
    """A line of a benchmark, and of each file where they are not all whole or absent."""
    state = _state(files)
    say(console, f"{facts.name}: {state}{_counts(files)}")
    if state in ("partial", "damaged"):
        for file in files:
            why = f", {file.fault.why}" if file.fault else ""
            say(console, f"  {file.path.name}: {file.state}{_counts([file])}{why}")


def _counts(files: Sequence[FileState]) -> str:
    found, expected = sum(file.records for file in files), sum(file.expected for file in files)
    return f", {found:,} of {expected:,} records" if found else ""


def _chosen(names: Sequence[str]) -> list[Facts]:
    """The benchmarks named, with spaces or commas between them; `all` names every one."""
    named = [name for argument in names for name in argument.split(",") if name]
    if not named:
        raise InputError(f"no benchmark is named: give some of {', '.join(BENCHMARKS)}, or all.")
    return [facts_of(name) for name in (BENCHMARKS if "all" in named else dict.fromkeys(named))]
