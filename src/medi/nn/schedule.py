"""How long and how fast to learn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import torch
from torch import nn

from medi.core.errors import InputError
from medi.nn.devices import Precision

Shape = Literal["constant", "halve", "cosine", "onecycle", "drops"]


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn.

    Attributes:
        steps: Gradient steps; 0 for none, which only what can do without them accepts.
        rate: Largest learning rate.
        optimiser: adam (with decoupled weight decay), sgd with Nesterov momentum 0.9, or plain-sgd without momentum.
        decay: Weight decay.
        shape: constant; halve (every `halve_every` steps); cosine (to zero); onecycle (up over a tenth, cosine down);
            drops (times `drop` at each of `drop_at`).
        halve_every: Steps between two halvings.
        drop_at: Shares of the length after which the rate drops, 0.6 for after six tenths of the steps.
        drop: What the rate is multiplied by each time.
        clip: Largest norm of the gradient, or none.
        factors: Other rates for some parameters, as factors by the first part of their name.
        precision: bfloat16 where the device likes it (auto), or one of the two everywhere.
    """

    steps: int
    rate: float = 1e-3
    optimiser: Literal["adam", "sgd", "plain-sgd"] = "adam"
    decay: float = 0.0
    shape: Shape = "cosine"
    halve_every: int = 2000
    drop_at: tuple[float, ...] = ()
    drop: float = 0.1
    clip: float | None = None
    precision: Precision = "auto"
    factors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise InputError(f"steps={self.steps}: give how many there are, or 0 for none.")
        if self.rate < 0 or self.decay < 0:
            raise InputError(f"rate={self.rate:g}, decay={self.decay:g}: neither may be negative.")

    def refuse_tasks_by(self, sampler: str) -> None:
        """Refuse to draw tasks by a sampler that has to be trained first, where there is no step to draw any for."""
        if not self.steps and sampler != "uniform":
            raise InputError(f"without steps no task is drawn, by {sampler} or otherwise: leave the sampler out.")

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        done = step / self.steps
        match self.shape:
            case "constant":
                return self.rate
            case "halve":
                return self.rate * 0.5 ** (step // self.halve_every)
            case "drops":
                return self.rate * self.drop ** sum(step >= round(share * self.steps) for share in self.drop_at)
            case "cosine":
                return self.rate * 0.5 * (1 + math.cos(math.pi * done))
            case "onecycle":
                if done < 0.1:
                    return self.rate * (0.05 + 0.95 * done / 0.1)
                return self.rate * 0.5 * (1 + math.cos(math.pi * (done - 0.1) / 0.9))

    def make_optimiser(self, model: nn.Module) -> torch.optim.Optimizer:
        """An optimiser of a model's parameters; each group's `factor` multiplies the rate."""
        groups = []
        for factor, named in groupby(model.named_parameters(), key=lambda item: self._factor(item[0])):
            groups.append({"params": [parameter for _, parameter in named], "factor": factor})
        fused = next(model.parameters()).device.type == "cuda"
        if self.optimiser == "adam":
            return torch.optim.AdamW(groups, lr=self.rate, weight_decay=self.decay, fused=fused)
        momentum = 0.9 if self.optimiser == "sgd" else 0.0
        return torch.optim.SGD(
            groups, lr=self.rate, momentum=momentum, nesterov=momentum > 0, weight_decay=self.decay, fused=fused
        )

    def _factor(self, name: str) -> float:
        return self.factors.get(name.split(".")[0], 1.0)
