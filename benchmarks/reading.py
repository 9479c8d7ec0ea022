"""How long `medi discover` takes from photos to report, and what its choices of speed are worth.

    python benchmarks/reading.py [--only whole,reading,…] [--threads 2] [--photos 400] [--out FILE.json]

whole    1,000 known photos of 20 classes and 50 novel ones of 5, 500 x 400 JPEG, made of CIFAR-100 images enlarged
         and grained: a first run (nothing cached), a second with another --classes, a third with another --method.
reading  photos a second from files to cached features, in float32 and in 8-bit integers.
integers what 8-bit integers cost in ACC, the number of groups given.
cold     so many known photos (--photos) that were never read, stopped by Ctrl-C on the way and continued.
grouping 1,000 known items of 20 classes and 50, 500 and 4,000 novel ones, made-up features of 1,280 numbers.

Needs CIFAR-100 (`medi data fetch cifar100`). Gives wall-clock and processor seconds and the machine's load; on a busy
machine, read the processor seconds. `command.py` says how commands are measured.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time, sleep
from typing import Any

import command
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from script import Parser, positive, run, some_of, write_json
from sklearn.metrics.pairwise import cosine_similarity
from threadpoolctl import threadpool_limits
from torch import Tensor

from medi.core.progress import Silent
from medi.core.workplace import Workplace
from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.data.items import Items
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.metrics import acc as score
from medi.nn.devices import describe_device
from medi.photos.cache import PhotoCache
from medi.photos.decode import Cut, decoding, read_photo
from medi.photos.encode_folder import read_photos
from medi.photos.encoders import DEFAULT_ENCODER, INT8, load_encoder
from medi.photos.folders import find_photos

PARTS = ["whole", "reading", "integers", "grouping", "cold"]
SIZE = (500, 400)


def photo(pixels: Tensor, generator: np.random.Generator) -> Image.Image:
    """A JPEG-sized photo of a small image (3, h, w): enlarged, with grain so that it compresses like one."""
    image = Image.fromarray(pixels.permute(1, 2, 0).numpy()).resize(SIZE, Image.Resampling.BICUBIC)
    grained = np.asarray(image, dtype=np.int16) + generator.integers(-6, 7, (SIZE[1], SIZE[0], 1), dtype=np.int16)
    return Image.fromarray(np.clip(grained, 0, 255).astype(np.uint8))


def write_photos(images: ImageSet, classes: Sequence[int], each: int, place: Callable[[str, int], Path]) -> None:
    """The first photos of some classes."""
    generator = np.random.default_rng(0)
    for c in classes:
        for number, index in enumerate((images.labels == c).nonzero().squeeze(1)[:each].tolist()):
            path = place(images.class_names[c], number)
            path.parent.mkdir(parents=True, exist_ok=True)
            photo(images.images[index], generator).save(path, quality=90)


def discover(folder: Path, out: str, threads: int, *more: str) -> dict[str, Any]:
    """One `medi discover` of the folders `known` and `novel`."""
    folders = folder / "known", folder / "novel", folder / out
    return command.discover(*folders, *more, environment=environment(folder, threads))


def environment(folder: Path, threads: int) -> dict[str, str]:
    """So many threads, and a cache of our own."""
    return {"MEDI_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": str(threads)}


def whole(folder: Path, threads: int) -> dict[str, Any]:
    """From nothing, and again."""
    benchmark = load("cifar100")
    known, novel = benchmark.known, benchmark.novel
    write_photos(known, range(20), 50, lambda name, i: folder / "known" / name / f"{i}.jpg")
    write_photos(novel, range(5), 10, lambda name, i: folder / "novel" / f"{name}-{i}.jpg")
    size = sum(path.stat().st_size for path in folder.rglob("*.jpg")) / 1050
    return {
        "kB a photo": size / 1000,
        "first run": discover(folder, "first", threads),
        "another --classes": discover(folder, "second", threads, "--classes", "5"),
        "another --method": discover(folder, "third", threads, "--method", "kmeans"),
    }


def reading(folder: Path, photos: int, rounds: int = 2) -> dict[str, Any]:
    """Photos a second from files to cached features by each engine, the best of some rounds taken in turns."""
    images = load("cifar100").known
    write_photos(images, range(8), photos // 8, lambda name, i: folder / "photos" / name / f"{i}.jpg")
    found = find_photos(folder / "photos", "the photos of")
    count = len(found.paths)
    engines, cpu = {name: load_encoder(name, "cpu") for name in (DEFAULT_ENCODER, INT8)}, process_time
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    features = {}
    for number in range(rounds):
        for name, encoder in engines.items():
            cache = PhotoCache(f"{number}-{name}", Silent(), folder / "cache")
            start, before = perf_counter(), cpu()
            features[name] = read_photos(found, encoder, cache, Silent()).arrays
            figures[name].append((count / (perf_counter() - start), 1000 * (cpu() - before) / count))
    best = {name: (max(f for f, _ in found), min(c for _, c in found)) for name, found in figures.items()}
    exact = features[DEFAULT_ENCODER]
    return {
        name: {
            "photos a second": fastest,
            "cpu ms a photo": least,
            "times float32": fastest / best[DEFAULT_ENCODER][0],
            "largest difference": float(np.abs(features[name] - exact).max()),
            "mean cosine": float(
                np.diag(cosine_similarity(features[name] - exact.mean(0), exact - exact.mean(0))).mean()
            ),
        }
        for name, (fastest, least) in best.items()
    }


def integers(draws: int = 12) -> dict[str, Any]:
    """ACC in percent with features in float32 and in 8-bit integers: 20 known classes x 30, 10 novel ones x 5."""
    benchmark = load("cifar100")
    known = benchmark.known.of_classes(range(20))
    sets = {"known": _some_of_each(known, 30), "novel": _some_of_each(benchmark.novel, 20)}
    squares = {name: _squares(images) for name, images in sets.items()}
    acc: dict[str, list[float]] = {}
    for name in (DEFAULT_ENCODER, INT8):
        encoder = load_encoder(name, "cpu")
        points = {
            key: np.concatenate([encoder.encode(part) for part in np.split(all_, range(8, len(all_), 8))])
            for key, all_ in squares.items()
        }
        taught = Items(points["known"], sets["known"].labels.numpy(), sets["known"].class_names)
        for draw in range(draws):
            seeded = np.random.default_rng(draw)
            classes = seeded.choice(benchmark.novel.n_classes, 10, replace=False)
            items = np.concatenate([seeded.choice(20, 5, replace=False) + 20 * c for c in classes])
            found = discover_groups(taught, points["novel"][items], DiscoveryConfig(classes=10), Workplace(seed=draw))
            acc.setdefault(name, []).append(100 * score(sets["novel"].labels[items], found.discovery.labels))
    lost = np.array(acc[DEFAULT_ENCODER]) - np.array(acc[INT8])
    return {
        "ACC": {name: float(np.mean(values)) for name, values in acc.items()},
        "lost": float(lost.mean()),
        "standard error": float(lost.std(ddof=1) / np.sqrt(draws)),
        "draws": draws,
    }


def _some_of_each(images: ImageSet, each: int) -> ImageSet:
    """The first images of every class, class by class."""
    items = torch.cat([(images.labels == c).nonzero().squeeze(1)[:each] for c in range(images.n_classes)])
    return replace(images, images=images.images[items], labels=images.labels[items])


def _squares(images: ImageSet) -> NDArray[np.uint8]:
    """The middle squares (n, 3, 224, 224) of the photos that `photo` makes, through JPEG."""
    generator, squares = np.random.default_rng(0), []
    with decoding():
        for pixels in images.images:
            file = BytesIO()
            photo(pixels, generator).save(file, "JPEG", quality=90)
            squares.append(read_photo(file, Cut(224, fraction=0.875)).pixels)
    return np.stack(squares)


def cold(folder: Path, photos: int, threads: int) -> dict[str, Any]:
    """So many known photos that nobody has read yet: stopped by Ctrl-C when a third is read, and continued."""
    benchmark = load("cifar100")
    write_photos(benchmark.known, range(80), photos // 80, lambda name, i: folder / "known" / name / f"{i}.jpg")
    write_photos(benchmark.novel, range(5), 10, lambda name, i: folder / "novel" / f"{name}-{i}.jpg")
    words = ("discover", "--known", folder / "known", "--novel", folder / "novel", "--out", folder / "out")
    line = [sys.executable, "-m", "medi", *map(str, words)]
    start = perf_counter()
    process = subprocess.Popen(line, env=os.environ | environment(folder, threads), stderr=subprocess.DEVNULL)
    while 128 * sum(1 for _ in (folder / "cache").rglob("*.shard")) < photos / 3:
        if process.poll() is not None:
            raise RuntimeError(f"medi ended with {process.returncode} before it was to be stopped")
        sleep(0.1)
    process.send_signal(signal.SIGINT)
    code, stopped = process.wait(), perf_counter() - start
    return {
        "photos": photos,
        "exit code after Ctrl-C": code,
        "seconds until then": stopped,
        "continued": discover(folder, "out", threads),
    }


def grouping() -> dict[str, Any]:
    """Seconds of the grouping by itself, one thread, and the groups found."""
    generator, figures = np.random.default_rng(0), {}

    def some(classes: int, each: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        labels = np.repeat(np.arange(classes), each)
        places = generator.standard_normal((classes, 1280), np.float32)[labels]
        return np.maximum(0, places + 1.6 * generator.standard_normal(places.shape, np.float32)), labels

    known = Items(*some(20, 50), tuple(str(c) for c in range(20)))
    for classes, each in ((10, 5), (25, 20), (80, 50)):
        pool, _ = some(classes, each)
        start = perf_counter()
        with threadpool_limits(1):
            found = discover_groups(known, pool, DiscoveryConfig(only_novel=False), Workplace())
        groups = found.discovery.count.k
        figures[str(len(pool))] = {"seconds": perf_counter() - start, "classes": classes, "groups": groups}
    return figures


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--only", type=some_of(PARTS), default=PARTS)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--photos", type=positive, default=400)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    figures: dict[str, Any] = {
        "machine": describe_device(torch.device("cpu")),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "load before": os.getloadavg(),
    }
    for name in arguments.only:
        with TemporaryDirectory() as temporary:
            folder = Path(temporary)
            work: dict[str, Callable[[], dict[str, Any]]] = {
                "whole": lambda folder=folder: whole(folder, arguments.threads),
                "reading": lambda folder=folder: reading(folder, arguments.photos),
                "integers": integers,
                "grouping": grouping,
                "cold": lambda folder=folder: cold(folder, arguments.photos, arguments.threads),
            }
            figures[name] = work[name]()
        print(json.dumps({name: figures[name]}, indent=1), flush=True)
    figures["load after"] = os.getloadavg()
    write_json(arguments.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
