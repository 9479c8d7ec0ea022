"""What a training step and a discovery cost, method by method, and how that grows.

    python benchmarks/complexity.py --device cuda --repeats 10 --out results/complexity/h200.json      the paper's shape
    python benchmarks/complexity.py --device cpu --small --repeats 3 --out results/complexity/cpu.json one core
    python benchmarks/complexity.py --table FILE.json [--into docs/complexity.md]                      as Markdown

Every method has the same network (Conv-4 on 3 x 32 x 32) and learns from the same random images, with its own config
otherwise: but for the rounds of k-means, costs do not depend on what images show. Training loops are cut to a few
steps; a discovery (one bag grouped, its queries answered one by one) is whole. Then tasks, way, images and inner steps
are doubled twice, one at a time, and the slope of log cost over log size is fitted; there, last stages on a bag are as
long as MM's inner steps, and no piece is timed more than 3 times.

The file is written after every piece, those of the tables first: a run that is cut off leaves what it had. With
--methods, rows of other methods that the file has already are kept.

How FLOPs, memory and seconds are taken is said in `costs.py`; a new method is one line of `complexity_methods.py`.
Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from complexity_methods import CLASSES, EACH, GROWTH, ITEM, METHODS, NETWORK, SHAPES, Entry, Shape
from complexity_page import insert, section
from costs import clock, count, exponent, figures, in_place_of_loops, peak
from torch import Tensor

import medi
from medi.data.imageset import ImageSet
from medi.errors import InputError, unknown_name
from medi.methods import Learner
from medi.runtime.devices import choose_device, describe_device
from medi.runtime.files import input_errors, make_folder, write_atomically
from medi.train.loop import _Run

FACTORS = (1, 2, 4)
COSTS = ("flops", "seconds", "peak bytes")
SECONDS = 2.0
"""No further discovery is timed after this long."""
AGAIN = 3
"""Most repeats of a piece of growth: there are many."""
SHORT, CYCLE = 2, 10
"""Steps on a bag when its memory is measured (a third takes no more) and when its FLOPs are counted.

After a cycle steps repeat what came before: DTC looks at its whole bag at every fifth, the others have no such thing.
"""


def measure_training(
    entry: Entry, known: ImageSet, shape: Shape, repeats: int
) -> tuple[list[dict[str, Any]], Learner | None]:
    """Costs of a step of each stage that is trained before any bag, and the learner."""
    device, config = known.images.device, entry.preset(shape)
    flops: dict[str, int] = {}
    stages: list[dict[str, Any]] = []

    def counted(run: _Run) -> None:
        flops[run.title] = count(run.train_step)

    def measured(run: _Run) -> None:
        if run.title not in flops:
            counted(run)
        costs = figures(flops[run.title], peak(run.train_step, device), clock(run.train_step, device, repeats))
        images = entry.images(config, shape, run.title)
        stages.append({"stage": run.title, "steps": run.schedule.steps, "images": images} | costs)

    plan = shape.plan(device)
    if getattr(config, "capture", False) and device.type == "cuda":  # a graph that is replayed hides what it does
        with in_place_of_loops(counted):
            entry.make(replace(config, capture=False)).fit(known, plan)
    with in_place_of_loops(measured):
        learner = entry.make(config).fit(known, plan)
    return stages, learner


def measure_discovery(
    entry: Entry, learner: Learner, shape: Shape, device: torch.device, repeats: int, *, whole: bool
) -> dict[str, Any]:
    """Costs of grouping one bag and answering its queries.

    Where a network is trained on the bag, that takes the steps of its config (`whole`) or as many as MM's inner ones.
    """
    shown = shape.way * shape.images * shape.observations
    images = random_images(shape.way * shape.of_a_class, device)
    places = torch.arange(len(images), device=device)[None]
    scheduled = 0

    def discover() -> None:
        encoded = learner.encode(images)
        generator = torch.Generator(device).manual_seed(0)
        learner.discover(encoded, places[:, :shown], shape.way, generator).assign(encoded, places[:, shown:])

    def taking(steps: int) -> AbstractContextManager[None]:
        def take(run: _Run) -> None:
            nonlocal scheduled
            scheduled = run.schedule.steps
            for run.step in range(steps):
                run.train_step()

        return in_place_of_loops(take)

    # What is counted first also warms the device up.
    if not whole:
        with taking(shape.inner):
            costs = figures(count(discover), peak(discover, device), clock(discover, device, repeats, SECONDS))
    else:
        with taking(CYCLE):
            flops = count(discover)
        if scheduled:  # counting is slow, and all cycles are alike
            with taking(2 * CYCLE):
                flops += (count(discover) - flops) * (scheduled - CYCLE) // CYCLE
        with taking(SHORT):
            memory = peak(discover, device)
        costs = figures(flops, memory, clock(discover, device, repeats, SECONDS))
    return {"steps": scheduled or (shape.inner if "inner steps" in entry.discovery else 0)} | costs


def random_images(number: int, device: torch.device) -> Tensor:
    """Noise, as uint8."""
    generator = torch.Generator().manual_seed(number)
    return torch.randint(256, (number, *ITEM), generator=generator, dtype=torch.uint8).to(device)


def measure(
    names: Sequence[str], known: ImageSet, small: bool, repeats: int, rows: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Fill in the methods' rows a piece at a time: costs at the table's shape, then how they grow.

    Yields:
        Of each piece, once it is in the row, its method and its name.
    """
    shape, device = SHAPES[small], known.images.device
    for name in names:
        row = rows[name] = {"method": name, "training": [], "discovery": None, "growth": {}}
        row["training"], learner = measure_training(METHODS[name], known, shape, repeats)
        yield name, "training"
        if learner:
            row["discovery"] = measure_discovery(METHODS[name], learner, shape, device, repeats, whole=True)
            yield name, "discovery"
    shape, repeats = GROWTH[small], min(repeats, AGAIN)
    for name in names:
        entry = METHODS[name]
        for what, axes, point in (("training", entry.training, step_at), ("discovery", entry.discovery, discovery_at)):
            start = point(entry, known, shape, repeats) if axes else {}
            for axis in axes:
                points = [start] + [point(entry, known, shape.grown(axis, f), repeats) for f in FACTORS[1:]]
                found = {cost: fitted([p[cost] for p in points]) for cost in COSTS}
                rows[name]["growth"].setdefault(axis, {})[what] = found
                yield name, f"growth of {what} with {axis}"


