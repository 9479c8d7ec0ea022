from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from medi.errors import InputError
from medi.methods.inner_steps import (
    Clusterer,
    InnerSteps,
    Parameters,
    adapt,
    label_pairs,
    outer_loss,
    pair_loss,
    rank_pairs,
    respond,
)
from medi.nets import BatchStatisticsNorm, build


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rank_pairs_compare_sets_of_the_largest_features():
    features = torch.randn(20, 6, generator=generator())
    sets = [set(row.topk(3).indices.tolist()) for row in features]
    expected = torch.tensor([[float(a == b) for a in sets] for b in sets])
    assert torch.equal(rank_pairs(features, 3), expected)
    batched = rank_pairs(features.view(4, 5, 6), 3)
    assert torch.equal(batched, torch.stack([rank_pairs(f, 3) for f in features.view(4, 5, 6)]))


def test_asking_for_more_features_than_there_are_makes_all_similar():
    assert rank_pairs(torch.randn(4, 3), 10).all()


def test_the_pair_loss_is_equation_3_written_with_loops():
    logits = torch.randn(2, 5, 3, generator=generator(), dtype=torch.float64)
    similar = torch.randint(0, 2, (2, 5, 5), generator=generator()).double()
    p, total = logits.softmax(-1), torch.zeros(2, dtype=torch.float64)
    for task in range(2):
        for i in range(5):
            for j in range(5):
                score, s = p[task, i] @ p[task, j], similar[task, i, j]
                total[task] -= s * score.log() + (1 - s) * (1 - score).log()
    assert torch.allclose(pair_loss(logits, similar), total / 25)


def smooth(norm: bool) -> Clusterer:
    """A small network without kinks, in float64, so that finite differences tell the truth."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3, padding=1)] + [BatchStatisticsNorm(3)] * norm + [nn.Softplus(), nn.AvgPool2d(3)]
    return Clusterer(nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 5), nn.Softplus()), 5, 3).double()


def tasks(shape: tuple[int, ...] = (1, 6, 6), count: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Observations, queries, classes of the queries, and pair labels of the observations."""
    g = generator(4)
    observations = torch.randn(count, 6, *shape, generator=g, dtype=torch.float64)
    queries = torch.randn(count, 9, *shape, generator=g, dtype=torch.float64)
    groups = torch.arange(3).repeat_interleave(2).expand(count, 6)
    return observations, queries, torch.arange(3).repeat_interleave(3).expand(count, 9), label_pairs(groups).double()


def meta_loss(
    model: Clusterer,
    start: Parameters,
    inner: InnerSteps,
    shape: tuple[int, ...] = (1, 6, 6),
    prototypes: float = 0.0,
) -> Tensor:
    """With fixed pair labels inside: recomputed rank labels would jump."""
    *batch, similar = tasks(shape)
    return outer_loss(model, start, *batch, inner, "label", similar, prototypes=prototypes, way=3)


def meta_gradients(
    model: Clusterer, inner: InnerSteps, shape: tuple[int, ...] = (1, 6, 6), prototypes: float = 0.0
) -> list[Tensor]:
    start = dict(model.named_parameters())
    return list(torch.autograd.grad(meta_loss(model, start, inner, shape, prototypes), list(start.values())))


@pytest.mark.parametrize("prototypes", [0.0, 0.7])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_meta_gradients_equal_central_finite_differences(norm, steps, recompute, prototypes):
    model, inner = smooth(norm), InnerSteps(steps=steps, rate=0.5, recompute=recompute)
    start, g = dict(model.named_parameters()), generator(7)
    gradients = meta_gradients(model, inner, prototypes=prototypes)
    directions = [torch.randn(p.shape, generator=g, dtype=torch.float64) for p in start.values()]
    slope = sum(float((a * b).sum()) for a, b in zip(gradients, directions, strict=True))

    def moved(step: float) -> float:
        shifted = {n: (p + step * d).detach() for (n, p), d in zip(start.items(), directions, strict=True)}
        return float(meta_loss(model, shifted, inner, prototypes=prototypes))

    assert slope == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-6)


def test_the_second_outer_loss_is_that_of_prototypes_in_the_adapted_embedding_written_with_loops():
    model, inner = smooth(norm=True), InnerSteps(steps=2, rate=0.5)
    observations, queries, labels, similar = tasks()
    start = {name: value.detach() for name, value in model.named_parameters()}
    adapted = adapt(model, start, observations, inner, similar)
    embedded, _ = respond(model, adapted, torch.cat([observations, queries], 1), leading=6)
    losses = []
    for task in range(3):
        centres = [embedded[task, 2 * c : 2 * c + 2].mean(0) for c in range(3)]
        for item, label in zip(embedded[task, 6:], labels[task], strict=True):
            closeness = torch.stack([-(item - centre).square().sum() / 5**0.5 for centre in centres])
            losses.append(-closeness.log_softmax(0)[label])
    added = meta_loss(model, start, inner, prototypes=0.7) - meta_loss(model, start, inner)
    assert float(added) == pytest.approx(0.7 * float(torch.stack(losses).mean()), rel=1e-6)


