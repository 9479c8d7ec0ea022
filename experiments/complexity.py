"""What a training step and a discovery cost, method by method, and how that grows.

    python experiments/complexity.py --device cuda --repeats 10 --out results/complexity/h200.json      the paper's size
    python experiments/complexity.py --device cpu --small --repeats 3 --out results/complexity/cpu.json one core
    python experiments/complexity.py --table FILE.json                                                  as Markdown

Every method has the same network (Conv-4 on 3 x 32 x 32) and learns from the same random images, with its own config
otherwise: except for the rounds of k-means, costs do not depend on what images show. Training loops are cut to a few
steps; a discovery (one bag grouped, its queries answered one by one) is whole. Then tasks, way, images and inner steps
are doubled twice, one at a time, and the slope of log cost over log size is fitted; there, methods that train on the
bag take as many steps as MM's inner ones, and no piece is timed more than 3 times.

The file is written after every piece, the tables' pieces first: an interrupted run leaves what it had. With --methods,
rows of other methods that the file has already are kept.

`costs.py` says how FLOPs, memory and seconds are measured; a new method is one line of `complexity_methods.py`.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from common import Parser, positive, read_json, run, some_of, write_json
from complexity_methods import CLASSES, EACH, GROWTH, ITEM, METHODS, NETWORK, SHAPES, Entry, Shape
from complexity_page import section
from costs import clock, count, exponent, figures, in_place_of_loops, peak
from torch import Tensor

import medi
from medi.core.errors import InputError
from medi.data.imageset import ImageSet
from medi.methods import Learner
from medi.nn.devices import choose_device, describe_device
from medi.nn.loop import _Run

FACTORS = (1, 2, 4)
COSTS = ("flops", "seconds", "peak bytes")
SECONDS = 2.0
"""No further discovery is timed after this long."""
GROWTH_REPEATS = 3
"""Most repeats of a piece of growth: there are many."""
SHORT, CYCLE = 2, 10
"""Steps on a bag when its memory is measured (a third takes no more) and when its FLOPs are counted.

After a cycle, steps repeat what came before: DTC looks at its whole bag at every fifth, the others do nothing alike.
"""


def measure_training(
    entry: Entry, known: ImageSet, shape: Shape, repeats: int
) -> tuple[list[dict[str, Any]], Learner | None]:
    """Costs of a step of each stage that is trained before any bag, and the learner."""
    device, method, plan = known.images.device, entry.method(shape), shape.plan(known.images.device)
    flops: dict[str, int] = {}
    stages: list[dict[str, Any]] = []

    def counted(run: _Run) -> None:
        flops[run.title] = count(run.train_step)

    def measured(run: _Run) -> None:
        if run.title not in flops:
            counted(run)
        costs = figures(flops[run.title], peak(run.train_step, device), clock(run.train_step, device, repeats))
        images = entry.images(method, shape, run.title)
        stages.append({"stage": run.title, "steps": run.schedule.steps, "images": images} | costs)

    if device.type == "cuda":  # what is counted is not recorded as a CUDA graph, what is timed must be
        with in_place_of_loops(counted):
            method.fit(known, plan)
    with in_place_of_loops(measured):
        learner = method.fit(known, plan)
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

    # Counting comes first because it also warms the device up.
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
    """Fill in the methods' rows piece by piece: costs at the table's size, then how they grow.

    Yields:
        The method and the name of each piece, once it is in the row.
    """
    shape, device = SHAPES[small], known.images.device
    for name in names:
        row = rows[name] = {"method": name, "training": [], "discovery": None, "growth": {}}
        row["training"], learner = measure_training(METHODS[name], known, shape, repeats)
        yield name, "training"
        if learner:
            row["discovery"] = measure_discovery(METHODS[name], learner, shape, device, repeats, whole=True)
            yield name, "discovery"
    shape, repeats = GROWTH[small], min(repeats, GROWTH_REPEATS)
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
    """Costs of a discovery by an untrained network: they are those of a trained one."""
    with in_place_of_loops(lambda run: None):
        learner = entry.method(shape).fit(known, shape.plan(known.images.device))
    return measure_discovery(entry, learner, shape, known.images.device, repeats, whole=False)


def fitted(costs: Sequence[float]) -> dict[str, Any]:
    """Costs at each of `FACTORS` and their exponent."""
    return {"values": list(costs), "exponent": exponent(FACTORS, costs)}


def about(device: torch.device, small: bool) -> dict[str, Any]:
    """Where and at what size something is measured."""
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


def kept(path: Path, facts: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Rows of a file that are not measured now; they must come from the same machine, versions and sizes."""
    if not path.exists():
        return {}
    before = read_json(path)
    rows = {row["method"]: row for row in before.get("methods", []) if row["method"] not in names}
    other = [name for name, value in facts.items() if before.get(name) != value]
    if rows and other:
        raise InputError(
            f"{path} has {', '.join(rows)} measured with another {other[0]}: choose another file, or measure all."
        )
    return rows


def main(parser: Parser) -> None:
    """Measure, write and print."""
    parser.add_argument("--device", default="auto")
    parser.add_argument("--small", action="store_true", help="sizes and configs for a CPU")
    parser.add_argument("--methods", type=some_of(list(METHODS)), default=list(METHODS), help="separated by commas")
    parser.add_argument("--repeats", type=positive, default=5, help="timed repeats of each piece of work")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print a file that --out wrote as Markdown, and measure nothing")
    options = parser.parse_args()
    if options.table:
        print(section(read_json(options.table)), end="")
        return
    device = choose_device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # processor seconds of several threads say little
    else:
        gc.freeze()  # memory is measured after a collection of garbage, which need not look at modules each time
    facts = about(device, options.small)
    print(json.dumps(facts), flush=True)
    labels = torch.arange(CLASSES, device=device).repeat_interleave(EACH)
    known = ImageSet(random_images(CLASSES * EACH, device), labels, tuple(map(str, range(CLASSES))))
    rows = kept(options.out, facts, options.methods) if options.out else {}
    start = before = perf_counter()
    for name, piece in measure(options.methods, known, options.small, options.repeats, rows):
        row, now = rows[name], perf_counter()
        row["took"] = row.get("took", 0.0) + now - before
        row["load"] = max(row.get("load", 0.0), round(os.getloadavg()[0], 1))
        before = now
        facts["methods"] = [rows[method] for method in METHODS if method in rows]
        write_json(options.out, facts)
        print(f"{now - start:.0f} s: {name}, {piece}", file=sys.stderr, flush=True)
    print(section(facts), end="")


if __name__ == "__main__":
    run(main, __doc__)
