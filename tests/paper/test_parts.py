"""The parts of the paper ask for what the paper shows."""

from dataclasses import replace

from medi.bench.grid import ALL, Run, config_of
from medi.bench.published import published
from medi.methods import METHODS
from medi.methods.mm import MM
from medi.registry import COMPARED_METHODS
from paper.mm_parts import TAKEN_APART_ON, mm_parts
from paper.parts import parts_of

DATASETS = ("svhn", "cifar10", "cifar100", "omniglot")


def parts_by_name(abundant: tuple[str, ...]) -> dict[str, tuple[Run, ...]]:
    return {part.name: part.runs for part in parts_of(DATASETS, abundant)}


def test_the_parts_ask_for_every_number_that_the_paper_prints():
    parts = parts_by_name(("svhn", "omniglot"))
    cells = {(run.dataset, run.observations, run.method, run.sampler) for run in parts["ablation"] if published(run)}
    assert len(cells) == 8 * 4  # eight settings, MM and MP with CATA and without
    for name, told in {
        "few-observations": (False, "equal"),
        "few-observations-balanced": (True, "equal"),
        "few-observations-unequal": (False, "unequal"),
    }.items():
        asked = {(run.dataset, run.observations, run.method) for run in parts[name]}
        assert asked == {(dataset, n, method) for dataset in DATASETS for n in (5, 1) for method in COMPARED_METHODS}
        assert {(run.balance, run.sizes) for run in parts[name]} == {told}
    abundant = {(run.dataset, run.method) for run in parts["abundant"] if run.observations == ALL}
    assert abundant == {(dataset, method) for dataset in ("svhn", "omniglot") for method in COMPARED_METHODS}
    assert {run.method for run in parts["records"]} == {"medi"}


def test_mp_as_published_differs_in_distance_and_sampler_alone():
    runs = parts_by_name(())["mp-published"]
    settings = {run.config: config_of(run) for run in runs}
    assert len(runs) == 2 * 2 * 2 * 8  # distances, samplers, regimes, settings
    squared, plain = settings.values()
    assert (squared.distance, plain.distance) == ("squared", "euclidean")
    assert replace(plain, distance="squared") == squared
    published_recipe = METHODS["mp"].preset("paper")
    assert squared == replace(published_recipe, schedule=squared.schedule)
    for length in ("steps", "halve_every"):
        assert 4 * getattr(squared.schedule, length) == getattr(published_recipe.schedule, length)


def test_every_part_is_taken_away_from_each_datasets_own_settings():
    runs = mm_parts(TAKEN_APART_ON)
    for dataset in TAKEN_APART_ON:
        whole = MM.preset("default", dataset)
        taken = {run.config: config_of(run) for run in runs if run.dataset == dataset}
        assert taken["whole"] == whole
        assert (taken["no-meta-steps"].schedule.steps, taken["no-meta-steps"].inner) == (0, whole.inner)
        assert (taken["no-inner-steps"].inner.steps, taken["no-inner-steps"].schedule) == (0, whole.schedule)
        assert (taken["start-alone"].inner.steps, taken["start-alone"].schedule.steps) == (0, 0)
        assert (taken["head"].readout, whole.readout) == ("head", "cluster")
        assert (taken["no-prototypes"].prototypes, whole.prototypes) == (0, 1)
        assert taken["no-pretraining"].pretraining is None
        assert whole.pretraining
