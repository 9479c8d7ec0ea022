from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from small_sets import patterns
from torch import Tensor
from worlds import gaussian_classes

from medi.data.imageset import ImageSet
from medi.discovery import representations
from medi.discovery.representations import Representation, as_they_are, class_means, principal, unit_length, whitened
from medi.discovery.training import DiscoveryConfig, _adjusted, configured_method, projector, task_size, trained
from medi.errors import InputError
from medi.methods.mp import MP
from medi.nets import build
from medi.nets.embed import NetworkEmbedding
from medi.runtime.context import Context
from medi.train.schedule import Schedule


def test_whitening_turns_angles_into_those_under_the_shrunk_covariance_within_classes():
    known = gaussian_classes(6, 20, width=5, nuisance=3.0)
    representation = whitened(known, "w", shrinkage=0.2)
    x = known.images.double()
    inside = torch.cat([x[known.labels == c] - x[known.labels == c].mean(0) for c in range(6)]).numpy()
    covariance = inside.T @ inside / (120 - 6)
    shrunk = 0.8 * covariance + 0.2 * np.trace(covariance) / 5 * np.eye(5)
    a, b = (x[:2] - x.mean(0)).numpy()
    inverse = np.linalg.inv(shrunk)
    cosine = a @ inverse @ b / np.sqrt((a @ inverse @ a) * (b @ inverse @ b))
    p, q = representation(known.images[:2]).numpy()
    assert p @ q == pytest.approx(cosine)
    assert np.linalg.norm(p) == pytest.approx(1)


def test_whitening_by_classes_of_one_point_each_is_unit_length():
    known = gaussian_classes(5, 1)
    a, b = whitened(known, "w")(known.images), unit_length(known, "u")(known.images)
    assert torch.allclose(a @ a.T, b @ b.T), "the same but for a rotation"
    assert a.norm(dim=1).allclose(torch.ones(5).double())


def test_square_roots_keep_the_sign_and_come_before_everything_else():
    known = gaussian_classes(6, 20, width=5, nuisance=3.0)
    rooted = ImageSet(known.images.sign() * known.images.abs().sqrt(), known.labels, known.class_names)
    a, b = whitened(known, "w", root=True)(known.images), whitened(rooted, "w")(rooted.images)
    assert torch.allclose(a @ a.T, b @ b.T, atol=1e-4)
    with_roots = replace(as_they_are(known.images, "r"), root=True)
    assert with_roots(torch.tensor([[4.0, -9, 0, 1, -1]])).tolist() == [[2, -3, 0, 1, -1]]


def test_framed_points_lie_about_the_origin_at_a_mean_squared_distance_of_one():
    known = gaussian_classes(6, 20, width=5, nuisance=3.0)
    points = as_they_are(known.images, "p").framed(known.images)(known.images)
    assert points.mean(0).abs().max() < 1e-6
    assert points.square().sum(1).mean() == pytest.approx(1)
    unit = unit_length(known, "u")
    assert unit.framed(known.images) is unit
    same = torch.ones(3, 5)
    assert as_they_are(same, "s").framed(same)(same).abs().max() == 0


def test_principal_directions_hold_as_much_as_those_of_the_svd():
    known = gaussian_classes(12, 10, width=40)
    basis = principal(known, 3).matrix
    x = known.images.double() - known.images.double().mean(0)
    most = torch.linalg.svdvals(x)[:3].square().sum()
    assert torch.allclose(basis.T @ basis, torch.eye(3).double())
    assert (x @ basis).square().sum() > 0.999 * most


@pytest.fixture(scope="module")
def projected():
    return projector(gaussian_classes(8, 8), DiscoveryConfig(), Context(), "p")


def test_an_item_gives_the_same_point_whatever_it_is_asked_with(projected):
    known, representation = gaussian_classes(8, 8), projected
    together = representation(known.images)
    alone = torch.cat([representation(known.images[i : i + 1]) for i in range(10)])
    assert torch.allclose(together[:10], alone, atol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "framed", "unit", "whitened", "square roots", "projector", "images"])
