"""What two installations of MEDI take: disk, seconds and memory from `pip install` to a report, in one run. Linux only.

    python benchmarks/footprint.py ce1ffb1=OLD/bin/python HEAD=NEW/bin/python --photos FOLDER [--install-seconds 119 72]
        [--rounds 3] [--demos 3] [--out results/discover/footprint.json]

An installation is a label, such as its commit, and its Python. Of FOLDER (one subfolder a class, sorted by name) 14
classes of 10 photos are known, and 5 photos of each of 12 further classes are novel: 200 in all, the same for both.

size     MB of all files in site-packages, pip's own among them.
first    `medi discover` with an empty cache, until the report is there.
second   the same again with `--force`: features are in the cache.
demo     `medi demo`, with an empty cache as well.

Each of them in a process of its own; the installations take turns, after one uncounted command each that brings their
files into memory. Gives wall-clock and processor seconds and peak memory: the median, and the least and the most of
all rounds, and what the second installation takes as a share of the first. On a busy machine, read the processor
seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from script import Parser, positive, run, write_json

from medi.core.errors import InputError
from medi.core.machine import machine
from medi.photos.folders import find_photos

KNOWN, KNOWN_EACH, NOVEL, NOVEL_EACH = 14, 10, 12, 5
PACKAGES = ("medi", "numpy", "scipy", "scikit-learn", "pillow", "onnxruntime", "torch")
ABOUT = f"""
import json, platform, sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
versions = {{"python": platform.python_version()}}
for name in {PACKAGES}:
    try:
        versions[name] = version(name)
    except PackageNotFoundError:
        versions[name] = None
files = [path for path in Path(sysconfig.get_path("purelib")).rglob("*") if path.is_file()]
print(json.dumps({{"versions": versions, "size MB": sum(path.stat().st_size for path in files) / 1e6}}))
"""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Not handed on: an installation is measured as it comes."""


def write_pool(photos: Path, folder: Path) -> None:
    """Copy the known and the novel photos; a name of a novel one says nothing but its class."""
    names = sorted(find_photos(photos, "--photos").subfolders)
    if len(names) < KNOWN + NOVEL:
        raise InputError(f"--photos {photos} has {len(names)} folders: give one with {KNOWN + NOVEL} classes.")
    for place, name in enumerate(names[: KNOWN + NOVEL]):
        known = place < KNOWN
        each = KNOWN_EACH if known else NOVEL_EACH
        paths = find_photos(photos / name, "--photos").paths[:each]
        if len(paths) < each:
            raise InputError(f"{photos / name} has {len(paths)} photos: give folders with at least {each}.")
        for number, path in enumerate(paths):
            target = f"known/{name}/{number}" if known else f"novel/{name}-{number}"
            copy = (folder / target).with_suffix(Path(path).suffix)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(photos / name / path, copy)


def taken(python: str, words: Sequence[object], folder: Path, cache: Path) -> dict[str, float]:
    """Seconds, processor seconds and peak memory of one command of an installation.

    Peak memory is that of the process and of those it started, at least what this script has: 60 MB.
    """
    environment = {key: value for key, value in os.environ.items() if key not in THREADS and key != "PYTHONPATH"}
    environment["MEDI_CACHE"] = str(cache)
    start = perf_counter()
    with (folder / "said").open("w+") as said:
        process = subprocess.Popen(
            [python, "-m", "medi", *map(str, words)], cwd=folder, env=environment, stdout=said, stderr=said
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{python} -m medi {' '.join(map(str, words))} failed:\n{said.read()[-2000:]}")
    print(
        f"{python} -m medi {words[0]}: {seconds:.1f} s, {used.ru_utime + used.ru_stime:.1f} s of processors",
        file=sys.stderr,
    )
    return {"seconds": seconds, "processor seconds": used.ru_utime + used.ru_stime, "peak MB": used.ru_maxrss / 1024}


def round_of(python: str, pool: Path) -> dict[str, dict[str, float]]:
    """A first run and a second one."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        words = ("discover", "--known", pool / "known", "--novel", pool / "novel", "--out", folder / "out")
        return {
            "first": taken(python, words, folder, folder / "cache"),
            "second": taken(python, (*words, "--force"), folder, folder / "cache"),
        }


def demo_of(python: str) -> dict[str, dict[str, float]]:
    """The demo once."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        return {"demo": taken(python, ("demo", "--out", folder / "demo"), folder, folder / "cache")}


def summary(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, list[float]]]:
    """Median, least and most of each figure of each command."""
    return {
        name: {
            figure: [round(f(one[name][figure] for one in rounds), 2) for f in (median, min, max)]
            for figure in rounds[0][name]
        }
        for name in rounds[0]
    }


def shares(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the second installation takes as a share of the first, by medians."""
    first, second = figures
    found: dict[str, Any] = {
        key: round(second[key] / first[key], 3) for key in ("size MB", "install seconds") if key in first
    }
    for name, of in first["commands"].items():
        found[name] = {figure: round(second["commands"][name][figure][0] / of[figure][0], 3) for figure in of}
    return found


def installation(text: str) -> tuple[str, str]:
    """A label and a Python that can be run, as the type of an argument."""
    label, _, python = text.partition("=")
    if not shutil.which(python):
        raise ValueError(f"{text} is not LABEL=PYTHON")
    return label, str(Path(python).absolute())


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("installations", nargs=2, type=installation, metavar="LABEL=PYTHON")
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--install-seconds", nargs=2, type=float, help="what pip took, where it was measured")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--demos", type=positive, default=3, help="rounds of the demo")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    pythons = dict(arguments.installations)
    rounds: dict[str, list[dict[str, dict[str, float]]]] = {label: [] for label in pythons}
    demos: dict[str, list[dict[str, dict[str, float]]]] = {label: [] for label in pythons}
    load = os.getloadavg()[0]
    with TemporaryDirectory() as temporary:
        pool = Path(temporary)
        write_pool(arguments.photos, pool)
        for python in pythons.values():
            words = ("discover", "--known", pool / "known", "--novel", pool / "novel", "--out", pool / "warm-up")
            taken(python, (*words, "--force"), pool, pool / "cache")
        for _ in range(arguments.rounds):
            for label, python in pythons.items():
                rounds[label].append(round_of(python, pool))
        for _ in range(arguments.demos):
            for label, python in pythons.items():
                demos[label].append(demo_of(python))
    figures: dict[str, Any] = {
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "load before": round(load, 2),
        "photos": {"known": KNOWN * KNOWN_EACH, "novel": NOVEL * NOVEL_EACH},
        "rounds": {"first": arguments.rounds, "second": arguments.rounds, "demo": arguments.demos},
        "installations": [],
    }
    for place, (label, python) in enumerate(pythons.items()):
        found = subprocess.run([python, "-c", ABOUT], capture_output=True, text=True, check=True).stdout
        about = {"label": label, **json.loads(found)}
        if arguments.install_seconds:
            about["install seconds"] = arguments.install_seconds[place]
        figures["installations"].append(about | {"commands": summary(rounds[label]) | summary(demos[label])})
    figures["shares"] = shares(figures["installations"])
    print(json.dumps(figures, indent=1))
    write_json(arguments.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
