"""RS: the joint loss against loops, what stays frozen, what is kept with what."""

import math
from dataclasses import replace

import pytest
import torch
from small_sets import KNOWN, NOVEL, bags, generator, patterns

from medi.core.errors import InputError
from medi.data.augment import augment
from medi.methods import Plan
from medi.methods.bag_training import BagStage
from medi.methods.pretraining import Pretraining
from medi.methods.rs import RS, Outputs, TwoHeads, joint_loss
from medi.nn import last_stage
from medi.nn.context import Context
from medi.nn.schedule import Schedule

VECTORS = RS(
    Pretraining("classes", "mlp", schedule=Schedule(steps=2)),
    supervised=None,
    stage=BagStage(1, 50, least_steps=3, schedule=Schedule(steps=1, rate=0.1)),
    known=16,
)
IMAGES = RS(
    Pretraining("rotations", "conv4", batch=16, schedule=Schedule(steps=2), observed=True),
    supervised=Schedule(steps=2),
    supervised_batch=8,
    stage=BagStage(1, 50, least_steps=2),
    known=8,
)


def outputs(n: int, seed: int) -> Outputs:
    draw = [torch.randn(n, width, generator=generator(seed + width), dtype=torch.float64) for width in (8, 3, 2)]
    return Outputs(*draw)


def test_the_joint_loss_is_its_three_terms_written_with_loops():
    view, other = outputs(7, seed=0), outputs(7, seed=100)
    labels = torch.tensor([0, 2, 1])
    ce = -sum(float(view.known[i].log_softmax(0)[labels[i]]) for i in range(3)) / 3
    p, q = view.novel[3:].softmax(1), other.novel[3:].softmax(1)
    sets = [set(row.topk(2).indices.tolist()) for row in view.features[3:]]
    bce = 0.0
    for i in range(4):
        for j in range(4):
            together = float(p[i] @ q[j])
            bce -= math.log(together if sets[i] == sets[j] else 1 - together) / 16
    consistency = float((view.known.softmax(1) - other.known.softmax(1)).square().mean())
    consistency += float((view.novel.softmax(1) - other.novel.softmax(1)).square().mean())
    loss = joint_loss(view, other, labels, top=2, consistency=3.0)
    assert float(loss) == pytest.approx(ce + bce + 3 * consistency)


def test_rank_labels_pass_no_gradient_to_the_features():
    view = outputs(5, seed=0)
    view.features.requires_grad_()
    view.novel.requires_grad_()
    joint_loss(view, outputs(5, seed=1), torch.tensor([0]), top=2, consistency=1.0).backward()
    assert view.features.grad is None
    assert view.novel.grad.abs().sum() > 0


@pytest.mark.parametrize("only_last", [True, False])
def test_only_the_last_stage_and_the_heads_learn_after_pretraining_unless_all_may(only_last):
    method = replace(VECTORS, supervised=Schedule(steps=3), only_last=only_last)
    learner = method.fit(KNOWN, Plan(way=3, observations=5))
    (model,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
    assert isinstance(model, TwoHeads)
    start = learner.learnt.network.named_parameters()
    moved = {
        name
        for (name, before), after in zip(start, model.network.parameters(), strict=True)
        if not torch.equal(before, after)
    }
    last = {id(parameter) for parameter in last_stage(learner.learnt.network).parameters()}
    free = {name for name, p in learner.learnt.network.named_parameters() if id(p) in last or not only_last}
    assert moved == free
    assert not torch.equal(model.known.weight, learner.learnt.head.weight)


def test_heads_may_have_a_hidden_layer_and_learn():
    learner = replace(VECTORS, hidden=8).fit(KNOWN, Plan(way=3, observations=5))
    (model,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
    layers = [layer for layer in model.novel if isinstance(layer, torch.nn.Linear)]
    assert [tuple(layer.weight.shape) for layer in layers] == [(8, learner.learnt.network.width), (3, 8)]
    assert not torch.equal(model.known[0].weight, learner.learnt.head[0].weight)
    first, last = (layer.weight.detach().flatten()[:24] for layer in (learner.learnt.head[0], learner.learnt.head[-1]))
    assert abs(float(torch.corrcoef(torch.stack([first, last]))[0, 1])) < 0.9, "each layer has draws of its own"


def test_the_second_stage_has_batches_of_its_own_and_is_kept_with_them(tmp_path, monkeypatch):
    seen = []

    def counted(images, *arguments):
        seen.append(len(images))
        return augment(images, *arguments)

    monkeypatch.setattr("medi.methods.pretraining.augment", counted)
    plan = Plan(3, 1, context=Context(folder=tmp_path))
    for method in (IMAGES, replace(IMAGES, supervised_batch=4), IMAGES):
        method.fit(patterns(), plan)
    assert seen == [16, 16, 8, 8, 4, 4]  # the first stage, then the second under either setting


@pytest.mark.parametrize("supervised", [Schedule(steps=2), None])
def test_later_stages_are_kept_with_what_the_first_was_learnt_from(supervised, tmp_path, monkeypatch):
    monkeypatch.setattr("medi.methods.bag_training.KEPT_FROM_STEPS", 1)
    known = patterns()
    plan = Plan(3, 1, context=Context(folder=tmp_path))
    method = replace(IMAGES, supervised=supervised)

    def learnt(observed: torch.Tensor | None) -> list[torch.Tensor]:
        learner = method.fit(known, replace(plan, observed=observed))
        (model,) = learner.discover(known.images, torch.tensor([[0, 1, 2]]), 3, generator()).models
        assert model(known.images[:2] / 255).isfinite().all()
        return [next(module.parameters()) for module in (learner.learnt.network, model)]

    for one, other in zip(learnt(None), learnt(255 - known.images), strict=True):
        assert not torch.equal(one, other)
    assert len(list(tmp_path.glob("*.safetensors"))) == 4 + 2 * (supervised is not None)


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(InputError, match="supervised_batch=0"):
        RS(supervised_batch=0)
