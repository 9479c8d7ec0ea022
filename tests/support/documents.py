"""The code blocks of README.md, CONTRIBUTING.md and docs/: which there are, and how they are run.

A block that no test can run has a comment before it, `<!-- not run: why -->`. All others are run page by page, in
order, in one folder: `$` lines of `console` one by one, `python` as a program, or as a file where the first line is
`# name.py`. Lines that are shown below a command, or as `text` below a program, are what it printed.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(r"(?:<!-- not run: (?P<why>[^\n]+?) -->\n+)?^```(?P<kind>[\w-]*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block; `why` says why it is not run, None where it is."""

    page: str
    line: int
    kind: str
    text: str
    why: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def steps(self) -> Iterator[tuple[str, list[str]]]:
        """Commands of a console block, each with the lines that it is shown to print."""
        text = self.text.replace("\\\n", " ")
        for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, *printed = step.splitlines()
            yield command, [line for line in printed if line.strip()]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            str(page.relative_to(ROOT)),
            text[: found.start("kind")].count("\n") + 1,
            *found.group("kind", "text", "why"),
        )
        for found in _BLOCK.finditer(text)
    ]


def words_of(command: str) -> list[str]:
    return shlex.split(command, comments=True)


def run_page(page: Path, medi: Callable[..., str]) -> None:
    """Run what is to be run of a page, in the current folder; `medi` runs the program and returns what it prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page):
        if block.why is not None:
            continue
        if block.kind == "python":
            file = re.match(r"# (\w+\.py)\n", block.text)
            if file:
                Path(file[1]).write_text(block.text)
            else:
                with redirect_stdout(StringIO()) as output:
                    exec(compile(block.text, str(block), "exec"), names)
                printed = output.getvalue()
        elif block.kind == "text" and printed:
            check_printed(block, "the program above", block.text.splitlines(), printed)
            printed = ""
        elif block.kind == "console":
            for command, expected in block.steps():
                check_printed(block, command, expected, run_command(command, medi))


def run_command(command: str, medi: Callable[..., str]) -> str:
    words = words_of(command)
    if words[0] == "medi":
        return medi(*words[1:])
    if words[0] == "python":
        command = command.replace("python", shlex.quote(sys.executable), 1)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def check_printed(block: Block, command: str, expected: list[str], printed: str) -> None:
    """Each line that is shown was printed, whatever the numbers in it; … stands for anything."""
    lines = printed.splitlines()
    for line in expected:
        pattern = re.escape(line.strip()).replace("…", ".*")
        pattern = re.sub(r"\d+", r"\\d+", re.sub(r"(\\ )+", r"\\s+", pattern))
        assert any(re.fullmatch(pattern, one.strip()) for one in lines), (
            f"{block}: `{command}` does not print\n{line}\nbut\n{printed}"
        )
