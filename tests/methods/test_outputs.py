import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from medi.kmeans.balanced import equal_share_offsets
from medi.methods.outputs import OutputClustering, even_prior


def logits(seed: int, episodes: int = 2, n: int = 12, k: int = 3, scale: float = 3.0) -> torch.Tensor:
    return scale * torch.randn(episodes, n, k, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 30), st.integers(2, 6))
def test_offsets_give_every_cluster_the_same_share_of_the_bag(seed, scale, k):
    outputs = logits(seed, n=4 * k, k=k, scale=scale)
    offsets = equal_share_offsets(outputs, iterations=5000)
    shares = (outputs.double() + offsets).softmax(-1).sum(1)
    assert torch.allclose(shares, torch.full_like(shares, 4.0), atol=0.02)


def test_offsets_do_not_depend_on_what_is_added_to_an_item_or_to_a_cluster():
    outputs = logits(0)
    by_item, by_cluster = torch.randn(2, 12, 1), torch.tensor([5.0, -200.0, 30.0])
    assert torch.allclose(equal_share_offsets(outputs + by_item), equal_share_offsets(outputs), atol=1e-4)
    shifted = outputs + by_cluster + equal_share_offsets(outputs + by_cluster)
    plain = outputs + equal_share_offsets(outputs)
    assert torch.allclose(shifted.softmax(-1), plain.softmax(-1), atol=1e-3)


def test_observations_are_shared_out_equally_and_later_items_have_the_same_offsets():
    outputs = logits(1) + torch.tensor([4.0, 0.0, 0.0])  # the first output swallows nearly everything
    told, untold = (Outputs(outputs, equal_sizes=equal) for equal in (True, False))
    assert torch.bincount(told.labels[0], minlength=3).tolist() == [4, 4, 4]
    assert torch.bincount(untold.labels[0], minlength=3)[0] >= 8
    later = logits(2) + torch.tensor([4.0, 0.0, 0.0])
    assert torch.equal(told.answer(later).labels, (later + told.offsets).argmax(-1))
    assert torch.bincount(told.answer(later).labels.flatten(), minlength=3).max() < 16
    assert torch.equal(untold.answer(later).labels, later.argmax(-1))


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_later_items_get_the_posterior_of_an_even_prior(seed, k):
    generator = torch.Generator().manual_seed(seed)
    likelihood = torch.rand(8, k, generator=generator, dtype=torch.float64)  # of eight kinds of items, given a cluster
    likelihood /= likelihood.sum(0)
    prior = torch.rand(k, generator=generator, dtype=torch.float64) + 0.1
    joint = likelihood * prior / prior.sum()
    counts = (10_000 * joint.sum(1)).round().int()  # every kind as often as it occurs
    bag = joint.log().repeat_interleave(counts, 0)
    found = (joint.log() + even_prior(bag[None])[0]).softmax(-1)
    assert torch.allclose(found, likelihood / likelihood.sum(1, keepdim=True), atol=1e-2)


def test_a_network_that_is_sure_of_a_few_observations_too_many_in_a_cluster_answers_later_items_as_before():
    generator = torch.Generator().manual_seed(0)
    observed = torch.arange(5).repeat_interleave(torch.tensor([7, 5, 5, 4, 4]))
    asked = torch.arange(5).repeat_interleave(100)

    def outputs_for(classes, sureness):
        return (sureness * one_hot(classes, 5) + torch.randn(len(classes), 5, generator=generator))[None]

    told, untold = (Outputs(outputs_for(observed, 12.0), equal_sizes=equal) for equal in (True, False))
    later = outputs_for(asked, 4.0)
    right = [(one.answer(later).labels[0] == asked).float().mean() for one in (told, untold)]
    assert right[0] >= right[1] - 0.01 > 0.95


def test_outputs_that_say_the_same_of_every_item_fill_clusters_equally_without_confidence():
    told = Outputs(torch.tensor([9.0, 1.0, 0.0]).expand(1, 6, 3), equal_sizes=True)
    assert sorted(told.labels[0].tolist()) == [0, 0, 1, 1, 2, 2]
    assert torch.allclose(told.confidence, torch.tensor(1 / 3), atol=1e-4)


class Outputs(OutputClustering):
    """With the two methods that a clustering must have."""

    def assign(self, encoded, items):
        return self.answer(encoded)
