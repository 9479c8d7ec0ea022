"""Theorem 3: how far the risk on fresh tasks may lie above that on the training tasks."""

from __future__ import annotations

import math

from medi.core.errors import InputError


def generalisation_bound(n: int, beta: float, max_loss: float, delta: float) -> float:
    """Theorem 3's epsilon(n, beta) = 2 beta + (4 n beta + M) sqrt(log(1 / delta) / (2 n)).

    With probability at least 1 - delta over the n training tasks, risk on fresh tasks of the same distribution is at
    most the mean loss on the training tasks plus this. That holds for the uniform stability beta, a supremum over all
    samples and tasks; with an estimate of beta the result is an estimate too.

    Args:
        n: Number of training tasks.
        beta: Uniform stability (Definition 3): the most that the loss of any task changes when one is left out.
        max_loss: M, what the loss never exceeds; cross-entropy has no such number unless it is clamped.
        delta: Chance that the statement fails, between 0 and 1.

    Returns:
        epsilon. At max_loss or above the bound says nothing (it is vacuous).

    >>> round(generalisation_bound(n=1000, beta=0.005, max_loss=1.0, delta=0.05), 3)
    0.823
    """
    if n < 1:
        raise InputError(f"{n} tasks: the bound needs at least 1.")
    if not (math.isfinite(beta) and beta >= 0):
        raise InputError(f"beta is {beta}: a stability is a finite number, 0 or more.")
    return 2 * beta + (4 * n * beta + _checked_loss(max_loss)) * _deviation(n, delta)


def largest_useful_beta(n: int, max_loss: float, delta: float) -> float:
    """The beta at which epsilon(n, beta) reaches max_loss: only below it does Theorem 3 say anything.

    Even a risk of 0 on the training tasks leaves nothing to conclude at or above it.

    Args:
        n: Number of training tasks.
        max_loss: M, what the loss never exceeds.
        delta: Chance that the statement fails, between 0 and 1.

    Returns:
        (M - M s) / (2 + 4 n s) with s = sqrt(log(1 / delta) / (2 n)); negative where n is too small for any beta.

    >>> beta = largest_useful_beta(n=1000, max_loss=1.0, delta=0.05)
    >>> round(generalisation_bound(1000, beta, max_loss=1.0, delta=0.05), 9)
    1.0
    """
    if n < 1:
        raise InputError(f"{n} tasks: the bound needs at least 1.")
    deviation = _deviation(n, delta)
    return _checked_loss(max_loss) * (1 - deviation) / (2 + 4 * n * deviation)


def tasks_needed(epsilon: float, scaled_beta: float, max_loss: float, delta: float) -> int:
    """The smallest n whose epsilon(n, scaled_beta / n) is at most epsilon: for a learner with beta = scaled_beta / n.

    Such is one that minimises the sum of convex losses, each of them L-Lipschitz, and n lambda / 2 times the squared
    norm of its weights: leaving out a task moves no task's loss by more than L^2 / (n lambda).

    Args:
        epsilon: How far the risk on fresh tasks may lie above that on the training tasks.
        scaled_beta: n times the uniform stability, the same for every n.
        max_loss: M, what the loss never exceeds.
        delta: Chance that the statement fails, between 0 and 1.

    >>> n = tasks_needed(0.5, scaled_beta=5.0, max_loss=1.0, delta=0.05)
    >>> n, round(generalisation_bound(n, 5.0 / n, max_loss=1.0, delta=0.05), 3)
    (2683, 0.5)
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon is {epsilon}: no number of tasks brings it to 0; give a finite number above 0.")
    if not (math.isfinite(scaled_beta) and scaled_beta >= 0):
        raise InputError(f"scaled_beta is {scaled_beta}: n times a stability is a finite number, 0 or more.")
    slope = (4 * scaled_beta + _checked_loss(max_loss)) * _deviation(1, delta)
    # The root of n solves epsilon n = slope √n + 2 scaled_beta; hypot does not overflow.
    root = (slope + math.hypot(slope, math.sqrt(8 * scaled_beta) * math.sqrt(epsilon))) / (2 * epsilon)
    if not root < 1e6:
        raise InputError(f"epsilon {epsilon} needs more than 10^12 tasks: ask for a larger one.")
    n = max(1, math.floor(root**2) - 1)  # one too few, whatever the rounding
    while generalisation_bound(n, scaled_beta / n, max_loss, delta) > epsilon:
        n += 1
    return n


def _deviation(n: int, delta: float) -> float:
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}: a chance lies between 0 and 1; 0.05 is usual.")
    return math.sqrt(math.log(1 / delta) / (2 * n))


def _checked_loss(max_loss: float) -> float:
    if not (math.isfinite(max_loss) and max_loss > 0):
        raise InputError(f"max_loss is {max_loss}: give what the loss never exceeds, a finite number above 0.")
    return max_loss
