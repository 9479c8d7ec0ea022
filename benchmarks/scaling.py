"""What a second process brings: one training shared by torchrun, and a grid spread by --jobs.

    python benchmarks/scaling.py [--repeats 3] [--steps 8] [--grid] [--out FILE.json]

Every process has one thread. One and two processes take turns, so that a busy machine disturbs both alike; minimum,
median and maximum over repeats are written, with the load of the machine. On a busy machine, read the processor
seconds: equally many on two processes mean that sharing is free, twice as many that nothing was gained.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import torch
import torch.distributed as dist
from script import Parser, positive, run, write_json

import medi
from medi.data.benchmarks import load
from medi.jobs import ranks
from medi.methods import Plan
from medi.methods.inner_steps import InnerSteps
from medi.methods.mm import MM
from medi.methods.mp import MP
from medi.nn import across_ranks
from medi.nn.loop import _Run
from medi.nn.schedule import Schedule

WARM_UP = 2
MESSAGES = {"4 B": 1, "450 kB": 112_500, "45 MB": 11_250_000}


def methods(steps: int) -> dict[str, MP | MM]:
    """What is trained for so many steps that count."""
    taken = WARM_UP + steps
    return {
        "mp, Conv-4, 400 images a step": MP(images=400, schedule=Schedule(taken)),
        "mm, Conv-4, 4 tasks of 5 x 20 images, 2 inner steps": MM(
            tasks=4, inner=InnerSteps(steps=2), schedule=Schedule(taken, precision="float32")
        ),
    }


def work(steps: int) -> None:
    """One rank: time every method's steps and some sums over ranks; the first prints."""
    torch.set_num_threads(1)
    moments: list[tuple[float, float]] = []
    real = _Run.train_step

    def timed(self: _Run) -> torch.Tensor:
        loss = real(self)
        moments.append((perf_counter(), process_time()))
        return loss

    _Run.train_step = timed  # type: ignore[method-assign]
    with ranks.joined("cpu"):
        known, plan = load("glyphs").known, Plan(way=5, observations=5)
        figures = {}
        for name, method in methods(steps).items():
            moments.clear()
            method.fit(known, plan)
            pairs = list(pairwise(moments[WARM_UP - 1 :]))
            figures[f"{name}, seconds a step"] = median(after[0] - before[0] for before, after in pairs)
            mine = torch.tensor([median(after[1] - before[1] for before, after in pairs)], dtype=torch.float64)
            figures[f"{name}, processor seconds a step of all processes"] = float(
                across_ranks.gather(mine, ranks.count()).sum()
            )
        if ranks.count() > 1:
            for name, numbers in MESSAGES.items():
                figures[f"sum of {name} over ranks, seconds"] = time_sum(torch.zeros(numbers))
        if ranks.is_first():
            print(json.dumps(figures))


def time_sum(numbers: torch.Tensor) -> float:
    """Seconds of one all-reduce, the median of ten."""
    seconds = []
    for _ in range(10):
        dist.barrier()
        start = perf_counter()
        dist.all_reduce(numbers)
        seconds.append(perf_counter() - start)
    return median(seconds)


def time_training(processes: int, steps: int) -> dict[str, float]:
    """Seconds a step of each method on that many processes."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [*launch, __file__, "--worker", "--steps", str(steps)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def time_grid(jobs: int) -> dict[str, float]:
    """Seconds of two trainings of MP on `rules` (60 steps each), start of the workers included."""
    with tempfile.TemporaryDirectory() as folder:
        options = f"--dataset rules --method mp --seeds 2 --episodes 20 --jobs {jobs} --out {folder}/out"
        start = perf_counter()
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "medi", "bench", "run", *options.split()]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return {"grid of 2 trainings (mp on rules), seconds": perf_counter() - start}


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--repeats", type=positive, default=3)
    parser.add_argument("--steps", type=positive, default=8, help="steps that are timed in each repeat")
    parser.add_argument("--grid", action="store_true", help="time a grid as well: minutes")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.steps)
    seconds: dict[str, dict[str, list[float]]] = {}
    loads = []
    for _ in range(options.repeats):
        for processes in (1, 2):
            loads.append(os.getloadavg()[0])
            measured = time_training(processes, options.steps) | (time_grid(processes) if options.grid else {})
            for name, value in measured.items():
                seconds.setdefault(name, {}).setdefault(str(processes), []).append(value)
    figures = {
        "cores": os.cpu_count(),
        "threads a process": 1,
        "torch": torch.__version__,
        "version": medi.__version__,
        "repeats": options.repeats,
        "steps a repeat": options.steps,
        "load average at the start of each": [round(load, 1) for load in loads],
        "min, median and max over repeats": {
            name: {
                processes: {"min": min(values), "median": median(values), "max": max(values)}
                for processes, values in by_processes.items()
            }
            for name, by_processes in seconds.items()
        },
    }
    for name, by_processes in figures["min, median and max over repeats"].items():
        spread = ", ".join(f"{p}: {v['min']:.4f} {v['median']:.4f} {v['max']:.4f}" for p, v in by_processes.items())
        print(name, "|", spread)
    write_json(options.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
