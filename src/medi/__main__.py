"""`python -m medi`, and where the console script `medi` starts."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from medi.errors import STOPPED, Exit


def main() -> None:
    """Run the program; Ctrl-C ends it with 130 and one line, at whatever moment it comes."""
    for name in ("SIGINT", "SIGBREAK"):  # Windows has Ctrl-Break too, the only one that another program can send
        if number := getattr(signal, name, None):
            signal.signal(number, _interrupt)
    from medi.runtime.system import keep_freed_memory

    keep_freed_memory()
    from medi.cli import run

    run()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, except in the middle of an import.

    Nothing has begun then that could be lost, and compiled modules answer an exception there with crashes of their own.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            sys.stderr.write(STOPPED + "\n")
            sys.stderr.flush()
            os._exit(Exit.STOPPED)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
