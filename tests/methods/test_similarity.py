"""The similarity network of KCL and MCL against its definition."""

import torch
from small_sets import KNOWN, NOVEL, bags, generator, patterns

from medi.data.augment import to_float
from medi.methods import Plan
from medi.methods.bag_training import BagStage
from medi.methods.kcl import KCL
from medi.methods.similarity import Similarity, SimilarityNetwork, train_similarity
from medi.nn import build
from medi.nn.schedule import Schedule


def test_the_similarity_network_is_its_layers_on_concatenated_features():
    model = SimilarityNetwork(build("mlp", (5,), hidden=(6,))).double()
    images = torch.randn(7, 5, generator=generator(), dtype=torch.float64)
    z = model.network(images)
    pairs = torch.stack([torch.cat([z[i], z[j]]) for i in range(7) for j in range(7)])
    expected = model.last(model.norm(model.first(pairs)).relu()).view(7, 7, 2)
    assert (model.first.in_features, model.first.out_features, model.last.in_features) == (12, 24, 24)
    torch.testing.assert_close(model(images), expected)


def test_it_learns_which_unseen_items_share_their_class():
    # Judged in batches like those it learnt from, of three classes: it goes by the batch's own statistics.
    similarity = Similarity("mlp", classes=3, each=5, schedule=Schedule(120, rate=5e-3))
    model = train_similarity(KNOWN, similarity, Plan(3, 5))
    with torch.no_grad():
        same = model.train()(NOVEL.images).argmax(2)
    truth = NOVEL.labels[:, None] == NOVEL.labels
    assert (same == truth).float().mean() > 0.9  # two in three pairs differ


def test_the_clustering_network_begins_as_the_similarity_network_or_at_random():
    stage = BagStage(epochs=1, batch=15, schedule=Schedule(steps=1, rate=0.0))
    begun = []
    for start in ("similarity", "random"):
        method = KCL(Similarity("mlp", schedule=Schedule(steps=2)), start=start, stage=stage)
        learner = method.fit(KNOWN, Plan(3, 5))
        (model,) = learner.discover(NOVEL.images, bags(1)[0], 3, generator()).models
        begun.append(torch.equal(next(model.parameters()), next(learner.learnt.network.parameters())))
    assert begun == [True, False]


def test_classes_of_fewer_images_than_a_step_takes_are_learnt_from_too():
    few = patterns(4, each=3)
    network = train_similarity(few, Similarity("conv4", classes=4, schedule=Schedule(steps=1)), Plan(3, 1))
    assert network(to_float(few.images[:2])).shape == (2, 2, 2)
