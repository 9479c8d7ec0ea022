import pytest
import torch

from medi.cluster.preparation import Preparation
from medi.errors import InputError


@pytest.fixture
def bag() -> torch.Tensor:
    return torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0))


def test_the_default_changes_nothing(bag):
    prepare = Preparation()
    assert torch.equal(prepare.apply(bag, prepare.fit(bag)), bag)


def test_the_power_transform_keeps_signs():
    assert Preparation(power=0.5).apply(torch.tensor([[-4.0, 0.0, 9.0]])).tolist() == [[-2, 0, 3]]


def test_steps_come_in_the_order_power_centre_unit(bag):
    prepare = Preparation(centre="observations", power=0.5, unit=True)
    powered = bag.sign() * bag.abs().sqrt()
    centred = powered - powered.mean(1, keepdim=True)
    expected = centred / centred.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(prepare.apply(bag, prepare.fit(bag)), expected)


def test_a_query_is_prepared_alone_as_it_is_in_company(bag):
    prepare = Preparation(centre="observations", power=0.5, unit=True)
    centre = prepare.fit(bag)
    queries = torch.rand(3, 5, 4, generator=torch.Generator().manual_seed(1))
    together = prepare.apply(queries, centre)
    alone = torch.cat([prepare.apply(queries[:, i : i + 1], centre) for i in range(5)], 1)
    torch.testing.assert_close(together, alone)


def test_known_features_are_centred_by_their_own_mean(bag):
    prepare = Preparation(centre="known", power=0.5)
    known = torch.rand(50, 4, generator=torch.Generator().manual_seed(2))
    centre = prepare.fit(bag, prepare.mean(known))
    torch.testing.assert_close(prepare.apply(known, centre).mean(0), torch.zeros(4))
    assert prepare.apply(bag, centre).shape == bag.shape


def test_a_vector_of_zeros_stays_finite():
    assert Preparation(power=0.5, unit=True).apply(torch.zeros(1, 2, 3)).eq(0).all()


def test_bad_settings_are_refused_with_the_cure(bag):
    with pytest.raises(InputError, match="did you mean 'known'"):
        Preparation(centre="knwon")
    with pytest.raises(InputError, match="above 0"):
        Preparation(power=0)
    with pytest.raises(InputError, match="pass known_mean"):
        Preparation(centre="known").fit(bag)
    with pytest.raises(InputError, match="what fit"):
        Preparation(centre="observations").apply(bag)
