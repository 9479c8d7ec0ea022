import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from medi import MetaDiscovery
from medi.metrics import acc


@parametrize_with_checks([MetaDiscovery(random_state=0)])
def test_the_contract_of_scikit_learn_is_kept(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    """Digits 0 to 6 with labels, 7 to 9 without."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    keep = np.concatenate([rng.permutation(np.flatnonzero(y == c))[: 25 if c < 7 else 12] for c in range(10)])
    X, y = X[keep], y[keep]
    return X, y, np.where(y < 7, y, -1)


@pytest.fixture(scope="module")
def fitted(digits):
    X, _, given = digits
    return MetaDiscovery(3, method="kmeans", random_state=0).fit(X, given)


def test_labels_number_known_classes_first_and_groups_after(digits, fitted):
    _, y, given = digits
    known = given >= 0
    assert (fitted.labels_[known] == y[known]).all()
    assert set(fitted.labels_[~known]) == {7, 8, 9}
    assert fitted.n_classes_ == 3
    assert fitted.classes_.tolist() == list(range(7))
    assert acc(y[~known], fitted.labels_[~known]) > 0.8


def test_predict_numbers_like_labels(fitted):
    rest, answers = load_digits(return_X_y=True)
    fresh = fitted.predict(rest)
    assert (fresh[answers < 7] == answers[answers < 7]).mean() > 0.8
    assert acc(answers[answers >= 7], fresh[answers >= 7]) > 0.7
    assert set(fresh) <= set(range(10))


def test_transform_gives_the_points_that_distances_are_taken_of(digits, fitted):
    X, _, _ = digits
    points = fitted.transform(X)
    centres = np.concatenate([fitted.recogniser_.groups, fitted.recogniser_.classes])
    sizes = fitted.recogniser_.sizes.numpy()
    distances = np.square(points[:, None] - centres).sum(2) * sizes / (sizes + 1)
    order = np.concatenate([[7, 8, 9], np.arange(7)])
    assert (order[distances.argmin(1)] == fitted.predict(X)).all()


def test_without_labels_everything_is_novel():
    X = np.concatenate([np.random.default_rng(0).normal(c, 0.1, (8, 3)) for c in (0, 5, 10)])
    model = MetaDiscovery(random_state=0).fit(X)
    assert len(model.classes_) == 0
    assert acc(np.repeat([0, 1, 2], 8), model.labels_) == 1


def test_with_nothing_novel_there_are_no_groups(digits):
    X, y, _ = digits
    model = MetaDiscovery(random_state=0).fit(X[y < 3], y[y < 3])
    assert model.n_classes_ == 0
    assert (model.labels_ == y[y < 3]).all()
    assert (model.predict(X[y < 3]) == y[y < 3]).mean() > 0.9


def test_class_names_may_be_strings(digits):
    X, y, given = digits
    names = np.where(given >= 0, np.char.add("digit ", given.astype(str)), "-1")
    model = MetaDiscovery(3, random_state=0, method="kmeans").fit(X, names)
    assert model.classes_[0] == "digit 0"
    assert (model.labels_[given >= 0] == y[given >= 0]).all()


def test_a_clone_fits_alike_and_a_pickle_predicts_alike(digits, fitted):
    X, _, given = digits
    again = clone(fitted).fit(X, given)
    assert (again.labels_ == fitted.labels_).all()
    assert (pickle.loads(pickle.dumps(fitted)).predict(X) == fitted.predict(X)).all()


def test_a_projector_is_tried_where_known_classes_are_enough_and_can_be_pickled(digits):
    X, y, given = digits
    model = MetaDiscovery(3, random_state=0).fit(X, given)
    assert "encoder + projector" in model.discovery_.representation_scores
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    assert acc(y[given < 0], model.labels_[given < 0]) > 0.8


def test_it_works_in_a_pipeline(digits):
    X, y, given = digits
    labels = make_pipeline(StandardScaler(), MetaDiscovery(3, method="kmeans", random_state=0)).fit_predict(X, given)
    assert (labels[given >= 0] == y[given >= 0]).all()


def test_a_grid_can_search_its_parameters(digits):
    X, y, given = digits

    def score(model, X, y):
        return acc(y, model.predict(X))

    search = GridSearchCV(MetaDiscovery(2, random_state=0), {"method": ["kmeans", "mp"]}, scoring=score, cv=2)
    search.fit(X[y < 3], given[y < 3])
    assert search.best_params_["method"] in ("kmeans", "mp")


def test_channels_may_come_first_or_last():
    rng = np.random.default_rng(0)
    bright = np.repeat([40, 120, 220], 6)
    images = np.clip(rng.normal(bright[:, None, None, None], 5, (18, 16, 16, 3)), 0, 255).astype(np.uint8)
    last = MetaDiscovery(3, random_state=0).fit(images)
    first = MetaDiscovery(3, random_state=0).fit(np.moveaxis(images, 3, 1))
    assert (last.labels_ == first.labels_).all()
    assert acc(bright, last.labels_) == 1
    assert (last.predict(images) == last.labels_).all()


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({"n_classes": 9}, np.zeros((4, 2)), "9 classes were asked for"),
        ({"n_classes": "many"}, np.zeros((4, 2)), "whole number"),
        ({"method": "magic"}, np.zeros((4, 2)), "unknown method"),
        ({"device": "abacus"}, np.zeros((4, 2)), "unknown device"),
        ({}, np.zeros((4, 3, 3)), "give vectors"),
        ({}, np.zeros((4, 3, 16, 16)), "uint8"),
    ],
)
def test_bad_input_is_a_value_error_with_a_cure(parameters, X, message):
    with pytest.raises(ValueError, match=message):
        MetaDiscovery(**parameters).fit(X)


def test_items_that_belong_nowhere_are_recognised_as_none(digits, fitted):
    X, _, _ = digits
    answers = fitted.recognise(np.concatenate([X[:50], np.full((1, 64), 1e3)]))
    assert sum(a.kind == "known" for a in answers[:50]) > 25
    assert len(answers) == 51


def test_importing_the_package_does_not_import_torch():
    code = "import sys, medi; assert 'torch' not in sys.modules; medi.MetaDiscovery; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("novel", [-1, None])
def test_labels_of_mixed_kinds_are_refused_with_the_cure(novel):
    y = np.array(["a"] * 10 + ["b"] * 10 + [novel] * 10, dtype=object)
    with pytest.raises(ValueError, match='strings and "-1"'):
        MetaDiscovery(method="kmeans").fit(np.random.default_rng(0).normal(size=(30, 3)), y)
