"""Pools of photos: does memory stay flat from 10,000 to 100,000, and what does a second process bring?

    python benchmarks/pool.py [--sizes 10000,30000,100000] [--only assign,known,novel,pixels,wide,…] [--out FILE.json]

assign     `medi assign` over so many generated photos (32 x 32 PNG, 1 kB, all different), nothing cached; and again.
known      `medi discover` with so many known photos and 200 novel ones.
novel      `medi discover` with 1,000 known photos and so many novel ones.
pixels     `known` with a network trained on the photos (`--encoder conv4 --method mp`): their pixels are in memory.
wide       `known` with 1,280 features a photo, as many as the default encoder has, made up and cached beforehand.
processes  `medi assign` over 512 photos with the default encoder on one process and on two (torchrun), a thread each.

The encoder of the first three is a random projection of the pixels to 64 numbers, the cheapest there is, so that the
figures show everything else. Every command is a process of its own with one thread; `command.py` says how it is
measured. On a busy machine, read the processor seconds. Figures in FILE.json that are not measured again stay in it.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import command
import numpy as np
import torch
from PIL import Image
from script import Parser, positive, read_json, run, some_of, write_json

import medi
from medi.core.progress import Silent
from medi.discover.model_folder import save_model
from medi.grouping.class_model import ClassModel
from medi.grouping.engine import Anchors
from medi.grouping.moves import Places
from medi.grouping.recogniser import Recogniser
from medi.grouping.recognition import Recognition, curve
from medi.grouping.representation import Representation
from medi.photos.cache import PhotoCache
from medi.photos.encode_folder import SHARD
from medi.photos.encoders import DEFAULT_ENCODER, Encoder, load_encoder

PARTS = ["assign", "known", "novel", "pixels", "wide", "processes"]
CLASSES, OTHERS = 20, 10
"""Classes of the pool, and of the photos on the other side."""


def write_photos(folder: Path, numbers: range, classes: range) -> Path:
    """Photos of patterns of colours, one pattern and one folder a class, with noise: no two are the same."""
    patterns = np.random.default_rng(0).integers(0, 256, (CLASSES + OTHERS, 4, 4, 3))
    for number in numbers:
        generator = np.random.default_rng(number)
        label = classes[number % len(classes)]
        coarse = patterns[label] + generator.normal(0, 30, (4, 4, 3))
        pixels = coarse.repeat(8, 0).repeat(8, 1) + generator.integers(-3, 4, (32, 32, 1))
        path = folder / f"class {label:02}" / f"{number:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(path, compress_level=1)
    return folder


def make_model(folder: Path, encoder: Encoder, representation: Representation) -> Path:
    """A model of noise: recognising with it takes as long as with any other."""
    items = np.random.default_rng(0).random((3 * CLASSES, *encoder.shape), np.float32)
    items = items if encoder.dtype == np.float32 else (255 * items).astype(np.uint8)
    representation = representation.framed(items)
    points = representation(items)
    known = Anchors(points.reshape(3, CLASSES, -1).mean(0), np.full(CLASSES, 3.0))
    recogniser = Recogniser(
        representation,
        Places.of(points[:5], np.arange(5), known),
        tuple(f"class {label:02}" for label in range(CLASSES)),
        ClassModel(0.5, 20.0),
        Recognition(0.5, 0.0, 0.0, 0.0, curve(np.arange(-5.0, 5.0))),
        np.zeros(5 + CLASSES + 1),
        calibrated=False,
    )
    save_model(folder, recogniser, encoder)
    return folder


def projection(folder: Path) -> Path:
    """A model whose encoder projects pixels at random."""
    matrix = np.random.default_rng(0).standard_normal((3072, 64))
    return make_model(folder, load_encoder("conv4", "cpu"), Representation("random", (3, 32, 32), matrix=matrix))


def environment(folder: Path) -> dict[str, str]:
    """One thread, and a cache of our own."""
    return {"MEDI_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}


def assign(folder: Path, pool: Path) -> dict[str, Any]:
    """From nothing, and with features kept."""
    words = ("assign", "--model", projection(folder / "model"), "--images", pool, "--out", folder / "new.csv")
    first = command.run_medi(*words, environment=environment(folder))
    again = command.run_medi(*words, "--force", environment=environment(folder))
    return {"rows": rows_of(folder / "new.csv"), "first": first, "again": again}


def rows_of(table: Path) -> int:
    """Lines of a CSV file below its heading."""
    return len(table.read_bytes().splitlines()) - 1


def known(folder: Path, pool: Path) -> dict[str, Any]:
    """The pool is known, nothing kept."""
    other = write_photos(folder / "other", range(10**6, 10**6 + 200), range(CLASSES, CLASSES + 5))
    return discover(folder, pool, other, 4 * 64, "--encoder", projection(folder / "model"))


def novel(folder: Path, pool: Path) -> dict[str, Any]:
    """The pool is novel, nothing kept."""
    other = write_photos(folder / "other", range(10**6, 10**6 + 1000), range(CLASSES, CLASSES + OTHERS))
    return discover(folder, other, pool, 4 * 64, "--encoder", projection(folder / "model"))


def pixels(folder: Path, pool: Path) -> dict[str, Any]:
    """The pool is known and a network is trained on it."""
    other = write_photos(folder / "other", range(10**6, 10**6 + 200), range(CLASSES, CLASSES + 5))
    return discover(folder, pool, other, 3 * 32 * 32, "--encoder", "conv4", "--method", "mp")


def discover(folder: Path, known: Path, novel: Path, size: int, *words: object) -> dict[str, Any]:
    """`medi discover`, and what it wrote; `size` is that of a photo's features in bytes."""
    out = folder / "out"
    figures = command.discover(known, novel, out, "--device", "cpu", *words, environment=environment(folder))
    photos = sum(1 for pool in (known, novel) for _ in pool.rglob("*.png"))
    return figures | {
        "rows": rows_of(out / "clusters.csv"),
        "MB of features": size * photos / 1e6,
        "MB of report": (out / "report.html").stat().st_size / 1e6,
    }


