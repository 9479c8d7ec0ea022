"""What tests need to know of the system they run on."""

import os
import signal
import sys

import pytest

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has neither these signals nor these names")
SIGKILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def peak_megabytes() -> float:
    """The most memory this process has had so far."""
    resource = pytest.importorskip("resource", reason="Windows does not tell")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
