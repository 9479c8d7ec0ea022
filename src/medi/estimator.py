"""`MetaDiscovery`: discovery as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, column_or_1d, validate_data

from medi.data.imageset import ImageSet
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.discovery.recogniser import Recognised, Recogniser
from medi.discovery.result import Discovery
from medi.errors import InputError
from medi.runtime.context import Context
from medi.runtime.devices import choose_device

NOVEL = -1
"""The label that marks a novel item."""


class MetaDiscovery(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Discover classes that nobody named, by what labelled known classes teach.

    Parameters:
        n_classes: Number of novel classes, or "auto" to estimate it, calibrated on the known classes.
        method: A name in `medi.methods.METHODS`.
        network: What a method trains on images, "conv4" or "resnet18"; not used for vectors.
        device: "cpu", "cuda" or "auto".
        random_state: Seed of every random draw; an int, a `RandomState` or None.

    Attributes:
        labels_: (n,) int64; for known items the index of their class in `classes_`, for novel ones
            `len(classes_)` + the number of their group.
        classes_: The known classes, sorted.
        n_classes_: Number of groups found among the novel items.
        discovery_: All results on the novel items: confidence, how their number was chosen, diagnosis.
        recogniser_: What `predict` and `recognise` use; it can be saved.
        n_features_in_: Features of a vector; channels of an image.

    Examples:
        >>> from medi import MetaDiscovery
        >>> model = MetaDiscovery(random_state=0).fit(X, y)  # y == -1 marks the novel items
        >>> model.labels_, model.n_classes_
    """

    def __init__(
        self,
        n_classes: int | Literal["auto"] = "auto",
        *,
        method: str = "mp",
        network: str = "conv4",
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.method = method
        self.network = network
        self.device = device
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from the known items and group the novel ones.

        Args:
            X: Vectors (n, d), or uint8 images (n, c, h, w) or (n, h, w, c).
            y: (n,) class of each item, -1 for novel ones. None: everything is novel.
        """
        items = self._items(X, reset=True)
        given = np.full(len(items), NOVEL) if y is None else self._labels(y, len(items))
        novel = _is_novel(given)
        self.classes_, known_labels = np.unique(given[~novel], return_inverse=True)
        known = ImageSet(
            items[torch.from_numpy(~novel)],
            torch.from_numpy(known_labels.astype(np.int64)),
            tuple(str(name) for name in self.classes_),
        )
        try:
            config = DiscoveryConfig(classes=_whole(self.n_classes), method=self.method, network=self.network)
            context = Context(device=choose_device(self.device), seed=self._seed())
            found: tuple[Discovery, Recogniser] = discover_groups(
                known, items[torch.from_numpy(novel)], config, context
            )
        except InputError as error:  # scikit-learn's contract: bad input is a ValueError
            raise ValueError(str(error)) from error
        self.discovery_, self.recogniser_ = found
        self.n_classes_ = self.discovery_.count.k
        self.labels_ = np.empty(len(items), dtype=np.int64)
        self.labels_[~novel] = known_labels
        self.labels_[novel] = len(self.classes_) + np.array(self.discovery_.labels, dtype=np.int64)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The nearest known class or group of each item (n,), numbered like `labels_`."""
        check_is_fitted(self)
        nearest = self.recogniser_.nearest(self._items(X, reset=False))
        k, known = self.n_classes_, len(self.classes_)
        # The recogniser numbers groups first.
        return np.asarray(np.where(nearest < k, nearest + known, nearest - k))

    def recognise(self, X: ArrayLike) -> list[Recognised]:
        """Recognise each item as a discovered group, a known class, or none of these, which `predict` never answers."""
        check_is_fitted(self)
        return self.recogniser_.recognise(self._items(X, reset=False))

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Items as points (n, e); clustering uses the Euclidean distances between them."""
        check_is_fitted(self)
        points: NDArray[np.float64] = self.recogniser_.representation(self._items(X, reset=False)).numpy()
        return points

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any) -> NDArray[np.int64]:
        """`fit`, then `labels_`."""
        return self.fit(X, y).labels_

    def _items(self, X: ArrayLike, *, reset: bool) -> torch.Tensor:
        """Vectors as float64, images as uint8 with channels first."""
        array = validate_data(self, X, reset=reset, allow_nd=True, dtype=None if _ndim(X) == 4 else np.float64)
        if array.ndim == 2:
            return torch.tensor(array)  # a copy: what the caller does to X later must not matter
        if array.ndim != 4 or array.dtype != np.uint8:
            raise ValueError(
                f"X is {array.dtype} of shape {array.shape}: give vectors (n, d) or uint8 images (n, c, h, w)."
            )
        if array.shape[1] not in (1, 3, 4) and array.shape[3] in (1, 3, 4):
            array = np.moveaxis(array, 3, 1)
        return torch.tensor(np.ascontiguousarray(array))

    def _labels(self, y: ArrayLike, n: int) -> NDArray[Any]:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        try:
            check_classification_targets(labels)
        except TypeError as error:  # they cannot be sorted
            raise ValueError(
                'y mixes labels of different kinds: give numbers and -1, or strings and "-1", for novel rows.'
            ) from error
        if len(labels) != n:
            raise ValueError(f"X has {n} items but y has {len(labels)}: give one label each.")
        return labels

    def _seed(self) -> int:
        if isinstance(self.random_state, int):
            return self.random_state
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _is_novel(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels mark novel items; among strings it is "-1"."""
    if labels.dtype.kind in "iuf":
        return np.asarray(labels == NOVEL)
    return np.array([str(label) == str(NOVEL) for label in labels], dtype=bool)


def _whole(number: Any) -> Any:
    """NumPy's integers as Python's."""
    return int(number) if isinstance(number, np.integer) else number


def _ndim(X: ArrayLike) -> int:
    return int(getattr(X, "ndim", 0))
