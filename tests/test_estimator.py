import os
import pickle
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from medi import MetaDiscovery, estimator
from medi.grouping.representation import TOO_LARGE, TOO_SMALL
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


def test_labels_and_predictions_number_known_classes_first_and_groups_after(digits, fitted):
    _, y, given = digits
    known = given >= 0
    assert (fitted.labels_[known] == y[known]).all()
    assert set(fitted.labels_[~known]) == {7, 8, 9}
    assert (fitted.n_classes_, fitted.n_classes_interval_) == (3, (3, 3))
    assert fitted.classes_.tolist() == list(range(7))
    assert acc(y[~known], fitted.labels_[~known]) > 0.8
    rest, answers = load_digits(return_X_y=True)
    fresh = fitted.predict(rest)
    assert (fresh[answers < 7] == answers[answers < 7]).mean() > 0.8
    assert acc(answers[answers >= 7], fresh[answers >= 7]) > 0.7
    assert set(fresh) <= set(range(10))


def test_probabilities_add_up_and_agree_with_predict(digits, fitted):
    X, _, _ = digits
    for items in (X, X[:1], X + 100, np.full((2, 64), 1e9), np.full((2, 64), -1e29)):
        probability = fitted.predict_proba(items)
        assert probability.shape == (len(items), len(fitted.classes_) + fitted.n_classes_)
        assert (probability >= 0).all()
        np.testing.assert_allclose(probability.sum(1), 1)
        assert (probability.argmax(1) == fitted.predict(items)).all()
    with pytest.raises(ValueError, match="divide all of them"):
        fitted.predict_proba(np.full((1, 64), -1e100))


def test_confidence_is_certain_of_what_was_given_and_only_of_that(digits, fitted):
    _, _, given = digits
    assert (fitted.confidence_[given >= 0] == 1).all()
    assert (fitted.confidence_[given < 0] == fitted.discovery_.confidence).all()
    assert (fitted.confidence_[given < 0] < 1).all()
    assert (fitted.confidence_[given < 0] > 0).all()


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
        finally:
            torch.set_num_threads(threads)
    assert seen[0] == (1, {1})
    assert seen[1][0] == min(2, os.cpu_count() or 1)


LOADED_INSIDE = """
import numpy, sys
from medi import MetaDiscovery
from medi.discover import learning
from threadpoolctl import threadpool_info
learn = learning.learn
def watched(*arguments, **options):
    assert "torch" in sys.modules
    print(*(pool["num_threads"] for pool in threadpool_info()), sys.modules["torch"].get_num_threads())
    return learn(*arguments, **options)
from medi.discover import pipeline
pipeline.learn = watched
MetaDiscovery(2, method="kmeans", random_state=0).fit(numpy.eye(6))
"""


def test_threads_of_torch_are_bounded_where_a_method_is_what_loads_it():
    words = [sys.executable, "-c", LOADED_INSIDE]
    many = os.environ | {"OMP_NUM_THREADS": "2"}
    assert set(subprocess.run(words, capture_output=True, text=True, check=True, env=many).stdout.split()) == {"1"}


@pytest.mark.parametrize("jobs", [1000, 100_000, -1, -100_000, np.int64(3)])
def test_no_more_threads_than_processors(jobs, monkeypatch):
    seen = []
    monkeypatch.setattr(estimator, "threadpool_limits", lambda number: seen.append(number) or nullcontext())
    MetaDiscovery(2, n_jobs=jobs, random_state=0).fit(np.eye(6))
    assert 1 <= seen[0] <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    "settings",
    [{"n_jobs": True}, {"n_jobs": 1.5}, {"n_jobs": "2"}, {"n_jobs": 0}]
    + [{"random_state": state} for state in (True, np.bool_(False), -1, 2**40, 0.5, "0")],
)
def test_threads_and_seeds_that_are_none_are_refused(settings):
    with pytest.raises(ValueError, match=r"n_jobs|[sS]eed|random_state"):
        MetaDiscovery(2, **settings).fit(np.eye(6))


def test_progress_is_shown_only_where_it_is_wanted(digits, capfd):
    X, _, given = digits
    MetaDiscovery(3, method="kmeans", random_state=0).fit(X, given)
    assert capfd.readouterr() == ("", "")
    MetaDiscovery(3, method="kmeans", verbose=True, random_state=0).fit(X, given)
    out, shown = capfd.readouterr()
    assert out == ""
    assert shown


