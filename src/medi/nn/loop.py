"""The one training loop: seeded, logged, checkpointed, resumable bit for bit on a CPU.

A method varies it by what it passes as `loss`, never by a flag in here.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from medi.core.errors import InputError
from medi.core.files import (
    LOCK,
    append_to_journal,
    make_folder,
    read_journal,
    remove_leftovers,
    waiting_lock,
    write_atomically,
)
from medi.core.reading import input_errors, read_file
from medi.core.tensors import under_prefix, with_prefix
from medi.jobs import ranks
from medi.nn import across_ranks
from medi.nn.checkpoint import pack_optimiser, save_checkpoint, unpack_checkpoint, unpack_optimiser
from medi.nn.context import Context
from medi.nn.devices import mixed_precision
from medi.nn.schedule import Schedule

Loss = Callable[[torch.Generator], Tensor]
"""One step's loss: draws its own batch with the generator it is given and returns a scalar."""


TRAINING_FORMAT = 3
"""Raised when trained weights of an earlier version of this package can no longer be used."""


@dataclass(frozen=True)
class WatchedLoss:
    """A loss whose model is looked at every so many steps, which may choose the length of the training.

    The score is taken in evaluation mode; more is better. `keep_best`: the weights that scored best are the ones that
    stay, not the last; otherwise a look is only logged.
    """

    loss: Loss
    every: int
    score: Callable[[], float]
    keep_best: bool = True
    name: str = "validation"

    def __call__(self, generator: torch.Generator) -> Tensor:
        """The loss itself."""
        return self.loss(generator)


class Diverged(InputError):
    """A training whose loss or weights are no longer numbers."""


def train(
    model: nn.Module,
    loss: Loss,
    schedule: Schedule,
    context: Context,
    *,
    title: str,
    identity: Mapping[str, Any],
) -> float:
    """Train a model in place, or take it from the context's folder where it was trained before.

    Args:
        model: What is trained; on the context's device.
        loss: One step's loss; a `WatchedLoss` scores the model on the way.
        schedule: Length and rates.
        context: Device, seed, folder and progress.
        title: A short name: in the progress bar, and of the checkpoint's and the log's files.
        identity: JSON-able, all that the training depends on beside the schedule and the seed.

    Returns:
        Seconds the training took, those before an interruption included.
    """
    if not schedule.steps:
        raise InputError(f"{title}: steps=0: this training has at least one step.")
    run = _Run(model, loss, schedule, context, title, identity)
    # Networks with dropout draw from torch's own generator: seed it here and leave the caller's alone.
    with torch.random.fork_rng([context.device] if context.device.type == "cuda" else []):
        torch.manual_seed(context.seed)
        with run.alone():
            run.restore()
            if run.step < schedule.steps:
                run.fit_loop()
    model.eval()
    context.stopwatch.seconds += run.seconds
    return run.seconds


