"""MM's inner steps: gradients through them against finite differences, all tasks at once against one by one."""

import pytest
import torch
from small_sets import generator
from torch import Tensor, nn
from torch.func import functional_call

from medi.core.errors import InputError
from medi.methods.inner_steps import Clusterer, InnerSteps, MetaLoss, Parameters, adapt, respond
from medi.methods.pair_losses import label_pairs, likelihood_loss, rank_pairs
from medi.nn import build
from medi.nn.norm import BatchStatisticsNorm

TOP = 2
"""Of five features."""


def smooth(norm: bool) -> Clusterer:
    """A small network without kinks, in float64, so that finite differences tell the truth."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3, padding=1)] + [BatchStatisticsNorm(3)] * norm + [nn.Tanh(), nn.AvgPool2d(3)]
    model = Clusterer(nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 5), nn.Softplus()), 5, 3).double()
    nn.init.zeros_(model.body[-2].bias)  # or the same features would be the largest of every item
    return model


def tasks(shape: tuple[int, ...] = (1, 6, 6), count: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    """Observations, queries, and classes of the queries."""
    g = generator(4)
    observations = torch.randn(count, 6, *shape, generator=g, dtype=torch.float64)
    queries = torch.randn(count, 9, *shape, generator=g, dtype=torch.float64)
    return observations, queries, torch.arange(3).repeat_interleave(3).expand(count, 9)


def fixed(model: Clusterer) -> Parameters:
    return {name: value.detach() for name, value in model.named_parameters()}


def meta_loss(model: Clusterer, *settings: object, shape: tuple[int, ...] = (1, 6, 6), classes: int = 3) -> Tensor:
    """The loss with inner steps, kinds of pairs and a weight of prototypes, in this order."""
    observations, queries, labels = tasks(shape)
    items = torch.cat([observations, queries], 1).to(next(model.parameters()).dtype)
    return MetaLoss(model, *settings, way=3)(items, observations[:, :, 0], labels % classes)


def meta_gradients(model: Clusterer, *settings: object, **shape: object) -> list[Tensor]:
    return list(torch.autograd.grad(meta_loss(model, *settings, **shape), list(model.parameters())))


@pytest.mark.parametrize("prototypes", [0.0, 0.7])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_meta_gradients_equal_central_finite_differences(norm, steps, prototypes):
    # Rank labels jump from place to place, but not within a hundred-thousandth.
    model, inner, g = smooth(norm), InnerSteps(steps=steps, rate=0.5, top=TOP), generator(7)
    gradients = meta_gradients(model, inner, "label", prototypes)
    directions = [torch.randn(p.shape, generator=g, dtype=torch.float64) for p in model.parameters()]
    slope = sum(float((a * b).sum()) for a, b in zip(gradients, directions, strict=True))

    def moved(step: float) -> float:
        other = smooth(norm).requires_grad_(False)
        for p, d in zip(other.parameters(), directions, strict=True):
            p += step * d
        return float(meta_loss(other, inner, "label", prototypes))

    assert slope == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-6)


def test_the_second_outer_loss_is_that_of_prototypes_in_the_adapted_embedding_written_with_loops():
    model, inner = smooth(norm=True), InnerSteps(steps=2, rate=0.5, top=TOP)
    observations, queries, labels = tasks()
    adapted = adapt(model, fixed(model), observations, inner)
    embedded, _ = respond(model, adapted, torch.cat([observations, queries], 1), leading=6)
    losses = []
    for task in range(3):
        centres = [embedded[task, 2 * c : 2 * c + 2].mean(0) for c in range(3)]
        for item, label in zip(embedded[task, 6:], labels[task], strict=True):
            closeness = torch.stack([-(item - centre).square().sum() / 5**0.5 for centre in centres])
            losses.append(-closeness.log_softmax(0)[label])
    added = meta_loss(model, inner, "label", 0.7) - meta_loss(model, inner)
    assert float(added.detach()) == pytest.approx(0.7 * float(torch.stack(losses).mean()), rel=1e-6)


def one_task_after_the_other(model: Clusterer, inner: InnerSteps) -> Tensor:
    """The same loss without a task axis: what the batched form is compared with."""
    losses = []
    for observations, queries, labels in zip(*tasks(), strict=True):
        parameters = dict(model.named_parameters())
        for _ in range(inner.steps):
            embedded, logits = functional_call(model, parameters, (observations,))
            loss = likelihood_loss(logits, rank_pairs(embedded, inner.top))
            gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
            parameters = {n: p - inner.rate * g for (n, p), g in zip(parameters.items(), gradients, strict=True)}
        apart = {n: p[None] for n, p in parameters.items()}
        _, logits = respond(model, apart, torch.cat([observations, queries])[None], leading=6)
        losses.append(likelihood_loss(logits[0, 6:], label_pairs(labels).double()))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("norm", [False, True])
def test_all_tasks_at_once_equal_one_after_the_other(norm):
    model, inner = smooth(norm), InnerSteps(steps=2, rate=0.5, top=TOP)
    apart = one_task_after_the_other(model, inner)
    assert float(meta_loss(model, inner).detach()) == pytest.approx(float(apart.detach()), rel=1e-12)
    expected = torch.autograd.grad(apart, list(model.parameters()))
    for a, b in zip(meta_gradients(model, inner), expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_bfloat16_activations_leave_parameters_and_gradients_in_float32():
    body = build("mlp", (7,), norm="batch", hidden=(32, 32))
    model = Clusterer(body, body.width, 3)
    found = []
    for precision in ("float32", "bfloat16"):
        inner = InnerSteps(steps=2, rate=0.1, top=32, precision=precision)  # all alike: ranks depend on every digit
        gradients = meta_gradients(model, inner, shape=(7,))
        assert {g.dtype for g in gradients} == {torch.float32}
        found.append(torch.cat([g.flatten() for g in gradients]))
    assert not torch.equal(*found)
    assert torch.nn.functional.cosine_similarity(*found, dim=0) > 0.98


def test_pairs_by_rank_outside_need_no_labels():
    model, inner = smooth(norm=True), InnerSteps(steps=1, rate=0.5, top=TOP)
    one, other = (meta_loss(model, inner, "rank", classes=classes) for classes in (3, 1))
    assert one.item() == other.item() != meta_loss(model, inner, "label").item()


@pytest.mark.parametrize("settings", [{"steps": -1}, {"rate": 0.0}, {"rate": float("nan")}, {"top": 0}])
def test_steps_that_cannot_be_taken_are_refused(settings):
    with pytest.raises(InputError, match="inner steps of rate"):
        InnerSteps(**settings)
