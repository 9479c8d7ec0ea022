"""K-means on pixels and on the features of a supervised network."""

import torch
from small_sets import patterns

from medi.data.augment import to_float
from medi.methods import Plan
from medi.methods.kmeans import KMeans
from medi.methods.pretraining import Pretraining
from medi.train.schedule import Schedule


def test_pixels_are_clustered_as_they_are():
    known = patterns()
    learner = KMeans().fit(known, Plan(4, 2))
    assert learner.network is None
    assert torch.equal(learner.encode(known.images), to_float(known.images).flatten(1))


def test_supervised_features_lie_near_those_of_their_class():
    known = patterns()
    learner = KMeans(Pretraining(network="conv4", batch=32, schedule=Schedule(steps=15))).fit(known, Plan(3, 2))
    features = learner.encode(known.images)
    means = torch.stack([features[known.labels == c].mean(0) for c in range(4)])
    own = (features - means[known.labels]).square().sum(1).mean()
    assert own < 0.6 * (features[:, None] - means).square().sum(2).mean()
