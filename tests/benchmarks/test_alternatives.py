"""What `medi discover` is compared with is fair: it finds classes that are plainly there."""

import numpy as np
import pytest
from alternatives import ALTERNATIVES, Question, apart
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
