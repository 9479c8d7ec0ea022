"""`--dataset folder:PATH` and `path/to/file.py:function`: like a benchmark, or refused by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from medi.bench.candidates import NamedSettings
from medi.bench.datasets import facts_for, load_dataset
from medi.bench.grid_options import fit_to_device, runs_asked
from medi.bench.run import run_grid, settings_of
from medi.bench.setup import Setup
from medi.core.errors import InputError
from medi.core.progress import Silent
from medi.methods.mp import MP

COLOURS = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "grey": (99, 99, 99), "white": (255,) * 3}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A folder a colour with three photos, sizes and forms mixed."""
    for name, colour in COLOURS.items():
        (tmp_path / name / "deeper").mkdir(parents=True)
        for number, place in enumerate(("a.png", "b.jpg", "deeper/c.webp")):
            image = np.full((40 + number, 50, 3), colour, np.uint8)
            Image.fromarray(image).save(tmp_path / name / place)
    return tmp_path


def test_a_folder_has_its_first_classes_known_and_the_others_novel(photos: Path) -> None:
    benchmark = load_dataset(f"folder:{photos}")
    assert benchmark.known.class_names == ("blue", "green", "grey")
    assert benchmark.novel.class_names == ("red", "white")
    assert benchmark.facts == facts_for(f"folder:{photos}")
    assert (benchmark.facts.known, benchmark.facts.novel, benchmark.facts.way) == (3, 2, 2)
    for images in (benchmark.known, benchmark.novel):
        assert images.images.shape == (3 * images.n_classes, 3, 32, 32)
        for image, label in zip(images.images, images.labels, strict=True):
            colour = COLOURS[images.class_names[label]]
            assert np.allclose(image.numpy().mean((1, 2)), colour, atol=3)


def test_what_is_wrong_with_a_folder_is_named(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        facts_for(f"folder:{tmp_path / 'nowhere'}")
    with pytest.raises(InputError, match="1 classes are too few"):
        facts_for(f"folder:{photos / 'red'}")
    (photos / "red" / "a.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"red/a\.png cannot be read"):
        load_dataset(f"folder:{photos}")
    (photos / "empty").mkdir()
    with pytest.raises(InputError, match="no photo in empty"):
        facts_for(f"folder:{photos}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def other(): ...", "unknown name in .*'made'.*other"),
        ("def made(): return 3", "returns a Benchmark"),
        ("def made(more): return more", "cannot be made.*more"),
        ("", "there is none"),
        ("import nothing_of_that_name", "cannot be imported.*nothing_of_that_name"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(code: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(code)
    with pytest.raises(InputError, match=message):
        facts_for(f"{file}:made")


def runs(dataset: str, method: str, config: str = "default"):
    return runs_asked(NamedSettings(config, {}), [0], dataset=dataset, method=method)


def test_on_a_cpu_a_dataset_without_settings_of_its_own_gets_those_for_a_cpu(photos: Path) -> None:
    said: list[str] = []
    asked = runs(f"folder:{photos}", "mp")
    (small,) = fit_to_device(asked, on_cpu=True, say=said.append)
    assert settings_of(small) == settings_of(*runs(f"folder:{photos}", "mp", "cpu"))
    assert len(said) == 1
    assert fit_to_device(asked, on_cpu=False, say=said.append) == asked
    assert len(said) == 1


def test_what_was_chosen_for_a_dataset_stays_on_a_cpu_and_that_is_said() -> None:
    said: list[str] = []
    asked = [*runs("omniglot", "mp"), *runs("glyphs", "mp"), *runs("glyphs", "medi")]
    assert [run.changes for run in fit_to_device(asked, on_cpu=True, say=said.append)] == [{}, {}, {}]
    assert len(said) == 1
    assert "omniglot" in said[0]


def test_a_method_without_settings_for_a_cpu_takes_its_default_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    presets = {name: settings for name, settings in MP.presets.items() if name != "cpu"}
    monkeypatch.setattr(MP, "presets", {**presets, "default": {"images": 7}})
    said: list[str] = []
    (run,) = fit_to_device(runs("omniglot", "mp", "cpu"), on_cpu=False, say=said.append)
    assert settings_of(run)["images"] == 7
    assert said == ["mp has no preset cpu: its default is used."]


OWN = """
from small_sets import patterns
from medi.data.benchmarks import Benchmark
from medi.data.facts import Augmentation

benchmark = Benchmark.of("own", patterns(4, each=24), patterns(4, each=24), way=3, augmentation=Augmentation())
"""
METHOD = """
from dataclasses import dataclass
from medi.methods.kmeans import KMeans

@dataclass(frozen=True)
class Own(KMeans):
    pass
"""


def test_a_result_of_other_code_or_other_images_is_not_taken_for_this_one(tmp_path: Path) -> None:
    data, method = tmp_path / "data.py", tmp_path / "method.py"
    data.write_text(OWN)
    method.write_text(METHOD)

    def go() -> None:
        asked = runs(f"{data}:benchmark", f"{method}:Own")
        run_grid(asked, Setup(tmp_path / "out", 2, torch.device("cpu"), Silent(), resume=True))

    go()
    go()
    method.write_text(METHOD + "\n# changed")
    with pytest.raises(InputError, match="made with other code"):
        go()
    method.write_text(METHOD)
    data.write_text(OWN.replace("patterns(4, each=24), way", "patterns(4, each=25), way"))
    with pytest.raises(InputError, match="made with other images"):
        go()
