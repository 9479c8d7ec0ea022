import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from medi import MetaDiscovery, estimator
from medi.metrics import acc


@parametrize_with_checks([MetaDiscovery(random_state=0), MetaDiscovery(only_novel=False, random_state=0)])
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


def test_transform_gives_the_points_that_predict_compares(digits, fitted):
    """Each place is a Gaussian about the posterior mean of its items, in the points that `transform` gives."""
    X, _, _ = digits
    places, model, power = fitted.recogniser_.places, fitted.recogniser_.model, fitted.recogniser_.recognition.power
    odds = model.share / (1 - model.share)
    means = places.sums * (odds / (1 + places.counts * odds))[:, None]
    variances = (1 - model.share) * (1 + odds / (1 + places.counts * odds)) / model.dimensions
    distances = np.square(fitted.transform(X)[:, None] - means).sum(2)
    densities = np.exp(-power * (distances / variances + model.dimensions * np.log(variances)) / 2)
    expected = (densities / densities.sum(1, keepdims=True))[:, [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]]  # known classes first
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-6, atol=1e-12)


def test_probabilities_add_up_and_agree_with_predict(digits, fitted):
    X, _, _ = digits
    for items in (X, X[:1], X + 100, np.full((2, 64), 1e9), np.full((2, 64), -1e100)):
        probability = fitted.predict_proba(items)
        assert probability.shape == (len(items), len(fitted.classes_) + fitted.n_classes_)
        assert (probability >= 0).all()
        np.testing.assert_allclose(probability.sum(1), 1)
        assert (probability.argmax(1) == fitted.predict(items)).all()


def test_confidence_is_certain_of_what_was_given_and_only_of_that(digits, fitted):
    _, _, given = digits
    assert (fitted.confidence_[given >= 0] == 1).all()
    assert (fitted.confidence_[given < 0] == fitted.discovery_.confidence).all()
    assert (fitted.confidence_[given < 0] < 1).all()
    assert (fitted.confidence_[given < 0] > 0).all()


def test_the_interval_contains_the_number(digits, fitted):
    X, _, given = digits
    assert fitted.n_classes_interval_ == (3, 3)
    model = MetaDiscovery(method="kmeans", random_state=0).fit(X, given)
    low, high = model.n_classes_interval_
    assert 1 <= low <= model.n_classes_ <= high
    assert low <= 3 <= high


@pytest.mark.parametrize("only_novel", [True, False])
@pytest.mark.parametrize("labelled", [True, False])
def test_the_order_of_rows_does_not_matter(digits, only_novel, labelled):
    X, _, given = digits
    order = np.random.default_rng(1).permutation(len(X))
    model = MetaDiscovery(method="kmeans", only_novel=only_novel, random_state=0)
    before = clone(model).fit(X, given if labelled else None)
    after = clone(model).fit(X[order], given[order] if labelled else None)
    assert (before.labels_[order] == after.labels_).all()
    assert (before.confidence_[order] == after.confidence_).all()
    assert (before.predict_proba(X) == after.predict_proba(X)).all()


def test_rows_that_look_known_get_the_class_and_lone_ones_none_where_that_is_allowed(digits):
    X, y, given = digits
    hidden = np.flatnonzero(y < 7)[::5]
    pool = given.copy()
    pool[hidden] = -1
    stranger = np.append(X, np.where(np.arange(64) % 2, 40.0, -40.0)[None], axis=0)
    model = MetaDiscovery(3, method="kmeans", only_novel=False, random_state=0).fit(stranger, np.append(pool, -1))
    kinds = np.array(model.discovery_.kinds)
    rows = model.labels_[np.append(pool, -1) == -1]
    assert ((rows >= 7) == (kinds == "novel")).all()
    assert (((rows >= 0) & (rows < 7)) == (kinds == "known")).all()
    assert ((rows == -1) == (kinds == "alone")).all()
    assert (model.labels_[hidden] == y[hidden]).mean() > 0.6
    strict = clone(model).set_params(only_novel=True).fit(stranger, np.append(pool, -1))
    assert (strict.labels_[np.append(pool, -1) == -1] >= 7).all()


