"""An encoder of the user's own, in one file."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medi.core.errors import InputError
from medi.photos.cache import cache_folder
from medi.photos.encoders import load_encoder
from medi.photos.own_encoder import kept_encoder

COLOURS = """
from dataclasses import dataclass
import numpy as np

@dataclass
class Colours:
    side: int = 16

    def __call__(self, images):
        return images.mean((2, 3))

def deviations(images):
    return images.std((2, 3))
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "my code.py"
    path.write_text(COLOURS)
    return path


def images(side, count=3):
    return np.random.default_rng(0).integers(0, 256, (count, 3, side, side), dtype=np.uint8)


def test_a_class_and_a_function_make_features(file):
    by_class, by_function = load_encoder(f"{file}:Colours", "cpu"), load_encoder(f"{file}:deviations", "cpu")
    np.testing.assert_allclose(by_class.encode(images(16)), images(16).mean((2, 3)), rtol=1e-6)
    np.testing.assert_allclose(by_function.encode(images(224)), images(224).std((2, 3)), rtol=1e-6)
    assert (by_class.shape, by_class.dtype, by_class.cut.side, by_function.cut.side) == ((3,), np.float32, 16, 224)


def test_another_text_is_another_encoder(file):
    first = load_encoder(f"{file}:Colours", "cpu")
    assert load_encoder(f"{file}:Colours", "cpu").identity == first.identity
    assert load_encoder(f"{file}:deviations", "cpu").identity != first.identity
    file.write_text(COLOURS + "# edited\n")
    assert load_encoder(f"{file}:Colours", "cpu").identity != first.identity


def test_what_was_kept_of_it_makes_the_same_features_wherever_it_lies(file, tmp_path):
    encoder = load_encoder(f"{file}:Colours", "cpu")
    kept = tmp_path / "elsewhere" / "encoder.py"
    kept.parent.mkdir()
    kept.write_bytes(encoder.program)
    file.unlink()
    again = kept_encoder(encoder.name, kept)
    assert replace(again, encode=encoder.encode) == encoder
    np.testing.assert_array_equal(again.encode(images(16)), encoder.encode(images(16)))


def test_a_program_that_was_never_named_here_is_not_run(tmp_path):
    kept = tmp_path / "encoder.py"
    kept.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + COLOURS)
    with pytest.raises(InputError, match="read it") as fault:
        kept_encoder("theirs.py:Colours", kept)
    assert not (tmp_path / "ran").exists()
    mark = next(word for word in str(fault.value).split() if word.startswith(str(cache_folder()))).rstrip(".")
    (cache_folder() / "own-encoders").mkdir(parents=True)
    Path(mark).touch()  # the cure
    assert kept_encoder("theirs.py:Colours", kept).shape == (3,)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import beside\ndef f(images): return beside.f(images)", "f"),
        ("def f(images):\n import beside\n return beside.f(images)", "f"),
        ("from pathlib import Path\nW = (Path(__file__).parent / 'beside.py').read_text()\nf = len", "f"),
        ("def f(images", "f"),
        ("f = 3", "f"),
        ("f = 3", "g"),
        ("class F:\n def __init__(self, side): pass", "F"),
        ("def f(images): return images", "f"),
        ("def f(images): return images[:1].mean((2, 3))", "f"),
        ("def f(images): return images.mean((2, 3)) * 1e300", "f"),
        ("def f(images): return images.mean((2, 3)) / 0 * 0", "f"),
        ("def f(images): return [['a']] * len(images)", "f"),
        ("def f(images): return images.mean((2, 3))\nf.side = 10**6", "f"),
        ("raise SystemError('two\\nlines')", "f"),
    ],
)
def test_what_could_not_be_read_back_or_makes_no_features_is_refused_at_once(tmp_path, monkeypatch, text, name):
    (tmp_path / "beside.py").write_text("def f(images): return images.mean((2, 3))")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])  # as `python -m medi` started there has it
    (tmp_path / "own.py").write_text(text)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="cannot be used") as fault:
        load_encoder(f"own.py:{name}", "cpu")
    assert "\n" not in str(fault.value)


def test_a_fault_on_a_photo_is_one_line_too(tmp_path):
    (tmp_path / "own.py").write_text("def f(images):\n assert len(images) < 3, 'too many'\n return images.mean((2, 3))")
    with pytest.raises(InputError, match="too many"):
        load_encoder(f"{tmp_path}/own.py:f", "cpu").encode(images(224))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match=r"there is no file .*gone\.py"):
        load_encoder(f"{tmp_path}/gone.py:f", "cpu")
