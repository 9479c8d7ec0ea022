"""The pictures of how it works show what the engine says."""

import how
import numpy as np

BINS = {"lines": [4, 60], "confidence": [1.0, 54.0], "right": [0, 48]}
ROWS = [{"pool": pool, "approaches": {"medi": {"bins": BINS}}} for pool in ("mixed", "mixed", "pure")]


def test_groupings_are_the_same_whatever_their_groups_are_called():
    assert how._by_first([4, -1, 4, -3, 0]) == how._by_first([7, -1, 7, -3, 1]) == (0, -1, 0, -3, 1)


def test_confidence_stands_beside_the_share_that_is_right_where_there_are_lines_enough():
    stated, right = how.confidence(ROWS)
    np.testing.assert_allclose([stated, right], [[90], [80]])


def test_letters_of_the_pool_are_weighed_and_drawn(tmp_path):
    drawn = how.letters()
    for number, figure in enumerate((how.teaching(), how.weighing(drawn), how.rehearsing(drawn, ROWS))):
        how.save(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5000
