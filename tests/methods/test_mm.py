from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.func import vmap

from medi.data.augment import augment
from medi.data.images import ImageSet
from medi.errors import InputError
from medi.methods import Plan
from medi.methods.mm import MM, Clusterer, MMConfig, adapt, outer_loss, pair_loss, rank_pairs
from medi.metrics import score_episodes
from medi.nets import BatchStatisticsNorm
from medi.tasks import UniformSampler
from medi.train.loop import Desk
from medi.train.schedule import Schedule

QUICK = MMConfig(network="mlp", inner_steps=3, inner_rate=0.1, tasks=4, top=3, schedule=Schedule(steps=3))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def blobs(classes: int = 6, each: int = 25, seed: int = 0) -> ImageSet:
    means = 3 * torch.randn(classes, 8, generator=generator(seed))
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 8, generator=generator(seed + 1))
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


def hidden_in_noise(plain: ImageSet) -> ImageSet:
    """The same classes with 24 dimensions of strong noise beside theirs, which a network can learn to ignore."""
    noise = 3 * torch.randn(len(plain), 24, generator=generator(9))
    return replace(plain, images=torch.cat([plain.images, noise], 1))


def test_rank_pairs_compare_sets_of_the_largest_features():
    features = torch.randn(20, 6, generator=generator())
    sets = [set(row.topk(3).indices.tolist()) for row in features]
    expected = torch.tensor([[float(a == b) for a in sets] for b in sets])
    assert torch.equal(rank_pairs(features, 3), expected)
    batched = vmap(lambda f: rank_pairs(f, 3))(features.view(4, 5, 6))
    assert torch.equal(batched, torch.stack([rank_pairs(f, 3) for f in features.view(4, 5, 6)]))


def test_asking_for_more_features_than_there_are_makes_all_similar():
    assert rank_pairs(torch.randn(4, 3), 10).all()


def test_the_pair_loss_is_equation_3_written_with_loops():
    logits = torch.randn(5, 3, generator=generator(), dtype=torch.float64)
    similar = torch.randint(0, 2, (5, 5), generator=generator()).double()
    p, total = logits.softmax(1), 0.0
    for i in range(5):
        for j in range(5):
            score = float(p[i] @ p[j])
            total -= float(
                similar[i, j] * torch.tensor(score).log() + (1 - similar[i, j]) * torch.tensor(1 - score).log()
            )
    assert float(pair_loss(logits, similar)) == pytest.approx(total / 25, rel=1e-5)


