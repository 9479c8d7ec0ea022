"""How much longer does a command take beside a busy process than alone? Linux only.

    python benchmarks/beside.py --photos FOLDER [--only demo,discover] [--rounds 3] [--out results/speed/beside.json]

demo      `medi demo --method mp`, which is `make demo`.
discover  `medi discover` with an empty cache on 200 photos of FOLDER, drawn as `footprint.py` draws them.

The busy process is a loop that never waits; it ends with the command. Alone and beside it take turns. Gives seconds,
processor seconds, peak memory and the machine's load of each run, and the median seconds beside it as a multiple of
those alone: at most 1.5 is what we want on two cores. Alone means alone: on a machine that does other work, the
multiple of processor seconds is all that can be read; it shows whether threads spin while they wait for each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from command import run_medi
from footprint import THREADS, write_pool
from script import Parser, positive, run, some_of, write_json

from medi.core.machine import machine

PARTS = ("demo", "discover")
BUSY = "import time\nend = time.monotonic() + 1800\nwhile time.monotonic() < end: pass"
"""Ends by itself too, should nobody be there to end it."""


@contextmanager
def busy() -> Iterator[None]:
    """Beside a process that takes all the time of a core that it can get."""
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def taken(part: str, pool: Path) -> dict[str, float]:
    """What one command took, with an empty cache."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words: Sequence[object] = ("demo", "--method", "mp", "--out", folder / "demo")
        if part == "discover":
            words = ("discover", "--known", pool / "known", "--novel", pool / "novel", "--out", folder / "out")
        return run_medi(*words, environment={"MEDI_CACHE": str(folder / "cache")})


def times(runs: Mapping[str, Sequence[Mapping[str, float]]], figure: str) -> float:
    """The median of a figure beside the busy process, as a multiple of that alone."""
    alone, beside = (median(one[figure] for one in runs[way]) for way in ("alone", "beside"))
    return round(beside / alone, 2)


def measure(part: str, pool: Path, rounds: int) -> dict[str, object]:
    """All runs of a command, and the multiples."""
    runs: dict[str, list[dict[str, float]]] = {"alone": [], "beside": []}
    for _ in range(rounds):
        runs["alone"].append(taken(part, pool))
        with busy():
            runs["beside"].append(taken(part, pool))
        print({way: {key: round(value, 1) for key, value in all_[-1].items()} for way, all_ in runs.items()})
    return {"times": {figure: times(runs, figure) for figure in ("seconds", "processor seconds")}, **runs}


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--only", type=some_of(PARTS), default=list(PARTS))
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    for name in THREADS:  # a program is measured as it comes
        os.environ.pop(name, None)
    figures: dict[str, object] = {"machine": machine(), "date": datetime.now(UTC).date().isoformat()}
    with TemporaryDirectory() as temporary:
        pool = Path(temporary)
        write_pool(arguments.photos, pool)
        for part in arguments.only:
            taken(part, pool)  # uncounted: it brings files into memory
            figures[part] = found = measure(part, pool, arguments.rounds)
            print(part, found["times"])
    write_json(arguments.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
