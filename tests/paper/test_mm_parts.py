"""MM taken apart: what is compared, and that the small comparison is the large one's."""

from pathlib import Path

from medi.bench.candidates import read_candidates
from medi.bench.grid import config_of
from medi.core.settings import FROM, merge
from medi.methods.mm import MM
from paper.mm_parts import MM_PARTS, TAKEN_APART_ON, mm_parts

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


def test_the_measurement_on_a_cpu_takes_the_same_parts_away():
    small, large = read_candidates(ON_A_CPU), read_candidates(MM_PARTS)
    whole = small[0]
    assert [one.name for one in small] == [f"small-{one.name}" for one in large]
    for one, other in zip(small, large, strict=True):
        assert one.changes == merge(whole.changes, other.changes) | {FROM: whole.changes[FROM]}