def wide(folder: Path, known: int, novel: int = 200) -> dict[str, Any]:
    """The default encoder's features, made up: the photos are never decoded."""
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(CLASSES + 5, 1280)).astype(np.float32)
    cache = PhotoCache(load_encoder(DEFAULT_ENCODER, "cpu").identity, Silent(), folder / "cache")
    rows = []
    for i in range(known + novel):
        label = i % CLASSES if i < known else CLASSES + i % 5
        path = folder / ("novel" if i >= known else f"known/class {label:02}") / f"{i:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2), (i % 256, i // 256 % 256, i // 65536)).save(path)
        features = np.maximum(0, centres[label] + 0.8 * generator.standard_normal(1280, np.float32))
        rows.append((sha256(path.read_bytes()).digest(), features.astype(np.float32).tobytes()))
        if len(rows) == SHARD or i == known + novel - 1:
            cache.put(rows)
            rows.clear()
    return discover(folder, folder / "known", folder / "novel", 4 * 1280)


def processes(folder: Path, size: int, repeats: int = 2) -> dict[str, Any]:
    """Wall-clock and processor seconds of one process and of two, in turns."""
    pool = write_photos(folder / "new", range(size), range(CLASSES))
    encoder = load_encoder(DEFAULT_ENCODER, "cpu")
    model = make_model(folder / "model", encoder, Representation("encoder", encoder.shape))
    figures: dict[str, Any] = {}
    tables = []
    for repeat in range(repeats):
        for count in (1, 2):
            out = folder / f"{count}.{repeat}.csv"
            shutil.rmtree(folder / "cache", ignore_errors=True)
            torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(count)]  # alone it takes all cores
            launch = [sys.executable, *(torchrun if count > 1 else []), "-m", "medi"]
            words = ["assign", "--model", str(model), "--images", str(pool), "--out", str(out)]
            start, before, load = perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN), os.getloadavg()[0]
            subprocess.run([*launch, *words], env=os.environ | environment(folder), check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            spent = {"seconds": perf_counter() - start, "processor seconds": used, "load before": load}
            figures.setdefault(f"{count} processes", []).append(spent)
            tables.append(out.read_bytes())
    return figures | {"same tables": len(set(tables)) == 1}


def sizes(text: str) -> list[int]:
    """Numbers separated by commas, as the type of an argument."""
    return [positive(part) for part in text.split(",")]


def largest_pool(figures: dict[str, Any]) -> str:
    """A sentence: peak memory and processor seconds with most photos."""
    size = max(map(int, figures["assign"]))
    runs = {
        "`assign`": figures["assign"][str(size)]["first"],
        "`discover` with so many known": figures["known"][str(size)],
        "with so many novel": figures["novel"][str(size)],
    }
    said = [f"{what} {run['peak MB']:.0f} MB, {run['processor seconds']:.0f} s" for what, run in runs.items()]
    return f"{size:,} photos: {'; '.join(said)}.\n"


def memory_table(figures: dict[str, Any]) -> str:
    """Markdown: peak memory and processor seconds by the number of photos."""
    sizes = sorted(map(int, figures["assign"]))
    lines = {
        "`assign`": [figures["assign"][str(size)]["first"] for size in sizes],
        "`assign` again, features kept": [figures["assign"][str(size)]["again"] for size in sizes],
        "`discover`, so many known, 200 novel": [figures["known"][str(size)] for size in sizes],
        "`discover`, 1,000 known, so many novel": [figures["novel"][str(size)] for size in sizes],
        "`discover --encoder conv4`, so many known, 200 novel": [figures["pixels"][str(size)] for size in sizes],
        "`discover`, so many known with 1,280 features each": [figures["wide"][str(size)] for size in sizes],
    }
    head = ["| photos | " + " | ".join(f"{size:,}" for size in sizes) + " |", "| --- |" + " --- |" * len(sizes)]
    rows = [
        f"| {name} | " + " | ".join(f"{run['peak MB']:.0f} MB, {run['processor seconds']:.0f} s" for run in runs) + " |"
        for name, runs in lines.items()
    ]
    return "\n".join(head + rows)


def process_table(figures: dict[str, Any]) -> str:
    """Markdown: one process and two, mean and smallest to largest."""
    ((photos, runs),) = figures["processes"].items()
    rows = [
        f"| `assign`, {photos} photos, default encoder | 1 process | 2 processes | ratio |",
        "| --- | --- | --- | --- |",
    ]
    for name in ("seconds", "processor seconds"):
        one, two = ([run[name] for run in runs[f"{count} processes"]] for count in (1, 2))
        cells = [f"{fmean(values):.0f} ({min(values):.0f} to {max(values):.0f})" for values in (one, two)]
        rows.append(f"| {name} | {cells[0]} | {cells[1]} | {fmean(two) / fmean(one):.2f} |")
    return "\n".join(rows)


def main(parser: Parser) -> None:
    """Measure, and write after every figure."""
    parser.add_argument("--sizes", type=sizes, default="10000,30000,100000", help="numbers of photos")
    parser.add_argument("--only", type=some_of(PARTS), default=PARTS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    figures: dict[str, Any] = read_json(arguments.out) if arguments.out and arguments.out.exists() else {}
    figures |= {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "version": medi.__version__,
        "threads a process": 1,
    }
    wanted = arguments.only

    def note(name: str, size: int, found: dict[str, Any]) -> None:
        figures.setdefault(name, {})[str(size)] = found
        print(json.dumps({name: {size: found}}, indent=1), flush=True)
        write_json(arguments.out, figures)

    of_pool = {"assign": assign, "known": known, "novel": novel, "pixels": pixels}
    for size in arguments.sizes:
        names = [name for name in of_pool if name in wanted]
        with TemporaryDirectory() as temporary:
            pool = write_photos(Path(temporary), range(size if names else 0), range(CLASSES))
            for name in names:
                with TemporaryDirectory() as folder:
                    note(name, size, of_pool[name](Path(folder), pool))
        if "wide" in wanted:
            with TemporaryDirectory() as folder:
                note("wide", size, wide(Path(folder), size))
    if "processes" in wanted:
        with TemporaryDirectory() as folder:
            note("processes", 512, processes(Path(folder), 512))


if __name__ == "__main__":
    run(main, __doc__)
