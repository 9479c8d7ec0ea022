"""`MetaDiscovery`: discovery as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, column_or_1d, validate_data
from threadpoolctl import threadpool_limits

from medi.core.errors import InputError
from medi.core.progress import Reporter, Silent
from medi.core.workplace import Workplace
from medi.data.items import Items
from medi.discover.config import TEACHER, DiscoveryConfig, check_method
from medi.discover.pipeline import discover_groups
from medi.discover.result import Discovery
from medi.grouping.engine import ALONE, known_label
from medi.grouping.recogniser import Recognised, Recogniser
from medi.registry import PLAIN, load_listed

NOVEL = -1
"""The label that marks a novel item."""


class MetaDiscovery(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Discover classes that nobody named, by what labelled known classes teach.

    Parameters:
        n_classes: Number of novel classes, or "auto" to estimate it, calibrated on the known classes.
        method: "plain", which needs no training, or a name in `medi.methods.METHODS`, which needs `medi[train]`.
        network: What a method trains on images, "conv4" or "resnet18"; not used for vectors.
        only_novel: Whether unlabelled items are all of novel classes. False: some may be of known classes, or alone.
        device: "cpu", "cuda" or "auto".
        n_jobs: Threads; None for one, -1 for all processors. More than one rarely helps with vectors.
        verbose: Whether progress is shown on stderr.
        random_state: Seed of every random draw; an int, a `RandomState` or None.

    Attributes:
        labels_: (n,) int64; for known items the index of their class in `classes_`, for novel ones
            `len(classes_)` + the number of their group. With `only_novel=False` an item without a label may also get
            the index of the known class that it looks like, or -1 where it resembles nothing else.
        confidence_: (n,) how probable it is that each label is right; 1 for known items. Without calibration, that is
            with fewer than four known classes, never above one half for the others.
        classes_: The known classes, sorted.
        n_classes_: Number of groups found among the novel items.
        n_classes_interval_: Its 90 % interval, (low, high); both are the number itself where it was given.
        discovery_: All results on the items without a label: kinds, how their number was chosen, groups, diagnosis.
        recogniser_: What `predict` and `recognise` use; it can be saved.
        n_features_in_: Features of a vector; channels of an image.
        feature_names_in_: Names of the features, where `X` has them.

    Examples:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> y[y > 6] = -1  # nobody named 7, 8 and 9
        >>> model = MetaDiscovery(random_state=0).fit(X[:500], y[:500])
        >>> len(model.classes_), len(model.labels_), int(model.labels_[y[:500] == -1].min())  # groups: 7, …
        (7, 500, 7)
    """

    def __init__(
        self,
        n_classes: int | Literal["auto"] = "auto",
        *,
        method: str = PLAIN,
        network: str = "conv4",
        only_novel: bool = True,
        device: str = "cpu",
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.method = method
        self.network = network
        self.only_novel = only_novel
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from the known items and group the novel ones.

        Args:
            X: Vectors (n, d), an array or a data frame, or uint8 images (n, c, h, w) or (n, h, w, c).
            y: (n,) class of each item, -1 for novel ones ("-1" among strings). None: everything is novel.
        """
        items = self._items(X, reset=True)
        given = np.full(len(items), NOVEL) if y is None else self._labels(y, len(items))
        novel = _is_novel(given)
        self.classes_, known_labels = np.unique(given[~novel], return_inverse=True)
        known = Items(items[~novel], known_labels.astype(np.int64), tuple(str(name) for name in self.classes_))
        reporter = Reporter() if self.verbose else Silent()
        reporter.say(f"{novel.sum()} rows to group; {len(known)} rows of {len(self.classes_)} known classes.")
        with self._calling():
            k = int(self.n_classes) if isinstance(self.n_classes, np.integer) else self.n_classes
            config = DiscoveryConfig(k, self.method, self.network, only_novel=self.only_novel)
            work = Workplace(self.device, self._seed(), reporter=reporter)
            outcome = discover_groups(known, items[novel], config, work)
        self.discovery_: Discovery = outcome.discovery
        self.recogniser_: Recogniser = outcome.recogniser
        count = self.discovery_.count
        reporter.say(f"{count.how} Groups: {self.discovery_.diagnosis.verdict}.")
        self.n_classes_, self.n_classes_interval_ = count.k, (count.low, count.high)
        self.labels_ = np.empty(len(items), dtype=np.int64)
        self.labels_[~novel] = known_labels
        found = outcome.pool.grouping.labels[outcome.pool.place]
        numbered = [len(self.classes_) + found, known_label(0) - found]  # groups, and known classes
        self.labels_[novel] = np.select([found >= 0, found < ALONE], numbered, ALONE)
        self.confidence_ = np.ones(len(items))
        self.confidence_[novel] = self.discovery_.confidence
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The likeliest known class or group of each item (n,), numbered like `labels_`."""
        return np.asarray(self.predict_proba(X).argmax(1))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability (n, len(classes_) + n_classes_) of each known class and group, numbered like `labels_`.

        It is the probability given that an item belongs to one of them: each row adds up to 1.
        """
        check_is_fitted(self)
        items = self._items(X, reset=False)
        with self._calling():
            found = self.recogniser_.probabilities(items)
        return np.roll(found, len(self.classes_), axis=1)  # the recogniser numbers groups first

    def recognise(self, X: ArrayLike, none_rate: float | None = None) -> list[Recognised]:
        """Recognise each item as a discovered group, a known class, or none of these, which `predict` never answers.

        Args:
            X: Items as `fit` takes them.
            none_rate: Share of the items of groups and known classes that may be called none. The larger it is, the
                more items that belong nowhere are found out.
        """
        check_is_fitted(self)
        items = self._items(X, reset=False)
        with self._calling():
            return self.recogniser_.recognise(items, none_rate)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Items as points (n, e); clustering uses the Euclidean distances between them."""
        check_is_fitted(self)
        items = self._items(X, reset=False)
        with self._calling():
            points: NDArray[np.float64] = self.recogniser_.representation(items)
        return points

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any) -> NDArray[np.int64]:
        """`fit`, then `labels_`."""
        return self.fit(X, y).labels_

    @property
    def _n_features_out(self) -> int:
        """Width of what `transform` gives; scikit-learn makes names of it."""
        return int(self.recogniser_.places.sums.shape[1])

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Inside, threads are bounded, and bad input is a ValueError, as scikit-learn's contract says."""
        try:
            threads = self._threads()
            if self.method != PLAIN:  # only threads of what is loaded can be bounded
                check_method(self.method)
                load_listed(TEACHER, f"--method {self.method}")
            with threadpool_limits(threads):
                yield
        except InputError as error:
            raise ValueError(str(error)) from error

    def _items(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        """Vectors as float64, images as uint8 with channels first."""
        _check_columns(X)
        array = validate_data(
            self, X, reset=reset, allow_nd=True, dtype=None if getattr(X, "ndim", 0) == 4 else np.float64
        )
        if array.ndim == 2:
            return np.array(array)  # a copy: what the caller does to X later must not matter
        if array.ndim != 4 or array.dtype != np.uint8:
            raise ValueError(
                f"X is {array.dtype} of shape {array.shape}: give vectors (n, d) or uint8 images (n, c, h, w)."
            )
        if array.shape[1] not in (1, 3, 4) and array.shape[3] in (1, 3, 4):
            array = np.moveaxis(array, 3, 1)
        return np.array(array, order="C")

    def _labels(self, y: ArrayLike, n: int) -> NDArray[Any]:
        listed = isinstance(y, list | tuple)  # NumPy would make the string "nan" of a missing label in one
        labels: NDArray[Any] = column_or_1d(np.asarray(y, dtype=object if listed else None), warn=True)
        _refuse_gaps(labels)
        if labels.dtype.kind == "O" and (listed or not any(isinstance(label, str) for label in labels)):
            labels = np.array(labels.tolist())  # numbers in objects, as nullable columns have them
        try:
            check_classification_targets(labels)
        except TypeError as error:  # they cannot be sorted
            raise ValueError(
                'y mixes labels of different kinds: give numbers and -1, or strings and "-1", for novel rows.'
            ) from error
        if len(labels) != n:
            raise ValueError(f"X has {n} items but y has {len(labels)}: give one label each.")
        return labels

    def _threads(self) -> int:
        """`n_jobs` as scikit-learn has it, but no more than there are processors: each takes memory and time."""
        jobs = 1 if self.n_jobs is None else self.n_jobs
        if isinstance(jobs, bool) or not isinstance(jobs, int | np.integer):
            raise InputError(f"n_jobs={jobs!r}: give None, a whole number of threads, or -1 for all processors.")
        return min(int(effective_n_jobs(int(jobs))), os.cpu_count() or 1)

    def _seed(self) -> int:
        if isinstance(self.random_state, bool | np.bool_):
            raise InputError(f"random_state={self.random_state}: give a whole number, a RandomState or None.")
        draws = check_random_state(self.random_state)  # refuses what is out of range
        return self.random_state if isinstance(self.random_state, int) else int(draws.randint(2**31 - 1))


def _is_novel(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels mark novel items; among strings it is "-1"."""
    if labels.dtype.kind in "iuf":
        return np.asarray(labels == NOVEL)
    return np.array([str(label) == str(NOVEL) for label in labels], dtype=bool)


def _refuse_gaps(labels: NDArray[Any]) -> None:
    """A missing label is an error: it may mean a novel row, or a mistake."""
    missing = [_is_missing(label) for label in labels] if labels.dtype.kind == "O" else labels != labels
    if np.any(missing):
        raise ValueError(
            f"y has no label (NaN, None or null) in {np.sum(missing)} of {len(labels)} rows, the first is row "
            f'{np.argmax(missing)}: mark novel rows by -1, among strings by "-1".'
        )


def _is_missing(label: object) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas' NA is neither true nor false
        return True


def _check_columns(X: ArrayLike) -> None:
    """Refuse columns of a data frame (pandas or polars) that hold no numbers; others would be taken for some."""
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a LazyFrame, which holds no rows yet: give X.collect().")
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    other = [f"'{name}' ({kind})" for name, kind in zip(X.columns, X.dtypes, strict=True) if not _holds_numbers(kind)]
    if other:
        shown = ", ".join(other[:3]) + (f" and {len(other) - 3} more" if len(other) > 3 else "")
        raise ValueError(f"X has columns that hold no numbers: {shown}; encode them as numbers, or leave them out.")


def _holds_numbers(kind: Any) -> bool:
    """Whether a column of a type, pandas' or polars', holds numbers or truth values."""
    if hasattr(kind, "kind"):
        return kind.kind in "biufc"
    return bool(kind.is_numeric()) or str(kind) == "Boolean"