def smooth(norm: bool) -> Clusterer:
    """A small network without kinks, in float64, so that finite differences tell the truth."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 3, padding=1)] + [BatchStatisticsNorm(3)] * norm + [nn.Softplus(), nn.AvgPool2d(3)]
    return Clusterer(nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 5), nn.Softplus()), 5, 3).double()


def tasks(count: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    g = generator(4)
    observations = torch.randn(count, 6, 1, 6, 6, generator=g, dtype=torch.float64)
    queries = torch.randn(count, 9, 1, 6, 6, generator=g, dtype=torch.float64)
    groups = torch.arange(3).repeat_interleave(2).expand(count, 6)
    return observations, queries, groups, torch.arange(3).repeat_interleave(3).expand(count, 9)


def meta_loss(model: Clusterer, parameters: dict, config: MMConfig, loop: bool = False) -> Tensor:
    """The mean outer loss with fixed pair labels inside: recomputed rank labels would jump."""

    def one(observations: Tensor, queries: Tensor, groups: Tensor, labels: Tensor) -> Tensor:
        similar = (groups[:, None] == groups).double()
        adapted = adapt(model, parameters, observations, config, similar)
        return outer_loss(model, adapted, observations, queries, labels, replace(config, inner_steps=0))

    if loop:
        return torch.stack([one(*task) for task in zip(*tasks(), strict=True)]).mean()
    return vmap(one)(*tasks()).mean()


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("steps", [1, 3])
def test_meta_gradients_equal_central_finite_differences(norm, steps):
    model = smooth(norm)
    config = MMConfig(inner_steps=steps, inner_rate=0.5)
    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad(meta_loss(model, parameters, config), list(parameters.values()))
    g = generator(7)
    directions = [torch.randn(p.shape, generator=g, dtype=torch.float64) for p in parameters.values()]
    slope = sum(float((a * b).sum()) for a, b in zip(gradients, directions, strict=True))

    def moved(step: float) -> float:
        shifted = {n: (p + step * d).detach() for (n, p), d in zip(parameters.items(), directions, strict=True)}
        return float(meta_loss(model, shifted, config).detach())

    assert slope == pytest.approx((moved(1e-5) - moved(-1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("norm", [False, True])
def test_all_tasks_at_once_equal_one_after_the_other(norm):
    model = smooth(norm)
    parameters = dict(model.named_parameters())
    config = MMConfig(inner_steps=2, inner_rate=0.5)
    together, apart = (meta_loss(model, parameters, config, loop) for loop in (False, True))
    assert float(together.detach()) == pytest.approx(float(apart.detach()), rel=1e-12)
    for a, b in zip(
        torch.autograd.grad(together, list(parameters.values())),
        torch.autograd.grad(apart, list(parameters.values())),
        strict=True,
    ):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_first_order_ignores_how_the_steps_depend_on_their_start():
    model = smooth(norm=True)
    parameters = dict(model.named_parameters())
    exact, constant = (
        torch.autograd.grad(
            meta_loss(model, parameters, MMConfig(inner_steps=2, inner_rate=0.5, first_order=first)),
            list(parameters.values()),
        )
        for first in (False, True)
    )
    assert not all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(exact, constant, strict=True))


def test_adapting_lowers_the_inner_loss():
    model = smooth(norm=True)
    observations, _, groups, _ = (t[0] for t in tasks())
    similar = (groups[:, None] == groups).double()
    start = {n: p.detach() for n, p in model.named_parameters()}

    def loss(parameters: dict) -> float:
        return float(pair_loss(torch.func.functional_call(model, parameters, (observations,))[1], similar))

    after = adapt(model, start, observations, MMConfig(inner_steps=10, inner_rate=0.3), similar)
    assert loss(after) < loss(start)


def test_queries_are_answered_on_their_own():
    known = blobs()
    learner = MM(QUICK).fit(known, Plan(3, 3, queries=5))
    bag = torch.tensor([[0, 1, 2, 25, 26, 27, 50, 51, 52]])
    clustering = learner.discover(known.images, bag, 3, generator())
    queries = torch.tensor([[5, 30, 60, 6, 31]])
    together = clustering.assign(known.images, queries)
    for i in range(5):
        alone = clustering.assign(known.images, queries[:, i : i + 1])
        assert torch.allclose(alone.confidence, together.confidence[:, i : i + 1], atol=1e-5)
    assert clustering.refine(known.images, queries).labels.shape == (1, 5)


def test_training_makes_the_steps_end_in_better_clusters_than_they_did_before():
    known, novel = (hidden_in_noise(blobs(40, seed=seed)) for seed in (0, 50))
    task = UniformSampler(novel.labels, 3, 5, 10).sample(40, generator())
    bag, query = task.support.flatten(1), task.query.flatten(1)

    def found(steps: int) -> float:
        schedule = Schedule(steps=steps, rate=3e-3, shape="constant")
        learner = MM(replace(QUICK, inner_steps=5, tasks=8, schedule=schedule)).fit(known, Plan(3, 5, queries=10))
        clustering = learner.discover(novel.images, bag, 3, generator())
        return float(score_episodes(task.query_labels, clustering.assign(novel.images, query).labels).acc.mean())

    assert found(60) > found(1) + 0.05


def test_the_oracle_goes_by_the_groups_it_is_given():
    known = blobs()
    learner = MM(QUICK).fit(known, Plan(2, 3, queries=5))
    bag, groups = torch.tensor([[0, 1, 25, 26]]), torch.tensor([[0, 0, 1, 1]])
    right, wrong = (learner.oracle(known.images, bag, g, 2) for g in (groups, groups[:, [0, 2, 1, 3]]))
    assert not torch.allclose(right.confidence, wrong.confidence)


def test_an_interrupted_training_continues_bit_for_bit(tmp_path, monkeypatch):
    known, plan = blobs(), Plan(3, 3, queries=5)
    long = replace(QUICK, schedule=Schedule(steps=30))
    whole = MM(long).fit(known, plan)
    calls = 0
    real = augment

    def interrupted(*arguments):
        nonlocal calls
        calls += 1
        if calls == 28:
            raise KeyboardInterrupt
        return real(*arguments)

    interruptible = replace(plan, desk=Desk(folder=tmp_path, checkpoint_seconds=0))
    monkeypatch.setattr("medi.methods.mm.augment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MM(long).fit(known, interruptible)
    monkeypatch.undo()
    continued = MM(long).fit(known, interruptible)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, continued.model.state_dict()[name]), name


def test_a_diverging_training_stops_with_the_step_and_the_rate():
    wild = replace(QUICK, inner_rate=1e30, schedule=Schedule(steps=50, rate=1e3))
    with pytest.raises(InputError, match=r"mm diverged before step .* lower the rate"):
        MM(wild).fit(blobs(), Plan(3, 3, queries=5))


def test_another_number_of_classes_than_it_was_trained_for_is_refused():
    learner = MM(QUICK).fit(blobs(), Plan(3, 3, queries=5))
    with pytest.raises(InputError, match="trained to tell 3 classes apart, not 4"):
        learner.discover(blobs().images, torch.arange(12)[None], 4, generator())
