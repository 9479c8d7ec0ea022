import torch
from hypothesis import given
from hypothesis import strategies as st

from medi.core.draws import Draws


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 60), min_size=1, max_size=4))
def test_permutations_are_those_of_torch(seed, sizes):
    generator, draws = torch.Generator().manual_seed(seed), Draws(seed)
    for n in sizes:
        assert draws.permutation(n).tolist() == torch.randperm(n, generator=generator).tolist()
