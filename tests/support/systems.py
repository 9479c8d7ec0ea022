"""What tests need to know of the system they run on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither these signals nor these names")
SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def peak_megabytes() -> float:
    """The most memory this process has had so far."""
    resource = pytest.importorskip("resource", reason="Windows does not tell")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


@contextmanager
def disk_of(size: str, at: Path) -> Iterator[Path]:
    """A file system of that size, where we may mount one."""
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at]
    if os.name == "nt" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)