def step_at(entry: Entry, known: ImageSet, shape: Shape, repeats: int) -> dict[str, float]:
    """Costs of a training step, summed over stages."""
    stages, _ = measure_training(entry, known, shape, repeats)
    return {cost: sum(stage[cost] for stage in stages) for cost in COSTS}


def discovery_at(entry: Entry, known: ImageSet, shape: Shape, repeats: int) -> dict[str, float]:
    """Costs of a discovery by a network that has learnt nothing: they are the same."""
    with in_place_of_loops(lambda run: None):
        learner = entry.make(entry.preset(shape)).fit(known, shape.plan(known.images.device))
    return measure_discovery(entry, learner, shape, known.images.device, repeats, whole=False)


def fitted(costs: Sequence[float]) -> dict[str, Any]:
    """Costs at each of `FACTORS` and their exponent."""
    return {"values": list(costs), "exponent": exponent(FACTORS, costs)}


def about(device: torch.device, small: bool) -> dict[str, Any]:
    """Where and as what something is measured."""
    return {
        "device": describe_device(device),
        "processor": processor(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "version": medi.__version__,
        "threads": torch.get_num_threads(),
        "network": f"{NETWORK} on {' x '.join(map(str, ITEM))}",
        "shape": asdict(SHAPES[small]),
        "growth starts at": asdict(GROWTH[small]),
    }


def processor() -> str:
    """The model of the CPU, which also launches what a GPU does."""
    models = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
    found = re.search(r"model name\s*: (.+)", models)
    return found[1] if found else platform.processor()


def read(path: Path) -> dict[str, Any]:
    """What `main` wrote."""
    with input_errors(path, "read"):
        content = path.read_bytes()
    try:
        facts: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise InputError(f"{path} is not JSON: give a file that --out wrote.") from error
    return facts


def kept(path: Path, facts: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Rows of a file that are not measured now; they must have been measured where and as these are."""
    if not path.exists():
        return {}
    before = read(path)
    rows = {row["method"]: row for row in before.get("methods", []) if row["method"] not in names}
    other = [name for name, value in facts.items() if before.get(name) != value]
    if rows and other:
        raise InputError(
            f"{path} has {', '.join(rows)} measured with another {other[0]}: choose another file, or measure all."
        )
    return rows


def run(arguments: argparse.Namespace) -> None:
    """Do what the command line says."""
    if arguments.table:
        text = section(read(arguments.table), arguments.table.stem if arguments.into else "")
        if not arguments.into:
            return print(text, end="")
        with input_errors(arguments.into, "read"):
            page = insert(arguments.into.read_text(), arguments.table.stem, text)
        return write_atomically(arguments.into, page.encode())
    if arguments.repeats < 1:
        raise InputError(f"--repeats {arguments.repeats} measures nothing: give at least 1.")
    names = arguments.methods.split(",") if arguments.methods else list(METHODS)
    for name in names:
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
    device = choose_device(arguments.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # processor seconds of more than one say little
    else:
        gc.freeze()  # garbage is collected before every look at memory: no need to seek it among modules each time
    facts = about(device, arguments.small)
    print(json.dumps(facts), flush=True)
    labels = torch.arange(CLASSES, device=device).repeat_interleave(EACH)
    known = ImageSet(random_images(CLASSES * EACH, device), labels, tuple(map(str, range(CLASSES))))
    rows = kept(arguments.out, facts, names) if arguments.out else {}
    start = before = perf_counter()
    for name, piece in measure(names, known, arguments.small, arguments.repeats, rows):
        row, now = rows[name], perf_counter()
        row["took"] = row.get("took", 0.0) + now - before
        row["load"] = max(row.get("load", 0.0), round(os.getloadavg()[0], 1))
        before = now
        facts["methods"] = [rows[method] for method in METHODS if method in rows]
        if arguments.out:
            make_folder(arguments.out.parent)
            write_atomically(arguments.out, (json.dumps(facts, indent=1) + "\n").encode())
        print(f"{now - start:.0f} s: {name}, {piece}", file=sys.stderr, flush=True)
    print(section(facts), end="")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--small", action="store_true", help="a shape and configs for a CPU")
    parser.add_argument("--methods", default="", help=f"of {', '.join(METHODS)}; all where not given")
    parser.add_argument("--repeats", type=int, default=5, help="timed repeats of each piece of work")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print a file that --out wrote as Markdown, and measure nothing")
    parser.add_argument("--into", type=Path, help="write that between the marks of the same name in a page instead")
    try:
        run(parser.parse_args())
    except InputError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