def one_task_after_the_other(model: Clusterer, inner: InnerSteps) -> Tensor:
    """The same loss without a task axis: what the batched form is compared with."""
    losses = []
    for observations, queries, labels, similar in zip(*tasks(), strict=True):
        parameters = dict(model.named_parameters())
        for _ in range(inner.steps):
            _, logits = functional_call(model, parameters, (observations,))
            gradients = torch.autograd.grad(pair_loss(logits, similar), list(parameters.values()), create_graph=True)
            parameters = {n: p - inner.rate * g for (n, p), g in zip(parameters.items(), gradients, strict=True)}
        apart = {n: p[None] for n, p in parameters.items()}
        _, logits = respond(model, apart, torch.cat([observations, queries])[None], leading=6)
        losses.append(pair_loss(logits[0, 6:], label_pairs(labels).double()))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("norm", [False, True])
def test_all_tasks_at_once_equal_one_after_the_other(norm):
    model, inner = smooth(norm), InnerSteps(steps=2, rate=0.5)
    start = dict(model.named_parameters())
    apart = one_task_after_the_other(model, inner)
    assert float(meta_loss(model, start, inner).detach()) == pytest.approx(float(apart.detach()), rel=1e-12)
    expected = torch.autograd.grad(apart, list(start.values()))
    for a, b in zip(meta_gradients(model, inner), expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("network", "shape"), [("conv4", (1, 16, 16)), ("mlp", (7,))])
def test_steps_taken_again_give_the_same_gradients_as_steps_remembered(network, shape):
    body = build(network, shape, norm="batch")
    model = Clusterer(body, body.width, 3).double()
    kept, again = (meta_gradients(model, InnerSteps(steps=2, rate=0.1, recompute=r), shape) for r in (False, True))
    for a, b in zip(kept, again, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-13)


def test_first_order_gradients_are_those_at_the_end_of_the_steps():
    model, inner = smooth(norm=True), InnerSteps(steps=2, rate=0.5, first_order=True)
    observations, queries, labels, similar = tasks()
    start = {name: value.detach() for name, value in model.named_parameters()}
    end = {n: v.detach().requires_grad_() for n, v in adapt(model, start, observations, inner, similar).items()}
    _, logits = respond(model, end, torch.cat([observations, queries], 1), leading=6)
    loss = pair_loss(logits[:, 6:], label_pairs(labels).double()).mean()
    for a, b in zip(meta_gradients(model, inner), torch.autograd.grad(loss, list(end.values())), strict=True):
        assert torch.allclose(a, b.sum(0), rtol=1e-9, atol=1e-12)
    exact = meta_gradients(model, replace(inner, first_order=False))
    assert not torch.allclose(exact[0], meta_gradients(model, inner)[0], rtol=1e-3)


def test_adapting_lowers_the_inner_loss_of_every_task():
    model, (observations, _, _, similar) = smooth(norm=True), tasks()
    start = {n: p.detach() for n, p in model.named_parameters()}

    def losses(steps: int) -> Tensor:
        after = adapt(model, start, observations, InnerSteps(steps=steps, rate=0.3), similar)
        assert not any(value.requires_grad for value in after.values())
        return pair_loss(respond(model, after, observations)[1], similar)

    assert (losses(10) < losses(0)).all()


def test_bfloat16_activations_leave_parameters_and_gradients_in_float32():
    body = build("mlp", (7,), norm="batch", hidden=(32, 32))
    model = Clusterer(body, body.width, 3)
    observations, queries, labels, similar = (t.float() if t.is_floating_point() else t for t in tasks((7,)))
    start, found = dict(model.named_parameters()), []
    for precision in ("float32", "bfloat16"):
        inner = InnerSteps(steps=2, rate=0.1, precision=precision, recompute=precision == "bfloat16")
        loss = outer_loss(model, start, observations, queries, labels, inner, "label", similar)
        gradients = torch.autograd.grad(loss, list(start.values()))
        assert {g.dtype for g in gradients} == {torch.float32}
        found.append(torch.cat([g.flatten() for g in gradients]))
    assert not torch.equal(*found)
    assert torch.nn.functional.cosine_similarity(*found, dim=0) > 0.98


def test_pairs_by_rank_outside_need_no_labels():
    model, (observations, queries, labels, similar) = smooth(norm=True), tasks()
    start = dict(model.named_parameters())
    inner = InnerSteps(steps=1, rate=0.5, top=2)
    one, other = (
        outer_loss(model, start, observations, queries, y, inner, "rank", similar) for y in (labels, labels * 0)
    )
    assert one.item() == other.item()
    assert one.item() != outer_loss(model, start, observations, queries, labels, inner, "label", similar).item()


@pytest.mark.parametrize("settings", [{"steps": -1}, {"rate": 0.0}, {"rate": float("nan")}, {"top": 0}])
def test_steps_that_cannot_be_taken_are_refused(settings):
    with pytest.raises(InputError, match="inner steps of rate"):
        InnerSteps(**settings)