def test_a_representation_that_was_packed_is_the_same_again(kind, projected):
    known = gaussian_classes(8, 8)
    items = known.images
    match kind:
        case "plain":
            representation = as_they_are(items, "p")
        case "framed":
            representation = as_they_are(items, "p").framed(items)
        case "unit":
            representation = unit_length(known, "u")
        case "square roots":
            representation = whitened(known, "w", root=True)
        case "whitened":
            representation = whitened(known, "w")
        case "projector":
            representation = projected
        case "images":
            items = torch.randint(256, (5, 3, 16, 16), dtype=torch.uint8)
            learnt = NetworkEmbedding(build("conv4", (3, 16, 16), embedding=7))
            representation = as_they_are(items, "c").followed_by(learnt, "c", unit=True)
    again = Representation.unpack(*representation.pack())
    assert again.name == representation.name
    assert torch.equal(again(items), representation(items))


def test_items_of_another_shape_are_refused():
    representation = as_they_are(torch.zeros(1, 4), "p")
    with pytest.raises(InputError, match="prepare them the same way"):
        representation(torch.zeros(2, 5))


def test_no_items_are_no_points(projected):
    known = gaussian_classes(8, 8)
    for representation in (as_they_are(known.images, "p"), projected):
        assert representation(known.images[:0]).shape[0] == 0


def test_tasks_take_what_most_classes_have():
    world = gaussian_classes(8, 20)
    keep = torch.ones(160, dtype=torch.bool)
    keep[1:20] = False  # class 0 has one item, class 1 has four
    keep[24:40] = False
    few = type(world)(world.images[keep], world.labels[keep], world.class_names)
    fitting, observations, queries = task_size(few)
    assert fitting.n_classes == 6
    assert (observations, queries) == (5, 5)


def test_known_classes_of_one_item_each_cannot_be_learnt_from():
    with pytest.raises(InputError, match="fewer than two known classes have two images"):
        task_size(gaussian_classes(5, 1))


def test_tasks_are_as_large_as_classes_allow_whatever_a_preset_says(monkeypatch):
    greedy = MP(observations=7, queries=9, images=20, schedule=Schedule(steps=2))
    monkeypatch.setattr(MP, "presets", {"default": greedy})
    config = DiscoveryConfig(method="mp", sampler="uniform")
    method = configured_method(config, torch.device("cpu"), vectors=False)
    assert method == replace(greedy, observations=None, queries=None)
    few = patterns(4, each=3)
    assert trained(few, config, Context(), "p")(few.images).isfinite().all()


def test_settings_take_the_right_network_and_length_however_deep_they_lie():
    @dataclass(frozen=True)
    class Inner:
        network: str = "resnet18"
        schedule: Schedule = Schedule(steps=5000)  # noqa: RUF009 (frozen)

    @dataclass(frozen=True)
    class Outer:
        start: Inner = Inner()
        network: str | None = None
        rate: float = 0.1

    found = _adjusted(Outer(), "mlp", 100)
    assert found == Outer(Inner("mlp", Schedule(steps=100)))
    assert _adjusted(Outer(), "conv4", None).start.schedule.steps == 5000


def test_what_is_fitted_in_chunks_is_what_is_fitted_at_once(monkeypatch):
    known = gaussian_classes(5, 21, width=6, nuisance=2.0)
    whole = unit_length(known, "x")(known.images)
    monkeypatch.setattr(representations, "CHUNK", 8)
    assert torch.allclose(unit_length(known, "x")(known.images), whole, atol=1e-12)
    points = known.images.double()
    centres = torch.stack([points[known.labels == c].mean(0) for c in range(5)])
    assert torch.allclose(class_means(known, Tensor.double), centres, atol=1e-12)
