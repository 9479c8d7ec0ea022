"""KCL and MCL: their losses against loops, their network against its definition."""

import math

import pytest
import torch
from torch.nn.functional import binary_cross_entropy

from medi.methods import METHODS
from medi.methods.inner_steps import pair_loss
from medi.methods.kcl import contrastive_loss
from medi.methods.similarity import SimilarityNetwork
from medi.nets import build

LOSSES = {"kcl": contrastive_loss, "mcl": pair_loss}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def case(n: int = 6, k: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    logits = 2 * torch.randn(n, k, generator=generator(), dtype=torch.float64)
    return logits, torch.randint(0, 2, (n, n), generator=generator(1)).double()


def test_the_similarity_network_is_its_layers_on_concatenated_features():
    model = SimilarityNetwork(build("mlp", (5,), hidden=(6,))).double()
    images = torch.randn(7, 5, generator=generator(), dtype=torch.float64)
    z = model.network(images)
    pairs = torch.stack([torch.cat([z[i], z[j]]) for i in range(7) for j in range(7)])
    expected = model.last(model.norm(model.first(pairs)).relu()).view(7, 7, 2)
    assert (model.first.in_features, model.first.out_features, model.last.in_features) == (12, 24, 24)
    torch.testing.assert_close(model(images), expected)


def test_the_loss_of_kcl_is_its_formula_written_with_loops():
    logits, similar = case()
    p, total = logits.softmax(1).tolist(), 0.0
    for i in range(6):
        for j in range(6):
            divergence = sum(a * math.log(a / b) for a, b in zip(p[i], p[j], strict=True))
            total += divergence if similar[i, j] else max(0.0, 2 - divergence)
    assert float(contrastive_loss(logits, similar)) == pytest.approx(total / 36)


def test_kcl_takes_no_gradient_through_the_first_of_a_pair():
    logits, similar = case()
    logits.requires_grad_()
    contrastive_loss(logits, similar).backward()
    first, second = logits.detach(), logits.detach().clone().requires_grad_()
    p, log_q = first.softmax(1), second.log_softmax(1)
    divergence = (p * p.log()).sum(1)[:, None] - torch.einsum("ik,jk->ij", p, log_q)
    torch.where(similar > 0, divergence, (2 - divergence).clamp(min=0)).mean().backward()
    torch.testing.assert_close(logits.grad, second.grad)


def test_the_loss_of_mcl_is_the_cross_entropy_of_sharing_a_cluster():
    logits, similar = case()
    p = logits.softmax(1)
    expected = [binary_cross_entropy((p[i] * p[j]).sum(), similar[i, j]) for i in range(len(p)) for j in range(len(p))]
    torch.testing.assert_close(METHODS["mcl"].loss(logits, similar), torch.stack(expected).mean())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("similar", [0.0, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_losses_and_gradients_stay_finite_where_all_pairs_are_alike_and_outputs_are_extreme(name, similar, scale):
    logits = (scale * torch.randn(5, 3, generator=generator())).requires_grad_()
    loss = LOSSES[name](logits, torch.full((5, 5), similar))
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_the_right_clusters_cost_less_than_any_other(name):
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    similar = (labels[:, None] == labels).float()
    loss = LOSSES[name]
    right = loss(8 * torch.eye(3)[labels], similar)
    for wrong in ([0, 0, 0, 1, 2, 2], [0, 1, 1, 0, 2, 2], [0, 0, 0, 0, 0, 0]):
        assert right < loss(8 * torch.eye(3)[torch.tensor(wrong)], similar)
