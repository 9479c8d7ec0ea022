import os

import pytest
import torch

from medi.data.benchmarks import Benchmark, load
from medi.runtime.system import keep_freed_memory


def pytest_configure() -> None:
    # Small tensors gain nothing from threads, and on a busy machine waiting for them costs a lot.
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the same for programs that tests start
    keep_freed_memory()  # as the program does


@pytest.fixture(scope="session")
def glyphs() -> Benchmark:
    return load("glyphs")
