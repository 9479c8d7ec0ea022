"""Models that were damaged, or made by somebody: refused by name, or they say numbers of everything, at once."""

import random
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from odd import ODD, places_in
from worlds import gaussian_classes, split

from medi.core.errors import InputError
from medi.core.tensors import load_arrays, save_arrays
from medi.core.workplace import Workplace
from medi.discover.config import DiscoveryConfig
from medi.discover.pipeline import discover_groups
from medi.grouping.constraints import Links
from medi.grouping.recogniser import RECOGNISER, Recogniser
from medi.grouping.saved_pool import SAVED_POOL, SavedPool


@pytest.fixture(scope="module")
def model(tmp_path_factory, few_bags) -> Path:
    folder = tmp_path_factory.mktemp("model")
    known, novel = split(gaussian_classes(9, 5, apart=4.0), 6)
    outcome = discover_groups(known, novel.values, DiscoveryConfig(), Workplace())
    outcome.recogniser.save(folder)
    outcome.pool.save(folder)
    return folder


def damaged(array: np.ndarray, draw: random.Random) -> np.ndarray:
    """Another array in the place of one."""
    spoilt = array.copy()
    if array.size:
        numbers = {"f": [np.nan, np.inf, -np.inf, 1e300, -1, 0, 10**6], "i": [-9, 0, 10**9], "u": [0, 255]}
        spoilt.flat[draw.randrange(array.size)] = draw.choice(numbers[array.dtype.kind])
    return draw.choice(
        [
            spoilt,
            np.full_like(array, 0),
            array[:-1],
            array[..., :-1] if array.ndim else array,
            np.concatenate([array, array]),
            array.T,
            array[None],
            array.reshape(-1),
            array.astype(np.float16),
            array.astype(np.int8) if array.dtype.kind == "i" else array.astype(np.int64, casting="unsafe"),
            array.astype(str).astype("S").view(np.uint8) if array.size else array,
        ]
    )


def try_file(model: Path, folder: Path, name: str, draw: random.Random) -> None:
    arrays, facts = load_arrays(model / name)
    for other in (RECOGNISER, SAVED_POOL):
        (folder / other).write_bytes((model / other).read_bytes())
    if draw.random() < 0.5:
        key = draw.choice(sorted(arrays))
        arrays[key] = np.ascontiguousarray(damaged(arrays[key], draw))
        if draw.random() < 0.1:
            del arrays[key]
        what = key, arrays.get(key)
    else:
        document, key = draw.choice(list(places_in(facts)))
        document[key] = draw.choice(ODD)
        what = key, document[key]
    save_arrays(folder / name, arrays, facts)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(folder)
    except Exception as error:
        error.add_note(str(what)[:500])
        raise


def use(folder: Path) -> None:
    """Everything that a person may do with a model."""
    with suppress(InputError):
        recogniser, pool = Recogniser.load(folder), SavedPool.load(folder)
        for guess in recogniser.recognise(np.random.default_rng(0).normal(size=(6, *recogniser.representation.shape))):
            assert 0 <= guess.second.confidence <= 1
            assert 0 <= guess.confidence <= 1
        found = pool.regroup(Links(together=((0, 1),), apart=((0, 2),), aside=frozenset({3})))
        assert np.isfinite(found.confidence).all()
        assert len(found.labels) == len(pool) == len(pool.order()) == len(pool.positions())
        pool.split([0, 1, 2], 2)


@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [RECOGNISER, SAVED_POOL])
def test_a_model_with_anything_else_in_it_is_refused_or_says_numbers(model, tmp_path, name, times):
    for seed in range(times):
        try_file(model, tmp_path, name, random.Random(seed))
