"""Milliseconds of a training step, launched operation by operation against recorded once and replayed, in one run.

    python benchmarks/steps.py [--steps 300] [--out FILE.json]           needs a GPU: on a CPU nothing is recorded

Two stages of RS, on noise of SVHN's size: recognising rotations (batches of 256), and both heads together (64 known
and 64 novel images, each in two versions; all but the last stage frozen). A step is drawing, random changes, loss,
gradient and update. The two ways take turns; each is timed `--repeats` times; median and extremes are given. `apart` is
the largest difference of a gradient between the two ways, relative to the largest gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from script import Parser, positive, run, write_json
from torch import Tensor, nn

from medi.data.augment import augment
from medi.data.facts import BENCHMARKS
from medi.methods.pretraining import Classifier, _LabelLoss, turned
from medi.methods.rs import JointLoss, TwoHeads
from medi.nn import build, last_stage, place
from medi.nn.cuda_graph import replayed
from medi.nn.devices import choose_device, describe_device, mixed_precision, wait_for
from medi.nn.schedule import Schedule

IMAGES = 20_000
CHANGES = BENCHMARKS["svhn"].augmentation


@dataclass(frozen=True)
class Step:
    """What is trained, its loss as a function of tensors, and how a batch of these is drawn."""

    model: nn.Module
    loss: nn.Module
    batch: Callable[[torch.Generator], tuple[Tensor, ...]]


def rotations(images: Tensor) -> Step:
    """RotNet."""
    network = place(build("resnet18", tuple(images.shape[1:]), seed=0), images.device)
    model = Classifier(network, nn.Linear(network.width, 4).to(images.device))
    turns = torch.arange(4, device=images.device).repeat_interleave(64)

    def batch(generator: torch.Generator) -> tuple[Tensor, ...]:
        items = torch.randint(len(images), (256,), generator=generator, device=images.device)
        return turned(augment(images[items], CHANGES, generator)), turns

    return Step(model, _LabelLoss(model), batch)


def joint(images: Tensor) -> Step:
    """Both heads together."""
    network = place(build("resnet18", tuple(images.shape[1:]), seed=0), images.device)
    network.requires_grad_(False)
    last_stage(network).requires_grad_(True)
    heads = (nn.Linear(network.width, 5).to(images.device) for _ in range(2))
    model = TwoHeads(network, *heads)
    labels = torch.arange(64, device=images.device) % 5

    def batch(generator: torch.Generator) -> tuple[Tensor, ...]:
        items = torch.randperm(len(images), generator=generator, device=images.device)[:128]
        views = augment(images[items].repeat(2, 1, 1, 1), CHANGES, generator)
        return views, labels, torch.full((), 50.0, device=images.device)

    return Step(model, JointLoss(model, 5), batch)


STAGES = {"rotations": rotations, "joint": joint}


class Timed:
    """One way of taking the steps of a stage, until the stack is left."""

    def __init__(self, stage: str, images: Tensor, stack: ExitStack, *, record: bool) -> None:
        torch.manual_seed(0)
        self.step = STAGES[stage](images)
        self.generator = torch.Generator(images.device).manual_seed(0)
        self.device = images.device
        self.loss = stack.enter_context(replayed(self.step.loss, record=record))
        self.optimiser = Schedule(steps=1, rate=0.01, optimiser="sgd").make_optimiser(self.step.model)
        self.seconds: list[float] = []

    def take(self) -> None:
        """One step."""
        with mixed_precision(self.device, "auto"):
            loss = self.loss(*self.step.batch(self.generator))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()

    def time(self, steps: int) -> None:
        """Time so many steps."""
        wait_for(self.device)
        began = perf_counter()
        for _ in range(steps):
            self.take()
        wait_for(self.device)
        self.seconds.append((perf_counter() - began) / steps)

    def gradient(self) -> Tensor:
        """That of the last step."""
        return torch.cat([p.grad.flatten() for p in self.step.model.parameters() if p.grad is not None])


def compare(stage: str, images: Tensor, steps: int, repeats: int) -> dict[str, object]:
    """Both ways of one stage."""
    with ExitStack() as stack:
        launched, recorded = (Timed(stage, images, stack, record=record) for record in (False, True))
        for way in (launched, recorded):
            way.take()
        first, second = launched.gradient(), recorded.gradient()
        apart = float((first - second).abs().max() / first.abs().max())
        for way in (launched, recorded):
            way.time(min(20, steps))
            way.seconds.clear()
        for _ in range(repeats):
            for way in (launched, recorded):
                way.time(steps)
    result: dict[str, object] = {"stage": stage, "apart": apart}
    for name, way in (("launched", launched), ("recorded", recorded)):
        result[name] = {key: 1000 * f(way.seconds) for key, f in (("ms", median), ("least", min), ("most", max))}
    result["ratio"] = median(launched.seconds) / median(recorded.seconds)
    return result


def table(report: dict[str, Any]) -> str:
    """Markdown: milliseconds and their ratio, a line a stage."""
    lines = ["| stage of RS | recorded | launched | ratio |", "| --- | --- | --- | --- |"]
    for row in report["stages"]:
        ours, plain = (f"{row[way]['ms']:.1f} ms" for way in ("recorded", "launched"))
        lines.append(f"| {row['stage']} | {ours} | {plain} | {row['ratio']:.1f} |")
    return "\n".join(lines) + "\n"


def main(parser: Parser) -> None:
    """Compare, print and write."""
    parser.add_argument("--steps", type=positive, default=300)
    parser.add_argument("--repeats", type=positive, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    images = torch.randint(0, 256, (IMAGES, 3, 32, 32), dtype=torch.uint8).to(device)
    rows = [compare(stage, images, arguments.steps, arguments.repeats) for stage in STAGES]
    facts = {"device": describe_device(device), "torch": version("torch"), "steps": arguments.steps}
    report = facts | {"repeats": arguments.repeats, "stages": rows}
    print(table(report), end="")
    write_json(arguments.out, report)


if __name__ == "__main__":
    run(main, __doc__)
