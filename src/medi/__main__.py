"""`python -m medi`, and where the console script `medi` starts."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from medi.core.errors import STOPPED, Exit

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def main() -> None:
    """Run the program; Ctrl-C ends it with 130 and one line, at whatever moment it comes."""
    _on_interrupt(_interrupt)
    sys.unraisablehook = _unraisable
    try:
        from medi.core.system import keep_freed_memory, prefer_one_thread

        keep_freed_memory()
        prefer_one_thread()
        from medi.cli.main import run

        run()
    except KeyboardInterrupt:  # beside the commands, which say it themselves
        _stop()
    except SystemExit as end:
        _on_interrupt(signal.SIG_IGN)  # all is done
        if end.code != Exit.STOPPED:
            raise
        atexit._run_exitfuncs()
        os._exit(Exit.STOPPED)  # threads may be in the middle of a photo, which Python and ONNX Runtime do not bear


def _on_interrupt(handler: signal._HANDLER) -> None:
    for name in ("SIGINT", "SIGBREAK"):  # Windows has Ctrl-Break too, the only one that another program can send
        if number := getattr(signal, name, None):
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, except in the middle of an import.

    Nothing has begun then that could be lost, and compiled modules answer an exception there with crashes of their own.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _stop()
        frame = frame.f_back
    raise KeyboardInterrupt


def _unraisable(unraisable: UnraisableHookArgs) -> None:
    """Stop where a KeyboardInterrupt came in a finaliser or a callback, which would swallow it."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _stop()
    sys.__unraisablehook__(unraisable)


def _stop() -> None:
    """End at once, as if killed: what is on the disk is whole."""
    if sys.stderr is not None:
        sys.stderr.write(STOPPED + "\n")
        sys.stderr.flush()
    os._exit(Exit.STOPPED)


if __name__ == "__main__":
    main()
