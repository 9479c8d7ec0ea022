import pytest
import separability
import torch
from embeddings import KINDS, Recipe, learn
from separability import draw_novel, separability_table, study_separability

from medi.data.benchmarks import Benchmark
from medi.data.facts import facts_of
from medi.data.imageset import ImageSet
from medi.data.rules import rules
from medi.errors import InputError
from medi.runtime.context import Context
from medi.runtime.progress import Silent


def images(per_class: int, classes: int, value: int) -> ImageSet:
    labels = torch.arange(classes).repeat_interleave(per_class)
    return ImageSet(
        torch.full((len(labels), 3, 4, 4), value, dtype=torch.uint8), labels, tuple(map(str, range(classes)))
    )


def test_novel_images_of_both_splits_are_drawn_without_repetition():
    benchmark = Benchmark(facts_of("cifar10"), images(1, 5, 0), images(6, 7, 1), images(3, 7, 2))
    drawn = draw_novel(benchmark, 8, torch.Generator().manual_seed(0))
    assert torch.bincount(drawn.labels).tolist() == [8] * 5
    assert set(drawn.images.unique().tolist()) == {1, 2}
    everything = draw_novel(benchmark, 100, torch.Generator().manual_seed(0))
    assert torch.bincount(everything.labels).tolist() == [9] * 5
    assert everything.class_names == drawn.class_names


def test_a_study_compares_every_kind_on_the_same_images(tmp_path, monkeypatch):
    known, novel = rules(known_images=10, novel_images=14)
    monkeypatch.setattr(separability, "load", lambda name: Benchmark(facts_of(name), known, novel))
    options = {"seeds": 2, "reporter": Silent(), "recipe": Recipe("mlp", steps=3), "items": 14}
    rows = study_separability(["rules"], tmp_path, **options)
    assert [row["job"]["kind"] for row in rows] == [*KINDS, *KINDS]
    assert {row["width"] for row in rows} == {3 * 32 * 32, 256}
    assert {tuple(row["per_class"]) for row in rows} == {(14, 14)}
    _, (title, size, seeds, *cells) = separability_table(rows)
    assert (title, size, seeds) == ("Rules", "5 × 14", "2")
    taus = [row["tau"] for row in rows if row["job"]["kind"] == "pixels"]
    assert cells[0].startswith(f"{sum(taus) / 2:.3f} ± ")
    assert study_separability(["rules"], tmp_path, **options) == rows


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="pixels"):
        learn("pixel", images(1, 5, 0), Recipe(), Context(), way=5, augmentation=facts_of("rules").augmentation)
