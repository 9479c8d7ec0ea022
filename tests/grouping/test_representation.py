"""What items are compared by: points against explicit formulas, and what can be saved."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import gaussian_classes

from medi.core.errors import InputError
from medi.grouping import preparations
from medi.grouping.preparations import as_they_are, class_means, principal, unit_length, whitened
from medi.grouping.representation import TOO_LARGE, Representation
from medi.methods.teacher import TorchStep
from medi.nn import build
from medi.nn.embed import NetworkEmbedding

KNOWN = gaussian_classes(6, 20, width=5, nuisance=3.0)


def test_whitening_turns_angles_into_those_under_the_shrunk_covariance_within_classes():
    x = KNOWN.values.astype(np.float64)
    inside = np.concatenate([x[KNOWN.labels == c] - x[KNOWN.labels == c].mean(0) for c in range(6)])
    covariance = inside.T @ inside / (120 - 6)
    inverse = np.linalg.inv(0.8 * covariance + 0.2 * np.trace(covariance) / 5 * np.eye(5))
    a, b = x[:2] - x.mean(0)
    p, q = whitened(KNOWN, "w", shrinkage=0.2)(KNOWN.values[:2])
    assert p @ q == pytest.approx(a @ inverse @ b / np.sqrt((a @ inverse @ a) * (b @ inverse @ b)))
    assert np.linalg.norm(p) == pytest.approx(1)


def test_directions_are_those_that_items_span_and_none_of_rounding():
    flat = np.zeros((12, 40), np.float32)
    flat[:, :4] = KNOWN.values[:12, :4]
    basis = principal(flat, 30).matrix
    assert basis.shape == (40, 4)
    np.testing.assert_allclose(np.abs(basis[4:]).max(), 0, atol=1e-12)
    few = KNOWN.values[:3]
    assert principal(few, 5).matrix.shape == (5, 2), "three points lie in a plane"


def test_whitening_by_classes_of_one_point_each_is_unit_length():
    known = gaussian_classes(5, 1)
    a, b = whitened(known, "w")(known.values), unit_length(known, "u")(known.values)
    assert np.allclose(a @ a.T, b @ b.T), "the same but for a rotation"
    assert np.allclose(np.linalg.norm(a, axis=1), 1)


def test_square_roots_keep_the_sign_and_come_before_everything_else():
    rooted = replace(KNOWN, values=np.sign(KNOWN.values) * np.sqrt(np.abs(KNOWN.values)))
    a, b = whitened(KNOWN, "w", root=True)(KNOWN.values), whitened(rooted, "w")(rooted.values)
    assert np.allclose(a @ a.T, b @ b.T, atol=1e-4)
    with_roots = replace(as_they_are(KNOWN.values, "r"), root=True)
    assert with_roots(np.array([[4.0, -9, 0, 1, -1]])).tolist() == [[2, -3, 0, 1, -1]]


@pytest.mark.parametrize(("items", "share"), [(120, 0.999), (1000, 0.95)], ids=["exactly", "nearly"])
def test_principal_directions_hold_as_much_as_those_of_the_svd(items, share):
    known = gaussian_classes(items // 10, 10, width=40)
    x = known.values.astype(np.float64) - known.values.astype(np.float64).mean(0)
    basis = principal(known.values, 3).matrix
    assert np.allclose(basis.T @ basis, np.eye(3))
    most = np.square(np.linalg.svd(x, compute_uv=False)[:3]).sum()
    assert np.square(x @ basis).sum() > share * most


IMAGES = np.random.default_rng(0).integers(0, 256, (5, 3, 16, 16)).astype(np.uint8)
NETWORK = TorchStep(NetworkEmbedding(build("conv4", (3, 16, 16), embedding=7)))
KINDS = {
    "plain": (as_they_are(KNOWN.values, "p"), KNOWN.values),
    "framed": (as_they_are(KNOWN.values, "p").framed(KNOWN.values), KNOWN.values),
    "unit": (unit_length(KNOWN, "u"), KNOWN.values),
    "whitened": (whitened(KNOWN, "w"), KNOWN.values),
    "square roots": (whitened(KNOWN, "w", root=True), KNOWN.values),
    "pixels": (as_they_are(IMAGES, "p").framed(IMAGES), IMAGES),
    "network": (as_they_are(IMAGES, "c").followed_by(NETWORK, "c", unit=True), IMAGES),
}


@pytest.mark.parametrize("kind", ["plain", "network"])
def test_framed_points_lie_about_the_origin_at_a_mean_squared_distance_of_one(kind):
    representation, items = KINDS[kind]
    points = representation.framed(items)(items)
    assert np.abs(points.mean(0)).max() < 1e-6
    assert np.square(points).sum(1).mean() == pytest.approx(1)
    assert KINDS["unit"][0].framed(KNOWN.values) is KINDS["unit"][0]
    assert not as_they_are(np.ones((3, 5)), "s").framed(np.ones((3, 5)))(np.ones((3, 5))).any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_representation_that_was_packed_is_the_same_again(kind):
    representation, items = KINDS[kind]
    again = Representation.unpack(*representation.pack())
    assert (again.name, again.width) == (representation.name, representation.width)
    assert np.array_equal(again(items), representation(items))


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_gives_the_same_point_alone_and_none_give_none(kind):
    representation, items = KINDS[kind]
    alone = np.concatenate([representation(items[i : i + 1]) for i in range(3)])
    assert np.allclose(alone, representation(items)[:3], atol=1e-12 if kind != "network" else 1e-5)
    assert representation(items[:0]).shape == (0, representation.width)


class Own:
    """A learnt step that a user wrote."""

    kind = "own"

    def __call__(self, items: np.ndarray) -> np.ndarray:
        return items[:, :2]


def test_a_step_of_ones_own_can_be_used_but_is_refused_when_it_is_saved():
    representation = as_they_are(KNOWN.values, "mine").followed_by(Own(), "mine", unit=False)
    assert np.array_equal(representation(KNOWN.values), KNOWN.values[:, :2])
    with pytest.raises(InputError, match="mine cannot be saved"):
        representation.pack()


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (np.zeros((2, 4)), "prepare them the same way"),
        (np.full((2, 5), np.nan), "NaN or infinite"),
        (np.full((2, 5), 10 * TOO_LARGE), "divide all of them"),
    ],
)
def test_items_that_no_point_can_be_made_of_are_refused(items, message):
    with pytest.raises(InputError, match=message):
        as_they_are(KNOWN.values, "p")(items)


def test_what_is_fitted_in_chunks_is_what_is_fitted_at_once(monkeypatch):
    known = gaussian_classes(5, 21, width=6, nuisance=2.0)
    whole = unit_length(known, "x")(known.values)
    monkeypatch.setattr(preparations, "CHUNK", 8)
    monkeypatch.setattr("medi.data.items.CHUNK", 8)
    assert np.allclose(unit_length(known, "x")(known.values), whole, atol=1e-12)
    points = known.values.astype(np.float64)
    centres = np.stack([points[known.labels == c].mean(0) for c in range(5)])
    assert np.allclose(class_means(known, np.asarray), centres, atol=1e-12)
