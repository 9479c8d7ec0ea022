"""MM taken apart: what is compared, and that the small comparison is the large one's."""

from pathlib import Path

from medi.bench.candidates import FROM, merge, read_candidates
from medi.bench.grid import config_of
from medi.bench.mm_parts import MM_PARTS, TAKEN_APART_ON, mm_parts
from medi.methods.mm import MM

ON_A_CPU = Path(__file__).parents[2] / "results" / "mm-parts" / "candidates.json"


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


def test_both_samplers_are_asked_for_where_tasks_are_drawn_and_all_are_told_the_same():
    runs = mm_parts(TAKEN_APART_ON)
    assert len(set(runs)) == len(runs)
    assert all(run.balance for run in runs)
    for run in runs:
        samplers = {other.sampler for other in runs if (other.dataset, other.config) == (run.dataset, run.config)}
        assert samplers == ({"uniform", "cata"} if config_of(run).schedule.steps else {"uniform"})


def test_only_datasets_that_were_asked_for_are_run():
    assert {run.dataset for run in mm_parts(["svhn", "omniglot"])} == {"omniglot"}


def test_the_measurement_on_a_cpu_takes_the_same_parts_away():
    small, large = read_candidates(ON_A_CPU), read_candidates(MM_PARTS)
    whole = small[0]
    assert [one.name for one in small] == [f"small-{one.name}" for one in large]
    for one, other in zip(small, large, strict=True):
        assert one.changes == merge(whole.changes, other.changes) | {FROM: whole.changes[FROM]}