def test_with_nothing_novel_there_are_no_groups(digits):
    X, y, _ = digits
    model = MetaDiscovery(random_state=0).fit(X[y < 3], y[y < 3])
    assert model.n_classes_ == 0
    assert (model.labels_ == y[y < 3]).all()
    assert (model.predict(X[y < 3]) == y[y < 3]).mean() > 0.9


def test_a_projector_is_tried_where_known_classes_are_enough_and_can_be_pickled(digits):
    X, y, given = digits
    model = MetaDiscovery(3, method="mp", random_state=0).fit(X, given)
    assert "encoder + projector" in model.discovery_.representation_scores
    assert (clone(model).fit(X, given).labels_ == model.labels_).all()
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    assert acc(y[given < 0], model.labels_[given < 0]) > 0.8


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


MISSING = "in 3 of 8 rows, the first is row 5: mark novel rows by -1"


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a"] * 5 + [-1] * 3, dtype=object), 'strings and "-1"'),
        ([0] * 5, "one label each"),
        (np.array([0.0] * 5 + [np.nan] * 3), MISSING),
        (np.array(["a"] * 5 + [None] * 3, dtype=object), MISSING),
        (["a"] * 5 + [np.nan] * 3, MISSING),
        ([0] * 5 + [None] * 3, MISSING),
    ],
)
def test_labels_of_mixed_kinds_and_missing_ones_are_refused_with_the_cure(y, message):
    with pytest.raises(ValueError, match=message):
        MetaDiscovery(method="kmeans").fit(np.zeros((8, 2)), y)


@st.composite
def degenerate(draw):
    """Rows and labels: few or many a class, points, constants, huge and tiny numbers, copies, and far offsets."""
    rng, novel = np.random.default_rng(draw(st.integers(0, 99))), draw(st.integers(1, 12))
    classes, each = draw(st.sampled_from([(0, 1), (1, 3), (4, 1), (4, 3), (5, 6)]))
    y = np.r_[np.repeat(np.arange(classes), each), np.full(novel, -1)]
    X = rng.normal(size=(len(y), draw(st.integers(1, 4))))
    X *= draw(st.sampled_from([0, 1e-160, 1e-40, 1e-9, 1, 1e28, 1e100]))
    X[y >= 0] *= draw(st.sampled_from([0, 1e-100, 1]))
    X += draw(st.sampled_from([0, 0.1, 1e10, 1e25]))
    X[rng.integers(len(y))] *= draw(st.sampled_from([0, 1e-160, 1, 1e20]))
    return (np.round(X, 1) if draw(st.booleans()) else X), y if classes else None


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:The number of unique classes")
@settings(deadline=None, max_examples=20)
@drawn(rows=degenerate(), only_novel=st.booleans(), further=st.sampled_from([0.0, 1e-200, 1.0, 1e29]))
def test_degenerate_rows_give_finite_answers_or_one_line(rows, only_novel, further):
    X, y = rows
    model = MetaDiscovery(only_novel=only_novel, random_state=0)
    decisive = np.abs(X if y is None else X[y >= 0]).max()
    if np.abs(X).max() > TOO_LARGE or 0 < decisive < TOO_SMALL:
        with pytest.raises(ValueError, match="divide all of them"):
            model.fit(X, y)
        return
    model.fit(X, y)
    asked = np.concatenate([X, np.full((1, X.shape[1]), further)])
    if model.n_classes_ + len(model.classes_):
        np.testing.assert_allclose(model.predict_proba(asked).sum(1), 1, rtol=1e-5)
    assert np.isfinite(model.transform(asked)).all()
    assert ((model.confidence_ >= 0) & (model.confidence_ <= 1)).all()
    assert all(0 <= found.confidence <= 1 for found in model.recognise(asked))


@pytest.mark.parametrize("constant", [0.0, 0.1, -1 / 3, 1e10 / 3, 1e25])
def test_rows_that_are_all_the_same_are_one_group_whatever_they_hold(constant):
    y = np.repeat([0, 1, 2, 3, -1], 4)
    model = MetaDiscovery(random_state=0).fit(np.full((20, 700), constant), y)
    assert model.n_classes_ == 1
    np.testing.assert_allclose(model.predict_proba(np.full((1, 700), constant)).sum(), 1)
