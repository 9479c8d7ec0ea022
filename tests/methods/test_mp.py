from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from medi.data.augment import to_float
from medi.data.imageset import ImageSet
from medi.errors import InputError
from medi.methods import METHODS, Plan, method_of
from medi.methods.cata_views import ViewsConfig
from medi.methods.mp import MP, MPConfig, SupervisedStart, prototype_loss
from medi.runtime.context import Context
from medi.train.checkpoint import load_checkpoint
from medi.train.schedule import Schedule


def blobs(classes: int = 6, each: int = 25, seed: int = 0) -> ImageSet:
    """Vectors around well separated class means, hidden among noise dimensions."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.zeros(classes, 16)
    means[:, :4] = 6 * torch.randn(classes, 4, generator=generator)
    items = means.repeat_interleave(each, 0) + torch.randn(classes * each, 16, generator=generator)
    return ImageSet(items, torch.arange(classes).repeat_interleave(each), tuple(map(str, range(classes))))


@pytest.mark.parametrize("distance", ["squared", "euclidean"])
def test_the_loss_equals_the_papers_formula_written_with_loops(distance):
    generator = torch.Generator().manual_seed(0)
    support = torch.randn(2, 3, 4, 5, generator=generator, dtype=torch.float64)
    query = torch.randn(2, 3, 6, 5, generator=generator, dtype=torch.float64)
    total = 0.0
    for task in range(2):
        prototypes = support[task].mean(1)
        for label in range(3):
            for item in query[task, label]:
                gaps = np.array([float((item - p).norm()) for p in prototypes])
                gaps = gaps**2 if distance == "squared" else gaps
                total += gaps[label] + np.log(np.exp(-gaps).sum())
    assert float(prototype_loss(support, query, distance)) == pytest.approx(total / 36, rel=1e-5)


def test_the_loss_has_the_gradient_that_finite_differences_give():
    generator = torch.Generator().manual_seed(1)
    support = torch.randn(1, 3, 2, 4, generator=generator, requires_grad=True)
    query = torch.randn(1, 3, 2, 4, generator=generator)
    direction = torch.randn(support.shape, generator=generator)
    (gradient,) = torch.autograd.grad(prototype_loss(support, query), support)
    step = 1e-2
    ahead, behind = (prototype_loss(support + s * step * direction, query) for s in (1, -1))
    slope = float((ahead - behind).detach()) / (2 * step)
    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-2)


def test_training_on_known_vectors_helps_to_group_unseen_ones():
    known, novel = blobs(seed=0), blobs(seed=1)
    config = MPConfig(network="mlp", schedule=Schedule(steps=150), queries=5)
    learner = MP(config).fit(known, Plan(way=4, observations=3, equal_sizes=True))
    encoded = learner.encode(novel.images)
    items = torch.cat([torch.arange(c * 25, c * 25 + 3) for c in range(4)])[None]
    clustering = learner.discover(encoded, items, 4, torch.Generator().manual_seed(0))
    found = clustering.labels[0].view(4, 3)
    assert (found == found[:, :1]).all()
    assert len(found[:, 0].unique()) == 4


def test_tasks_of_one_view_train_it_too_and_the_views_are_found_once(tmp_path):
    known = blobs()
    views = ViewsConfig(network="mlp", hidden=16, batch=32, schedule=Schedule(steps=20, rate=0.01))
    config = MPConfig(network="mlp", queries=4, schedule=Schedule(steps=5))
    plan = Plan(3, 2, sampler="cata", views=views, context=Context(folder=tmp_path))
    by_view = MP(config).fit(known, plan).encode(known.images[:5])
    uniform = MP(config).fit(known, replace(plan, sampler="uniform")).encode(known.images[:5])
    assert not torch.equal(by_view, uniform)
    MP(replace(config, schedule=Schedule(steps=6))).fit(known, plan)
    assert len(list(tmp_path.glob("cata-*.safetensors"))) == 1
    assert len(list(tmp_path.glob("mp-*.safetensors"))) == 3


def test_a_supervised_start_is_made_once_and_shared_by_samplers(tmp_path):
    known = blobs()
    start = SupervisedStart(batch=16, schedule=Schedule(steps=30, rate=0.01))
    views = ViewsConfig(network="mlp", hidden=16, batch=32, schedule=Schedule(steps=10, rate=0.01))
    config = MPConfig(network="mlp", queries=4, start=start, schedule=Schedule(steps=1, rate=0.0))
    plan = Plan(3, 2, views=views, context=Context(folder=tmp_path))
    for sampler in ("uniform", "cata"):
        MP(config).fit(known, replace(plan, sampler=sampler))
    (classifier,) = (load_checkpoint(path)[0] for path in tmp_path.glob("classifier-*.safetensors"))
    after = [load_checkpoint(path)[0] for path in tmp_path.glob("mp-*.safetensors")]
    assert len(after) == 2
    for name, tensor in classifier.items():
        if name.startswith("model/0.") and name.endswith(("weight", "bias")):
            for tensors in after:  # at rate zero the tasks change nothing: both are the start itself
                assert torch.equal(tensors[name.replace("model/0.", "model/")], tensor)


def test_the_same_seed_learns_the_same_and_another_seed_something_else():
    known = blobs()
    config = MPConfig(network="mlp", schedule=Schedule(steps=5))
    encode = [
        MP(config).fit(known, Plan(3, 2, context=Context(seed=seed))).encode(known.images[:10]) for seed in (0, 0, 1)
    ]
    assert torch.equal(encode[0], encode[1])
    assert not torch.equal(encode[0], encode[2])


def test_an_image_is_encoded_on_its_own(glyphs):
    known = glyphs.known.of_classes(range(8))
    learner = MP(MPConfig(schedule=Schedule(steps=3), queries=5)).fit(known, Plan(5, 2))
    images = glyphs.novel.images[:20]
    alone = torch.cat([learner.encode(image[None]) for image in images])
    assert torch.allclose(learner.encode(images), alone, atol=1e-4)


def test_turned_classes_are_trained_on_but_not_counted_at_discovery(glyphs):
    known = glyphs.known.of_classes(range(6))
    config = MPConfig(rotations=True, way=20, queries=2, schedule=Schedule(steps=2))
    learner = MP(config).fit(known, Plan(4, 2))  # 20-way tasks need the 24 turned classes
    assert learner.encode(known.images[:3]).shape == (3, 256)


def test_confidence_is_a_probability_and_falls_between_two_groups():
    known = blobs()
    learner = METHODS["kmeans"](METHODS["kmeans"].preset("default")).fit(known, Plan(2, 3))
    encoded = torch.cat([known.images, known.images[[0, 1, 2, 30, 31, 32]].mean(0, keepdim=True)])
    clustering = learner.discover(encoded, torch.tensor([[0, 1, 2, 30, 31, 32]]), 2, torch.Generator().manual_seed(0))
    near, between = clustering.assign(encoded, torch.tensor([[3, 150]])).confidence[0]
    assert float(between) == pytest.approx(0.5, abs=1e-3)
    assert 0.9 < float(near) <= 1
    assert ((clustering.confidence >= 0) & (clustering.confidence <= 1)).all()


def test_a_known_class_with_one_image_or_none_labelled_does_no_harm():
    known = blobs()
    single = ImageSet(
        torch.cat([known.images, torch.zeros(3, 16)]),
        torch.cat([known.labels, torch.tensor([6, -1, -1])]),
        (*known.class_names, "rare"),
    )
    learner = METHODS["kmeans"](METHODS["kmeans"].preset("default")).fit(single, Plan(3, 5))
    clustering = learner.discover(single.images, torch.tensor([[0, 1, 30, 31]]), 2, torch.Generator().manual_seed(0))
    assert clustering.confidence.isfinite().all()
    alone = ImageSet(torch.randn(2, 4), torch.tensor([0, 1]), ("a", "b"))
    with pytest.raises(InputError, match="two images"):
        METHODS["kmeans"](METHODS["kmeans"].preset("default")).fit(alone, Plan(2, 1))


def test_distances_keep_their_precision_under_autocast():
    support, query = torch.randn(1, 3, 2, 64), torch.randn(1, 3, 4, 64)
    exact = prototype_loss(support, query)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(prototype_loss(support, query), exact, rtol=1e-5)


def test_pixels_are_clustered_as_they_are(glyphs):
    learner = METHODS["kmeans"](METHODS["kmeans"].preset("default")).fit(glyphs.known, Plan(5, 5))
    images = glyphs.novel.images[:7]
    assert torch.equal(learner.encode(images), to_float(images).flatten(1))


def test_supervised_features_train_and_cluster(glyphs):
    known = glyphs.known.of_classes(range(10))
    config = METHODS["kmeans"].preset("features")

    learner = METHODS["kmeans"](replace(config, schedule=Schedule(steps=20), batch=64)).fit(known, Plan(5, 2))
    assert learner.network == "conv4"
    features = learner.encode(known.images)
    means = torch.stack([features[known.labels == c].mean(0) for c in range(10)])
    own = (features - means[known.labels]).square().sum(1).mean()
    assert own < (features[:, None] - means).square().sum(2).mean()


def test_the_balance_prior_is_used_only_where_it_is_true():
    known = blobs()
    config = MPConfig(network="mlp", schedule=Schedule(steps=1), queries=5)
    assert MP(config).fit(known, Plan(3, 2, equal_sizes=True)).balanced
    assert not MP(config).fit(known, Plan(3, 2)).balanced


def test_the_oracle_uses_the_groups_it_is_given():
    known = blobs()
    learner = METHODS["kmeans"](METHODS["kmeans"].preset("default")).fit(known, Plan(2, 3))
    encoded = learner.encode(known.images)
    bag, groups = torch.tensor([[0, 30, 1, 31]]), torch.tensor([[0, 1, 1, 0]])
    clustering = learner.oracle(encoded, bag, groups, 2)
    expected = torch.stack([encoded[[0, 31]].mean(0), encoded[[30, 1]].mean(0)])
    nearest = functional.pairwise_distance(encoded[[5]], expected).argmin()
    assert clustering.assign(encoded, torch.tensor([[5]])).labels.item() == nearest


def test_every_method_has_a_default_config_and_its_own_name():
    for name, method in METHODS.items():
        assert method.name == name
        assert "default" in method.presets
        for dataset, config in method.chosen.items():
            assert method.preset("default", dataset) is method.presets[config]


def test_unknown_methods_and_configs_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'kmeans'"):
        method_of("kmean")
    with pytest.raises(InputError, match=r"unknown config of mp 'papre'.*did you mean 'paper'"):
        MP.preset("papre")
    with pytest.raises(TypeError):
        MPConfig(netwrk="conv4")
