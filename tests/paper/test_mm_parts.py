"""MM taken apart: what is compared."""

from medi.bench.grid import config_of
from medi.methods.mm import MM
from paper.mm_parts import TAKEN_APART_ON, mm_parts


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
