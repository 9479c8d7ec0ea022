"""How long `medi discover` takes from photos to report, and what its choices of speed are worth.

    python benchmarks/discover.py [--only whole,encoder,decode] [--threads 2] [--out FILE.json]

whole    1,000 known photos of 20 classes and 50 novel ones of 5, 500 x 400 JPEG, made of CIFAR-100 images enlarged
         and grained: a first run (nothing cached), a second with another --classes, a third with another --method.
encoder  processor time of the default encoder for one photo: as published, and with each change that was tried.
decode   the same photos decoded and cut by one thread, by two, and by two processes.

Needs CIFAR-100 (`medi data fetch cifar100`). Gives wall-clock and processor seconds and the machine's load; on a busy
machine, read the processor seconds. `command.py` says how commands are measured.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from command import run_medi
from PIL import Image
from script import Parser, positive, run, some_of, write_json
from torch import Tensor

from medi.data.benchmarks import load
from medi.data.imageset import ImageSet
from medi.photos.decode import decoding, read_photo
from medi.photos.encoders import DEFAULT, _checked_weights, _Pooled, _streamlined, folded
from medi.runtime.devices import describe_device

PARTS = ["whole", "encoder", "decode"]
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
    """One `medi discover` in a process of its own."""
    environment = {"MEDI_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": str(threads)}
    words = ("--known", folder / "known", "--novel", folder / "novel", "--out", folder / out, *more)
    figures = run_medi("discover", *words, environment=environment)
    facts = json.loads((folder / out / "discovery.json").read_text())
    return figures | {"parts": facts["seconds"], "groups": facts["n_classes"]}


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


def encoder(threads: int, rounds: int = 2, photos: int = 32) -> dict[str, Any]:
    """Milliseconds a photo; the best of some rounds, taken in turns so that the load hits all alike."""
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(DEFAULT)
    network.load_state_dict(torch.load(_checked_weights(), weights_only=True))
    plain, batched = _Pooled(network).eval(), torch.randn(photos, 3, 224, 224)
    last = batched.contiguous(memory_format=torch.channels_last)

    def channels_last(module: torch.nn.Module) -> torch.nn.Module:
        return deepcopy(module).eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    ours = channels_last(_Pooled(_streamlined(folded(network))))
    half = deepcopy(ours).bfloat16()
    variants: dict[str, tuple[torch.nn.Module, Tensor, int]] = {
        "as published": (plain, batched, 16),
        "channels last": (channels_last(plain), last, 16),
        "batch norm folded": (_Pooled(folded(network)).eval(), batched, 16),
        "both": (channels_last(_Pooled(folded(network))), last, 16),
        "both, padding inside": (ours, last, 16),
        "the same in batches of 8": (ours, last, 8),
        "the same in bfloat16": (half, last.bfloat16(), 8),
    }
    figures: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name, (module, images, size) in variants.items():
            for how, work in (("threads share a batch", _shared), ("a batch each", _each)):
                wall, cpu = perf_counter(), process_time()
                work(module, images, size, threads)
                spent = 1000 * (perf_counter() - wall) / photos, 1000 * (process_time() - cpu) / photos
                figures.setdefault(f"{name}, {how}", []).append(spent)
    with torch.inference_mode():
        exact, rough = ours(last), half(last.bfloat16()).float()
    best = {name: {"ms": min(w for w, _ in all_), "cpu ms": min(c for _, c in all_)} for name, all_ in figures.items()}
    error = float((rough - exact).norm() / exact.norm())
    return {"milliseconds a photo": best, "relative error of bfloat16": error, "rounds": rounds}


def _shared(module: torch.nn.Module, images: Tensor, size: int, threads: int) -> None:
    torch.set_num_threads(threads)
    with torch.inference_mode():
        for start in range(0, len(images), size):
            module(images[start : start + size])


def _each(module: torch.nn.Module, images: Tensor, size: int, threads: int) -> None:
    def work(start: int) -> None:
        with torch.inference_mode():
            module(images[start : start + size])

    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        list(pool.map(work, range(0, len(images), size)))


def decode_one(path: Path) -> int:
    """One photo as the default encoder gets it."""
    from medi.photos.decode import Cut

    with decoding(), path.open("rb") as file:
        return read_photo(file, Cut(224, fraction=0.875)).pixels.size


def decode(folder: Path) -> dict[str, float]:
    """Milliseconds a photo, wall-clock, best of 3."""
    images = load("cifar100").known
    write_photos(images, range(10), 20, lambda name, i: folder / name / f"{i}.jpg")
    paths = sorted(folder.rglob("*.jpg"))

    def best(pool: Executor) -> float:
        spent = []
        for _ in range(3):
            start = perf_counter()
            list(pool.map(decode_one, paths))
            spent.append(1000 * (perf_counter() - start) / len(paths))
        return min(spent)

    pools: dict[str, Callable[[], Executor]] = {
        "one thread": lambda: ThreadPoolExecutor(1),
        "two threads": lambda: ThreadPoolExecutor(2),
        "two processes": lambda: ProcessPoolExecutor(2),
    }
    figures = {}
    for name, make in pools.items():
        with make() as pool:
            list(pool.map(decode_one, paths[:8]))
            figures[name] = best(pool)
    return figures


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--only", type=some_of(PARTS), default=PARTS)
    parser.add_argument("--threads", type=positive, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    figures: dict[str, Any] = {
        "machine": describe_device(torch.device("cpu")),
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
                "encoder": lambda: encoder(arguments.threads),
                "decode": lambda folder=folder: decode(folder),
            }
            figures[name] = work[name]()
        print(json.dumps({name: figures[name]}, indent=1), flush=True)
    figures["load after"] = os.getloadavg()
    write_json(arguments.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