@pytest.mark.parametrize("known", [0, 1, 2, 3])
@pytest.mark.parametrize("only_novel", [True, False])
def test_with_few_known_classes_confidence_does_not_pretend(digits, known, only_novel):
    X, y, _ = digits
    given = np.where(y < known, y, -1)
    model = MetaDiscovery(only_novel=only_novel, random_state=0).fit(X[y < 6], given[y < 6])
    assert not model.discovery_.diagnosis.calibrated
    assert (model.confidence_[given[y < 6] == -1] <= 0.5).all()
    assert model.n_classes_ >= 1
    assert all(answer.confidence <= 0.5 for answer in model.recognise(X))


@pytest.mark.parametrize("known", [0, 1, 2])
def test_the_flowers_of_iris(known):
    X, y = load_iris(return_X_y=True)
    given = np.where(y < known, y, -1)
    model = MetaDiscovery(3 - known, random_state=0).fit(X, given)
    assert acc(y[given < 0], model.labels_[given < 0]) > 0.8


@pytest.mark.parametrize("known", [0, 2])
def test_the_number_of_flowers_of_iris_is_in_the_interval(known):
    X, y = load_iris(return_X_y=True)
    low, high = MetaDiscovery(random_state=0).fit(X, np.where(y < known, y, -1)).n_classes_interval_
    assert low <= 3 - known <= high


def test_threads_are_bounded_and_then_what_they_were(digits, monkeypatch):
    X = digits[0][-36:]
    seen = []

    def watched(*arguments):
        seen.append((torch.get_num_threads(), {pool["num_threads"] for pool in threadpool_info()}))
        return found(*arguments)

    found = estimator.discover_groups
    monkeypatch.setattr(estimator, "discover_groups", watched)
    threads = torch.get_num_threads()
    with threadpool_limits(2):
        torch.set_num_threads(2)
        before = [pool["num_threads"] for pool in threadpool_info()]
        try:
            for jobs in (None, 2):
                MetaDiscovery(3, method="kmeans", n_jobs=jobs, random_state=0).fit(X).predict(X)
                assert torch.get_num_threads() == 2
                assert [pool["num_threads"] for pool in threadpool_info()] == before
            with pytest.raises(ValueError, match="were asked for"):
                MetaDiscovery(1000, random_state=0).fit(X)
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(threads)
    assert seen[0] == (1, {1})
    assert seen[1][0] == 2


def test_progress_is_shown_only_where_it_is_wanted(digits, capfd):
    X, _, given = digits
    MetaDiscovery(3, method="kmeans", random_state=0).fit(X, given)
    assert capfd.readouterr() == ("", "")
    MetaDiscovery(3, method="kmeans", verbose=True, random_state=0).fit(X, given)
    out, shown = capfd.readouterr()
    assert out == ""
    assert "36 rows to group" in shown
    assert "7 known classes" in shown
    assert "3 groups, as asked" in shown


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


def test_the_larger_the_rate_the_more_is_recognised_as_none(digits, fitted):
    X, _, _ = digits
    none = [sum(a.kind == "none" for a in fitted.recognise(X, none_rate=rate)) for rate in (0.0, 0.1, 0.5, 1.0)]
    assert none[0] == 0
    assert none == sorted(none)
    assert none[-1] > none[0]
    with pytest.raises(ValueError, match="no share"):
        fitted.recognise(X, none_rate=2)


def test_importing_the_package_does_not_import_torch():
    code = "import sys, medi; assert 'torch' not in sys.modules; medi.MetaDiscovery; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_labels_of_mixed_kinds_are_refused_with_the_cure():
    y = np.array(["a"] * 10 + ["b"] * 10 + [-1] * 10, dtype=object)
    with pytest.raises(ValueError, match='strings and "-1"'):
        MetaDiscovery(method="kmeans").fit(np.random.default_rng(0).normal(size=(30, 3)), y)


@pytest.mark.parametrize(
    "y",
    [
        np.array([0.0] * 5 + [np.nan] * 3),
        np.array(["a"] * 5 + [None] * 3, dtype=object),
        ["a"] * 5 + [np.nan] * 3,
        [0] * 5 + [None] * 3,
    ],
)
def test_a_missing_label_is_refused_with_its_row_and_the_cure(y):
    with pytest.raises(ValueError, match="in 3 of 8 rows, the first is row 5: mark novel rows by -1"):
        MetaDiscovery(method="kmeans").fit(np.zeros((8, 2)), y)
