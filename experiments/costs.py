"""Instruments for `complexity.py`: FLOPs, memory and seconds of some work, and how they grow.

FLOPs are those of convolutions and matrix products, two for a multiply-add; elementwise work (norms, pooling,
augmentation, sorting) is not counted. Torch's counter sees the products inside `per_task_conv` and `vmap`, but counts
the weight gradient of a grouped convolution as if there were one group: t times too much for t tasks. `count` corrects
that.
"""

from __future__ import annotations

import gc
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import linear_regression, median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from medi.nn import cuda_graph
from medi.nn.devices import wait_for
from medi.nn.loop import _Run


def count(work: Callable[[], object]) -> int:
    """FLOPs of the convolutions and matrix products of some work.

    Steps that it would record as a CUDA graph are taken operation by operation: what a graph replays is not counted.
    """

    def backward(y: Sequence[int], x: Sequence[int], weight: Sequence[int], *rest: Any, **_: Any) -> int:
        *_, transposed, _, _, wanted = rest[:8]
        # Either gradient is as many products as the convolution itself, whatever the groups.
        return 2 * math.prod(weight) * y[0] * math.prod((x if transposed else y)[2:]) * (wanted[0] + wanted[1])

    corrected = {torch.ops.aten.convolution_backward: backward}
    with (
        replaced(cuda_graph, "_on_gpu", lambda tensor: False),
        FlopCounterMode(display=False, custom_mapping=corrected) as counter,
    ):
        work()
    return counter.get_total_flops()


def peak(work: Callable[[], object], device: torch.device) -> int:
    """Most bytes of tensors alive at one time, those from before not counted."""
    if device.type == "cuda":
        gc.collect()  # a captured graph refers to itself
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        wait_for(device)
        return torch.cuda.max_memory_allocated(device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler prints when it starts and stops
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        events = json.loads(trace.read_bytes())["traceEvents"]
    # The profiler's totals include earlier sessions and miss what is freed in between: only differences are right.
    alive = highest = 0
    for event in sorted((e for e in events if e["name"] == "[memory]"), key=lambda e: e["ts"]):
        alive += event["args"]["Bytes"]
        highest = max(highest, alive)
    return highest


def clock(work: Callable[[], object], device: torch.device, repeats: int, seconds: float = math.inf) -> list[float]:
    """Seconds of each repeat: wall-clock on a GPU, processor time on a CPU, which other programs may use as well.

    No further repeat starts after so many seconds.
    """
    now = perf_counter if device.type == "cuda" else process_time
    wait_for(device)
    times: list[float] = []
    while not times or (len(times) < repeats and sum(times) < seconds):
        start = now()
        work()
        wait_for(device)
        times.append(now() - start)
    return times


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Give an attribute another value for a while."""
    real = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, real)


def in_place_of_loops(take: Callable[[_Run], None]) -> AbstractContextManager[None]:
    """Call `take` wherever a network would be trained."""

    def fit_loop(run: _Run) -> None:
        run.model.train()
        take(run)

    return replaced(_Run, "fit_loop", fit_loop)


def figures(flops: int, memory: int, times: Sequence[float]) -> dict[str, Any]:
    """The costs of a piece of work."""
    spread = {"seconds": median(times), "fastest": min(times), "slowest": max(times), "repeats": len(times)}
    return {"flops": flops, "peak bytes": memory, **spread}


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The p of cost = c * size ** p that fits best on logarithms."""
    return linear_regression([math.log(s) for s in sizes], [math.log(c) for c in costs]).slope
