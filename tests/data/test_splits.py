from itertools import combinations

import pytest

from medi.core.errors import InputError
from medi.data.splits import held_out_splits


def test_as_many_known_classes_are_held_out_as_asked_for():
    assert held_out_splits(5) == list(combinations(range(5), 2))
    assert held_out_splits(5, 3) == list(combinations(range(5), 3))
    assert {len(set(split)) for split in held_out_splits(20, 7)} == {7}
    for known, count in ((5, 4), (20, 19), (20, 1)):
        with pytest.raises(InputError, match=f"--held-out {count}: of {known} known classes.*2 to {known - 2}"):
            held_out_splits(known, count)


@pytest.mark.parametrize(("known", "size"), [(4, 2), (6, 2), (9, 2), (80, 16), (964, 192)])
def test_a_fifth_is_held_out_five_times_and_at_least_two(known, size):
    splits = held_out_splits(known)
    assert len(set(splits)) == 5
    assert all(len(set(split)) == size and max(split) < known for split in splits)


def test_with_three_known_classes_nothing_can_be_chosen():
    with pytest.raises(InputError, match="3 known classes are too few"):
        held_out_splits(3)
