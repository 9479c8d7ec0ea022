"""RS: rank labels against sets, the joint loss against loops, and what stays frozen."""

import math
from dataclasses import replace

import pytest
import torch
from vectors import KNOWN, NOVEL, bags, generator

from medi.data.augment import augment
from medi.data.benchmarks import Benchmark
from medi.errors import InputError
from medi.methods import METHODS, Plan
from medi.methods.bag_training import Stage
from medi.methods.inner_steps import rank_pairs
from medi.methods.pretraining import Start, linear, started, turned
from medi.methods.rs_config import RSConfig
from medi.methods.rs_loss import Outputs, TwoHeads, joint_loss, shared_cluster_loss
from medi.nets import build, last_stage
from medi.runtime.context import Context
from medi.train.schedule import Schedule


def outputs(n: int, seed: int) -> Outputs:
    draw = [torch.randn(n, width, generator=generator(seed + width), dtype=torch.float64) for width in (8, 3, 2)]
    return Outputs(*draw)


def test_novel_items_are_similar_where_the_sets_of_their_five_largest_features_are_equal():
    features = torch.rand(40, 7, generator=generator())
    sets = [{i for i in range(7) if (row > row[i]).sum() < 5} for row in features]
    expected = torch.tensor([[float(a == b) for b in sets] for a in sets])
    assert 40 < expected.sum() < 1600
    assert torch.equal(rank_pairs(features, 5), expected)


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


def test_a_batch_without_novel_items_costs_what_the_known_ones_cost():
    view, other, labels = outputs(3, seed=0), outputs(3, seed=1), torch.tensor([0, 1, 2])
    loss = joint_loss(view, other, labels, top=2, consistency=0.0)
    assert float(loss) == pytest.approx(float(torch.nn.functional.cross_entropy(view.known, labels)))
    assert float(shared_cluster_loss(torch.empty(0, 4), torch.empty(0, 4), torch.empty(0, 0))) == 0.0


def test_a_cluster_of_certain_items_costs_a_finite_amount():
    certain = torch.eye(3)[torch.tensor([0, 0, 1])].requires_grad_()
    loss = shared_cluster_loss(certain, certain, torch.zeros(3, 3))
    loss.backward()
    assert loss.isfinite()
    assert certain.grad.isfinite().all()


def test_pairs_that_are_nearly_certain_and_wrong_are_still_pulled_apart():
    logits = torch.tensor([[17.0, 0.0], [17.0, 0.0]], requires_grad=True)  # the product is 1 - 8e-8
    p = logits.softmax(1)
    shared_cluster_loss(p, p, torch.eye(2)).backward()
    assert (logits.grad[:, 1] < -0.1).all()


def test_a_step_without_observations_is_refused():
    with pytest.raises(InputError, match="each=0 leaves a step without observations"):
        RSConfig(each=0)


def test_a_step_has_so_many_observations_for_each_class():
    sizes = []

    class Noted(Stage):
        def draw(self, items, generator):
            drawn = super().draw(items, generator)
            sizes.append(len(drawn))
            return drawn

    config = RSConfig(
        Start("classes", "mlp", schedule=Schedule(steps=1)), supervised=None, stage=Noted(1, 50, 2), known=8, each=2
    )
    learner = METHODS["rs"](config).fit(KNOWN, Plan(way=3, observations=5))
    learner.discover(NOVEL.images, bags(1)[0], 3, generator())
    assert sizes == [6] * len(sizes)
    assert sizes


