"""The machine that work is done on, without torch: what it is, and how many threads its linear algebra takes."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


def machine(processes: int = 1) -> str:
    """The processor in words, as stored with every result, and how many processes shared the work."""
    return f"{f'{processes} x ' if processes > 1 else ''}cpu ({platform.machine()}, {os.cpu_count() or 1} processors)"


@contextmanager
def one_thread() -> Iterator[None]:
    """Let linear algebra use one thread: many small operations are done faster by one that waits for no other."""
    with threadpool_limits(1):
        yield
