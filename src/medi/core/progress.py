"""Progress on stderr: a bar with an estimate in a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Tick(Protocol):
    """Called with the number of steps done so far and a short remark (a loss, say)."""

    def __call__(self, done: int, remark: str = "") -> None:
        """Show it."""


class Reporter:
    """Shows how far a piece of work has come."""

    PLAIN_SECONDS = 10.0
    """Outside a terminal (a log file, CI) a line is written this often."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self._bar: Progress | None = None  # what is shown now: work inside work gets a line of the same display

    def say(self, message: str) -> None:
        """One line for the person at the terminal."""
        self.console.print(message, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[Tick]:
        """Show a bar for `total` steps; the value yielded is called after each. Bars may be inside one another."""
        if not self.console.is_terminal:
            yield self._plain(title, total)
            return
        with ExitStack() as shown:
            if self._bar is None:
                columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
                texts = (TextColumn("{task.description}"), *columns, TextColumn("{task.fields[remark]}"))
                self._bar = shown.enter_context(Progress(*texts, console=self.console, transient=True))
                shown.callback(setattr, self, "_bar", None)
            bar, task = self._bar, self._bar.add_task(title, total=total, remark="")
            shown.callback(bar.remove_task, task)
            yield lambda done, remark="": bar.update(task, completed=done, remark=remark)

    def _plain(self, title: str, total: int) -> Tick:
        start = shown = time.monotonic()

        def tick(done: int, remark: str = "") -> None:
            nonlocal shown
            now = time.monotonic()
            if done and now - shown >= self.PLAIN_SECONDS:
                shown = now
                left = (now - start) / done * (total - done)
                self.say(f"{title}: {done}/{total}, about {left:.0f} s left {remark}".rstrip())

        return tick


class Silent(Reporter):
    """Says nothing: for tests and for use as a library."""

    def say(self, message: str) -> None:
        """Drop the message."""

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[Tick]:
        """Ignore every step."""
        yield lambda done, remark="": None
