import pytest
import torch

from medi.cluster.groups import group_means, group_sums


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_sums_and_means_are_those_of_loops_and_zero_for_an_empty_group(batch):
    g = torch.Generator().manual_seed(0)
    points, labels = torch.randn(*batch, 7, 4, generator=g), torch.randint(3, (*batch, 7), generator=g)
    sums, means = group_sums(points, labels, 4), group_means(points, labels, 4)
    rows = zip(*(x.reshape(-1, *x.shape[-2:]) for x in (points, labels[..., None], sums, means)), strict=True)
    for some, own, total, mean in rows:
        for group in range(4):
            members = some[own[:, 0] == group]
            assert torch.allclose(total[group], members.sum(0), atol=1e-6)
            assert torch.allclose(mean[group], members.mean(0) if len(members) else torch.zeros(4), atol=1e-6)