@dataclass
class _Run:
    """One training under way: the state that a checkpoint holds, and the three layers of the loop."""

    LOG_EVERY: ClassVar[int] = 25

    model: nn.Module
    loss: Loss
    schedule: Schedule
    context: Context
    title: str
    identity: Mapping[str, Any]
    best: dict[str, Tensor] = field(default_factory=dict)
    best_score: float = -math.inf
    step: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        context, more = self.context, {"format": TRAINING_FORMAT, "schedule": asdict(self.schedule)}
        self.watched = self.loss if isinstance(self.loss, WatchedLoss) else None
        self.identity = json.loads(json.dumps({**self.identity, **more}))
        self.generator = context.generator()
        self.optimiser = self.schedule.make_optimiser(self.model)
        # Named by what the training depends on: whoever asks for the same training finds it, whatever it is for.
        # The device is part of that: random draws differ between devices.
        named = json.dumps([self.identity, context.seed, context.device.type], sort_keys=True)
        name = f"{self.title}-{sha256(named.encode()).hexdigest()[:12]}"
        folder = context.folder if ranks.is_first() else None  # one rank writes, and reads for all
        self.checkpoint = folder / f"{name}.safetensors" if folder else None
        self.log = folder / f"{name}.jsonl" if folder else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the checkpoint: who asks for the same training meanwhile waits, and then finds it done."""
        if self.checkpoint is None:
            yield
            return
        make_folder(self.checkpoint.parent)
        with waiting_lock(
            self.checkpoint.with_suffix(LOCK),
            lambda: self.context.reporter.say(f"waiting for another process that is training {self.title} …"),
        ):
            remove_leftovers(self.checkpoint.parent, self.checkpoint.stem)
            yield

    def fit_loop(self) -> None:
        """Every step from the current one on, with progress, log and checkpoints."""
        self.model.train()
        started = saved = time.monotonic()
        before = self.seconds
        total = torch.zeros((), device=self.context.device)
        with self.context.reporter.track(f"training {self.title}", self.schedule.steps) as tick:
            while self.step < self.schedule.steps:
                total += self.train_step()
                self.step += 1
                if self.watched and (self.step % self.watched.every == 0 or self.step == self.schedule.steps):
                    self.look(self.watched)
                if self.step % self.LOG_EVERY == 0 or self.step == self.schedule.steps:
                    # The only place that waits for the device.
                    since = self.step % self.LOG_EVERY or self.LOG_EVERY
                    self.note(float(total) / since)
                    tick(self.step, f"loss {float(total) / since:.3f}")
                    total.zero_()
                    self.seconds = before + time.monotonic() - started
                    if time.monotonic() - saved >= self.context.checkpoint_seconds:
                        self.save()
                        saved = time.monotonic()
        if self.best:
            self.model.load_state_dict(self.best)
        self.save()

    def look(self, watched: WatchedLoss) -> None:
        """Score the model as it is; remember its weights where they are the best so far."""
        self.model.eval()
        score = watched.score()
        self.model.train()
        if watched.keep_best and score > self.best_score:
            self.best_score = score
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        if self.log:
            append_to_journal(self.log, {"step": self.step, watched.name: score})

    def train_step(self) -> Tensor:
        """One batch, one update; returns the loss, still on the device."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate_at(self.step) * group["factor"]
        with mixed_precision(self.context.device, self.schedule.precision):
            loss = self.loss(self.generator)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        across_ranks.average_gradients(self.model)
        if self.schedule.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.clip)
        self.optimiser.step()
        return loss.detach()

    def note(self, loss: float) -> None:
        """Log a mean loss; stop where it, or what was learnt, is no longer a number."""
        # A finite loss may have had a gradient that was not: such weights must not become a checkpoint.
        if not math.isfinite(loss) or not all(bool(p.isfinite().all()) for p in self.model.parameters()):
            raise Diverged(
                f"{self.title} diverged before step {self.step} at learning rate {self.schedule.rate:g}: "
                "lower the rate; the last good checkpoint was kept."
            )
        if self.log:
            append_to_journal(self.log, {"step": self.step, "loss": loss, "rate": self.schedule.rate_at(self.step - 1)})

    def forget_after(self, step: int) -> None:
        """Drop what a killed process logged after its last checkpoint: those steps are done again."""
        if self.log and self.log.exists():
            rows = [row for row in read_journal(self.log) if row.get("step", math.inf) <= step]
            write_atomically(self.log, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def save(self) -> None:
        """Write the state; a finished training needs its weights alone."""
        if self.checkpoint is None:
            return
        tensors = with_prefix("model", self.model.state_dict())
        facts: dict[str, Any] = {"step": self.step, "seconds": self.seconds, "identity": self.identity}
        if self.step < self.schedule.steps:
            slots, facts["optimiser"] = pack_optimiser(self.optimiser)
            tensors |= with_prefix("optimiser", slots) | with_prefix("best", self.best)
            facts["best_score"] = self.best_score if self.best else None
            tensors |= {"generator/own": self.generator.get_state(), "generator/torch": torch.get_rng_state()}
            if self.context.device.type == "cuda":
                tensors["generator/cuda"] = torch.cuda.get_rng_state(self.context.device)
        save_checkpoint(self.checkpoint, tensors, facts)

    def saved(self) -> bytes:
        """The bytes of the checkpoint, none where there is none."""
        if self.checkpoint is None:
            return b""
        with input_errors(self.checkpoint, "read"):
            return read_file(self.checkpoint) if self.checkpoint.exists() else b""

    def restore(self) -> None:
        """Continue from the checkpoint where there is one of the same settings."""
        content = across_ranks.from_first(self.saved)
        if not content:
            across_ranks.copy_from_first(*self.model.state_dict().values())
            self.forget_after(0)
            return
        path = self.checkpoint or Path(self.title)
        tensors, facts = unpack_checkpoint(content, path)
        if facts.get("identity") != self.identity:
            raise InputError(f"{path} was trained with other settings: choose another folder, or delete it.")
        self.model.load_state_dict(under_prefix("model", tensors))
        self.step, self.seconds = int(facts["step"]), float(facts["seconds"])
        self.forget_after(self.step)
        if self.step < self.schedule.steps:
            unpack_optimiser(self.optimiser, under_prefix("optimiser", tensors), facts["optimiser"])
            self.best = {name: t.to(self.context.device) for name, t in under_prefix("best", tensors).items()}
            self.best_score = facts["best_score"] if self.best else -math.inf
            self.generator.set_state(tensors["generator/own"])
            torch.set_rng_state(tensors["generator/torch"])
            if self.context.device.type == "cuda" and "generator/cuda" in tensors:
                torch.cuda.set_rng_state(tensors["generator/cuda"], self.context.device)
