"""How fast MM's meta-step is, and how much memory it takes, against the usual ways to write it, in one run.

    python benchmarks/maml.py [--out FILE.json]                                          the paper's shape
    python benchmarks/maml.py --device cpu --threads 2 --network mlp --side 4 --tasks 32 --repeats 9

A meta-step: adapt to every task by gradient steps on its observations, score its queries, and differentiate that
through the steps (second order). Ways:
- loop: one task after the other, `torch.autograd.grad(create_graph=True)`, a backward pass for each; what is usual;
- higher: the same loop written with the `higher` library, where it is installed (it is needed for nothing else);
- tasks at once: MM's own step (`medi.methods.inner_steps`), forward passes batched by `vmap`;
and on top of the last: TF32; bfloat16 activations; convolutions whose second order does not loop over tasks
(`per_task_conv`), those of images up to a side, or of few channels, as matrix products; cuDNN's own search for
algorithms; one CUDA graph.
Not among them: torch.compile, which cannot differentiate twice.

What each gave at the paper's shape on an NVIDIA H200 (torch 2.11, n = 1 run, results/speed/maml-h200.json), against
the float32 loop of 6.46 s: tasks at once 3.0x, our convolutions 3.3x, TF32 4.9x, matrix products up to a side of 8
6.0x, one CUDA graph 12.1x (38 GiB); bfloat16 on top 14.5x (21 GiB). channels_last made the loop slower, and `higher`
is 0.9x.

Prints for each the median seconds of a step, peak memory, speed relative to the float32 loop and to the loop of equal
precision, and how far its gradient is from the float32 loop's. A way that runs out of memory says so; the others go on.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from script import Parser, positive, run, write_json
from torch import Tensor
from torch.func import functional_call

from medi.core.errors import InputError
from medi.methods.inner_steps import Clusterer, InnerSteps, MetaLoss
from medi.methods.pair_losses import label_pairs, likelihood_loss, rank_pairs
from medi.nn import build
from medi.nn.devices import choose_device, describe_device, tensor_float32, wait_for
from medi.nn.norm import statistics_from
from medi.nn.per_task_conv import batch_over_tasks

GIB = 2**30


@dataclass(frozen=True)
class Way:
    """A way to compute the meta-step."""

    implementation: str  # loop, higher or batched
    precision: str = "float32"  # float32, tf32 or bfloat16
    ours: bool = False  # convolutions of medi.nn.per_task_conv
    matmul: int = 0
    capture: bool = False
    autotune: bool = False
    channels_last: bool = False

    @property
    def name(self) -> str:
        """In words."""
        parts = ["tasks at once" if self.implementation == "batched" else self.implementation, self.precision]
        parts += ["our convolutions" + f", products up to {self.matmul}" * bool(self.matmul)] * self.ours
        parts += ["channels last"] * self.channels_last
        parts += ["autotuned"] * self.autotune + ["CUDA graph"] * self.capture
        return ", ".join(parts)


def ways(device: torch.device, images: bool) -> Iterator[Way]:
    """Everything that is compared; the baseline first, what might upset the device last."""
    cuda = device.type == "cuda"
    precisions = ("float32", "tf32", "bfloat16") if cuda else ("float32",)
    for precision in precisions:
        yield Way("loop", precision)
    if images:
        yield Way("loop", channels_last=True)
    if find_spec("higher"):
        yield Way("higher")
    for precision in precisions:
        yield Way("batched", precision)
    for precision in precisions:
        yield Way("batched", precision, ours=images)
    if images:
        for precision in precisions[1:] or precisions:
            for side in (8, 32):
                yield Way("batched", precision, ours=True, matmul=side)
    if cuda:
        for precision in precisions[1:]:
            for side in (0, 8) if images else (0,):
                yield Way("batched", precision, ours=images, matmul=side, capture=True)
        yield Way("batched", "tf32", ours=images, autotune=True)
        yield Way("batched", "bfloat16", ours=images, autotune=True)


def loop_step(model: Clusterer, batch: tuple[Tensor, ...], inner: InnerSteps, channels_last: bool) -> None:
    """One task after the other."""
    images, observed, asked = batch
    tasks, shown = observed.shape
    half = inner.precision == "bfloat16"
    for task in range(tasks):
        items = images[task].contiguous(memory_format=torch.channels_last) if channels_last else images[task]
        parameters = dict(model.named_parameters())
        for _ in range(inner.steps):
            with torch.autocast(images.device.type, torch.bfloat16, half, cache_enabled=False):
                embedded, logits = functional_call(model, parameters, (items[:shown],))
            loss = likelihood_loss(logits.float(), rank_pairs(embedded.detach().float(), inner.top))
            gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
            parameters = {n: p - inner.rate * g for (n, p), g in zip(parameters.items(), gradients, strict=True)}
        autocast = torch.autocast(images.device.type, torch.bfloat16, half, cache_enabled=False)
        with autocast, statistics_from(model, shown):
            _, logits = functional_call(model, parameters, (items,))
        (likelihood_loss(logits[shown:].float(), label_pairs(asked[task])) / tasks).backward()


def higher_step(model: Clusterer, batch: tuple[Tensor, ...], inner: InnerSteps) -> None:
    """The same loop with the `higher` library."""
    import higher

    images, observed, asked = batch
    tasks, shown = observed.shape
    plain = torch.optim.SGD(model.parameters(), lr=inner.rate)
    for task in range(tasks):
        with higher.innerloop_ctx(model, plain, copy_initial_weights=False) as (adapted, steps):
            for _ in range(inner.steps):
                embedded, logits = adapted(images[task, :shown])
                steps.step(likelihood_loss(logits, rank_pairs(embedded.detach(), inner.top)))
            with statistics_from(adapted, shown):
                _, logits = adapted(images[task])
            (likelihood_loss(logits[shown:], label_pairs(asked[task])) / tasks).backward()


def prepare(way: Way, model: Clusterer, batch: tuple[Tensor, ...], inner: InnerSteps) -> Callable[[int | None], None]:
    """A function that does the meta-step on the first so many tasks; what can be done once is done here."""
    precision = "bfloat16" if way.precision == "bfloat16" else "float32"
    inner = replace(inner, precision=precision)
    batch_over_tasks(model, way.matmul, on=way.ours)
    model.to(memory_format=torch.channels_last if way.channels_last else torch.contiguous_format)
    if way.implementation == "loop":
        return lambda tasks: loop_step(model, tuple(t[:tasks] for t in batch), inner, way.channels_last)
    if way.implementation == "higher":
        return lambda tasks: higher_step(model, tuple(t[:tasks] for t in batch), inner)
    loss: Callable[..., Any] = MetaLoss(model, inner)
    if way.capture:
        loss = torch.cuda.make_graphed_callables(loss, batch)
    return lambda tasks: loss(*batch).backward()


@contextmanager
def switches(way: Way) -> Iterator[None]:
    """Set what torch may use as a way wants it."""
    torch.backends.cudnn.benchmark = way.autotune
    try:
        with tensor_float32(way.precision != "float32"):
            yield
    finally:
        torch.backends.cudnn.benchmark = False


def measure(
    way: Way, model: Clusterer, batch: tuple[Tensor, ...], inner: InnerSteps, repeats: int, seconds: float
) -> tuple[dict[str, Any], Tensor]:
    """Median seconds of a step, peak memory, and the gradient."""
    device = batch[0].device
    model.zero_grad(set_to_none=True)
    if device.type == "cuda":
        gc.collect()  # a captured graph refers to itself
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    with switches(way):
        start = perf_counter()
        step = prepare(way, model, batch, inner)
        step(1)  # warm-up: a task is enough for a loop
        wait_for(device)
        ready = perf_counter()
        times: list[float] = []
        while not times or (len(times) < repeats and perf_counter() - ready < seconds):
            model.zero_grad(set_to_none=True)
            began = perf_counter()
            step(None)
            wait_for(device)
            times.append(perf_counter() - began)
    gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).cpu()
    peak = torch.cuda.max_memory_allocated(device) / GIB if device.type == "cuda" else None
    figures = {"seconds": median(times), "fastest": min(times), "slowest": max(times), "repeats": len(times)}
    return figures | {"warm-up seconds": ready - start, "peak GiB": peak}, gradient


def compare(arguments: argparse.Namespace, device: torch.device) -> list[dict[str, Any]]:
    """Every way at the shape asked for; a line is printed as each is done."""
    shape = (arguments.channels, arguments.side, arguments.side)
    body = build(arguments.network, shape, norm="batch")
    torch.manual_seed(0)
    model = Clusterer(body, body.width, arguments.way).to(device)
    items = arguments.way * (arguments.observations + arguments.queries)
    classes = torch.arange(arguments.way, device=device)
    batch = (
        torch.randn(arguments.tasks, items, *shape).to(device),
        classes.repeat_interleave(arguments.observations).repeat(arguments.tasks, 1),
        classes.repeat_interleave(arguments.queries).repeat(arguments.tasks, 1),
    )
    inner = InnerSteps(steps=arguments.steps, rate=0.01)
    chosen = [way for way in dict.fromkeys(ways(device, arguments.network != "mlp")) if arguments.only in way.name]
    if not chosen:
        raise InputError(f"no way has '{arguments.only}' in its name: leave --only out to see all names.")
    rows: list[dict[str, Any]] = []
    reference: Tensor | None = None
    loops: dict[str, float] = {}
    print(f"{'':66}  s/step    GiB  vs loop  same precision  gradient off by")
    for way in chosen:
        row: dict[str, Any] = {"way": way.name}
        try:
            figures, gradient = measure(way, model, batch, inner, arguments.repeats, arguments.seconds)
        except (torch.OutOfMemoryError, MemoryError):
            row["error"] = "out of memory"
        except RuntimeError as error:
            row["error"] = str(error).splitlines()[0][:200]
        else:
            row |= figures
            if way == Way("loop", way.precision):
                loops[way.precision] = figures["seconds"]
            reference = gradient if reference is None else reference
            row["ratio to float32 loop"] = loops.get("float32", float("nan")) / figures["seconds"]
            row["ratio to loop of equal precision"] = loops.get(way.precision, float("nan")) / figures["seconds"]
            row["relative difference of gradients"] = float((gradient - reference).norm() / reference.norm())
        rows.append(row)
        print(describe(row), flush=True)
    return rows


def describe(row: dict[str, Any]) -> str:
    """A line of the table."""
    if "error" in row:
        return f"{row['way']:66}  {row['error']}"
    peak = f"{row['peak GiB']:6.1f}" if row["peak GiB"] is not None else "     -"
    return (
        f"{row['way']:66} {row['seconds']:7.3f} {peak} {row['ratio to float32 loop']:7.2f}x "
        f"{row['ratio to loop of equal precision']:14.2f}x  {row['relative difference of gradients']:.1e}"
    )


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=positive, help="CPU threads; torch's own choice where not given")
    parser.add_argument("--network", default="vgg16")
    parser.add_argument("--channels", type=positive, default=3)
    parser.add_argument("--side", type=positive, default=32)
    parser.add_argument("--tasks", type=positive, default=16)
    parser.add_argument("--way", type=positive, default=5)
    parser.add_argument("--observations", type=positive, default=5)
    parser.add_argument("--queries", type=positive, default=15)
    parser.add_argument("--steps", type=positive, default=10)
    parser.add_argument("--repeats", type=positive, default=3, help="timed steps of each way")
    parser.add_argument("--seconds", type=float, default=5.0, help="no further step is started after this long")
    parser.add_argument("--only", default="", help="measure the ways whose name has this in it")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    facts = {
        "device": describe_device(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "higher": version("higher") if find_spec("higher") else None,
        "shape": {name: value for name, value in vars(arguments).items() if name not in ("out", "device")},
    }
    print(json.dumps(facts))
    rows = compare(arguments, device)
    write_json(arguments.out, facts | {"ways": rows})


if __name__ == "__main__":
    run(main, __doc__)
