"""Tests of `medi.core.tensors`."""

from __future__ import annotations

import json

import numpy as np
import pytest

from medi.core.errors import InputError
from medi.core.tensors import load_arrays, save_arrays

FACTS = {"n": [1, None, "ж"], "deep": {"er": 0.1}}


def test_arrays_and_facts_come_back_whatever_their_layout_in_memory(tmp_path):
    random = np.random.default_rng(0)
    arrays = {
        "a/b": random.normal(size=(3, 2)).T,
        "every second": np.arange(8)[::2],
        "none": np.zeros((0, 4), np.float32),
        "one": np.array(2.5),
        "pixels": random.integers(0, 256, (2, 3, 4, 4), dtype=np.uint8),
        "yes": np.array([True, False]),
    }
    save_arrays(tmp_path / "a.safetensors", arrays, FACTS)
    back, facts = load_arrays(tmp_path / "a.safetensors")
    assert facts == FACTS
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        np.testing.assert_array_equal(back[name], array)


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, json.dumps({}).encode()])
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, content):
    (tmp_path / "c.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"c\.safetensors is damaged"):
        load_arrays(tmp_path / "c.safetensors")


def test_a_file_that_was_cut_short_anywhere_is_refused(tmp_path):
    path = tmp_path / "c.safetensors"
    save_arrays(path, {"a": np.arange(5)}, FACTS)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_arrays(path)
