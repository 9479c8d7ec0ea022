"""`medi` in a process of its own, and what that took: for `pool.py`, `reading.py` and `review.py`. Linux only.

Peak memory is VmHWM, which begins anew with a program. ru_maxrss does not: it is never below that of the process that
started the program, and a benchmark has torch and a dataset in its memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MEASURE = """
import json, resource, sys, time
start = time.perf_counter()
from medi.__main__ import main
try:
    main()
finally:
    seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    print(json.dumps({"seconds": seconds, "processor seconds": used.ru_utime + used.ru_stime,
                      "peak MB": int(status["VmHWM"].split()[0]) / 1024}), file=sys.stderr)
"""


def run_medi(*words: object, environment: Mapping[str, str]) -> dict[str, float]:
    """Seconds, processor seconds and peak memory of one command, and the machine's load when it started.

    Args:
        words: What follows `medi` on the command line.
        environment: Variables beside those of this process.

    Raises:
        RuntimeError: With what the command said, where it failed.
    """
    load = os.getloadavg()[0]
    command = [sys.executable, "-c", MEASURE, *map(str, words)]
    done = subprocess.run(command, env=os.environ | dict(environment), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"medi {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stderr.splitlines()[-1])
    return figures | {"load before": load}


def discover(known: Path, novel: Path, out: Path, *words: object, environment: Mapping[str, str]) -> dict[str, Any]:
    """What `medi discover` took, the seconds of its parts, and the groups that it found."""
    folders = ("--known", known, "--novel", novel, "--out", out)
    figures = run_medi("discover", *folders, *words, environment=environment)
    facts = json.loads((out / "discovery.json").read_text())
    return figures | {"parts": facts["seconds"], "groups": facts["n_classes"]}
