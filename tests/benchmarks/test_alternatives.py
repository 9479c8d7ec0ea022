"""What `medi discover` is compared with is fair: it finds classes that are plainly there."""

import numpy as np
import pytest
from alternatives import ALTERNATIVES, NAMING, Question, apart
from blobs import blobs, known_blobs

from medi.metrics import acc

KNOWN = 8


def question(points: np.ndarray, number: int) -> Question:
    return Question(known_blobs(KNOWN), points, number, seed=0)


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_classes_that_are_plainly_there_are_found(name):
    points, labels = blobs(range(KNOWN, KNOWN + 4), each=4, seed=1)
    assert acc(labels, apart(ALTERNATIVES[name](question(points, 4)))) == 1
    assert ALTERNATIVES[name](question(points[:1], 1)).tolist() in ([0], [-1])


@pytest.mark.parametrize("name", sorted(NAMING))
def test_photos_of_known_classes_are_named_and_new_ones_are_not(name):
    new, classes = blobs(range(KNOWN, KNOWN + 4), each=4, seed=1)
    old, names = blobs(range(3), each=2, seed=2)
    labels = ALTERNATIVES[name](question(np.concatenate([new, old]), 7))
    assert labels[len(new) :].tolist() == (-2 - names).tolist()
    assert acc(classes, labels[: len(new)]) == 1
