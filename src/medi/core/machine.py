"""The machine that work is done on, without torch."""

from __future__ import annotations

import os
import platform


def machine(processes: int = 1) -> str:
    """The processor in words, as stored with every result, and how many processes shared the work."""
    return f"{f'{processes} x ' if processes > 1 else ''}cpu ({platform.machine()}, {os.cpu_count() or 1} processors)"