def test_only_the_last_stage_and_the_heads_learn_after_the_start():
    config = RSConfig(
        Start("classes", "mlp", schedule=Schedule(steps=2)),
        supervised=Schedule(steps=3),
        stage=Stage(1, 50, 3, Schedule(steps=1, rate=0.1)),
        known=16,
    )
    learner = METHODS["rs"](config).fit(KNOWN, Plan(way=3, observations=5))
    (model,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
    assert isinstance(model, TwoHeads)
    moved = {
        name
        for (name, before), after in zip(learner.start.named_parameters(), model.network.parameters(), strict=True)
        if not torch.equal(before, after)
    }
    last = {id(parameter) for parameter in last_stage(learner.start).parameters()}
    assert moved == {name for name, parameter in learner.start.named_parameters() if id(parameter) in last}
    assert not torch.equal(model.known.weight, learner.head.weight)


def test_every_network_has_a_last_stage_that_is_part_of_it():
    for name, share in (
        ("conv4", 4),
        ("conv4-wide", 2),
        ("resnet18", 2),
        ("resnet18-padded", 2),
        ("resnet18-slim", 2),
        ("vgg16", 3),
        ("mlp", 20),
    ):
        network = build(name, (3, 32, 32))
        whole, last = ({id(p) for p in part.parameters()} for part in (network, last_stage(network)))
        assert last < whole
        sizes = [sum(p.numel() for p in part.parameters()) for part in (network, last_stage(network))]
        assert sizes[1] > sizes[0] / share


def test_a_quarter_of_the_images_is_turned_by_each_angle():
    images = torch.rand(8, 1, 4, 4, generator=generator())
    result = turned(images)
    for i, image in enumerate(result):
        assert torch.equal(image, torch.rot90(images[i], i // 2, (1, 2)))


def test_rotations_are_learnt_from_images_and_refused_for_vectors(glyphs: Benchmark):
    config = RSConfig(
        Start("rotations", "conv4", batch=16, schedule=Schedule(steps=2)),
        supervised=Schedule(steps=2),
        stage=Stage(1, 50, 2, Schedule(steps=1)),
        known=8,
    )
    augmentation = glyphs.facts.augmentation
    learner = METHODS["rs"](config).fit(glyphs.known, Plan(way=3, observations=1, augmentation=augmentation))
    bag = torch.tensor([[0, 20, 40]])
    assert learner.discover(glyphs.novel.images, bag, 3, generator()).confidence.isfinite().all()
    with pytest.raises(InputError, match="only images can be turned"):
        METHODS["rs"](replace(config, start=replace(config.start, network="mlp"))).fit(KNOWN, Plan(3, 1))


def test_rotations_also_turn_what_is_observed_where_the_start_says_so(glyphs: Benchmark, tmp_path):
    alone = Start("rotations", "conv4", batch=16, schedule=Schedule(steps=2))
    both = replace(alone, observed=True)
    plan = Plan(3, 1, augmentation=glyphs.facts.augmentation, context=Context(folder=tmp_path))
    told = replace(plan, observed=255 - glyphs.novel.images)

    def weights(start: Start, plan: Plan) -> list[float]:
        return next(started(glyphs.known, start, plan)[0].parameters()).flatten().tolist()

    assert weights(alone, told) == weights(alone, plan)
    assert weights(both, plan) == weights(alone, plan)
    learnt = weights(both, told)
    assert learnt != weights(both, plan)
    assert learnt == weights(both, told)  # kept apart from the others, and found again


def test_the_second_stage_may_have_batches_of_its_own(glyphs: Benchmark, tmp_path, monkeypatch):
    seen = []

    def counted(images, *rest):
        seen.append(len(images))
        return augment(images, *rest)

    monkeypatch.setattr("medi.methods.rs.augment", counted)
    start = Start("rotations", "conv4", batch=16, schedule=Schedule(steps=1))
    config = RSConfig(start, supervised=Schedule(steps=2), known=8)
    plan = Plan(3, 1, augmentation=glyphs.facts.augmentation, context=Context(folder=tmp_path))
    for settings in (config, replace(config, supervised_batch=4)):  # one folder: kept apart
        METHODS["rs"](settings).fit(glyphs.known, plan)
    assert seen == [16, 16, 4, 4]


def test_a_second_stage_is_kept_with_what_the_first_was_learnt_from(glyphs: Benchmark, tmp_path):
    start = Start("rotations", "conv4", batch=16, schedule=Schedule(steps=2), observed=True)
    rs = METHODS["rs"](RSConfig(start, supervised=Schedule(steps=2), known=8))
    plan = Plan(3, 1, augmentation=glyphs.facts.augmentation, context=Context(folder=tmp_path))
    first, second = (rs.fit(glyphs.known, replace(plan, observed=seen)) for seen in (None, glyphs.novel.images))
    for one, other in ((first.start, second.start), (first.head, second.head)):
        assert not torch.equal(next(one.parameters()), next(other.parameters()))


def test_a_long_training_on_a_bag_is_kept_with_what_the_start_was_learnt_from(glyphs: Benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr("medi.methods.bag_training.KEPT", 1)
    start = Start("rotations", "conv4", batch=16, schedule=Schedule(steps=2), observed=True)
    rs = METHODS["rs"](RSConfig(start, supervised=None, stage=Stage(1, 50, 2, Schedule(steps=1)), known=8))
    plan = Plan(3, 1, augmentation=glyphs.facts.augmentation, context=Context(folder=tmp_path))
    bag = torch.tensor([[0, 20, 40]])

    def weights(observed):
        learner = rs.fit(glyphs.known, replace(plan, observed=observed))
        (model,) = learner.discover(glyphs.novel.images, bag, 3, generator()).models
        return next(model.parameters())

    assert not torch.equal(weights(None), weights(glyphs.novel.images))


def test_a_second_stage_without_images_is_refused():
    with pytest.raises(InputError, match="supervised_batch=0"):
        RSConfig(supervised_batch=0)


def test_what_has_no_labels_can_only_be_turned():
    with pytest.raises(InputError, match="needs labels"):
        Start("classes", observed=True)


def test_a_prototypical_start_needs_images_enough_for_a_task():
    config = RSConfig(Start("prototypes", "mlp", batch=100, schedule=Schedule(steps=2)), supervised=None)
    assert METHODS["rs"](config).fit(KNOWN, Plan(way=3, observations=1)).network == "mlp"
    few = KNOWN.of_classes([0, 1])
    short = type(few)(few.images[:30], few.labels[:30], few.class_names)
    with pytest.raises(InputError, match="has 5 images"):
        METHODS["rs"](config).fit(short, Plan(way=2, observations=1))


def test_heads_follow_from_the_seed():
    one, same, other = (linear(4, 3, Context(seed=seed)).weight for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_heads_may_have_a_hidden_layer_and_learn():
    config = RSConfig(
        Start("classes", "mlp", schedule=Schedule(steps=2)),
        supervised=None,
        stage=Stage(1, 50, 3, Schedule(steps=1, rate=0.1)),
        known=16,
        hidden=8,
    )
    learner = METHODS["rs"](config).fit(KNOWN, Plan(way=3, observations=5))
    clustering = learner.discover(NOVEL.images, bags(1)[0], 3, generator())
    (model,) = clustering.models
    assert [tuple(layer.weight.shape) for layer in model.novel if isinstance(layer, torch.nn.Linear)] == [
        (8, learner.start.width),
        (3, 8),
    ]
    assert not torch.equal(model.known[0].weight, learner.head[0].weight)
    first, last = (layer.weight.detach().flatten()[:24] for layer in (learner.head[0], learner.head[-1]))
    assert abs(float(torch.corrcoef(torch.stack([first, last]))[0, 1])) < 0.9, (
        "layers of a head have draws of their own"
    )
    assert clustering.confidence.isfinite().all()
