from itertools import permutations

import pytest
from choosing import comparisons, correlate, correlation_table, draw, gather
from scipy.stats import spearmanr

from medi.errors import InputError


def row(acc: float, config: str, method: str = "mp", **other: object) -> dict:
    run = {"dataset": "svhn", "method": method, "config": config, "sampler": None, "observations": 5}
    scored = {"regime": "honest", "score": "episode", "acc": acc, "commit": "abc"}
    return run | scored | {"settings": {"method": method, "rate": config, "mix": None}} | other


def trial(acc: float, config: str, held_out: tuple[str, ...] = ("0", "1"), **other: object) -> dict:
    return row(acc, config, asked_way=2, held_out=list(held_out), **other)


def test_settings_meet_by_what_they_are_not_by_their_names_and_seeds_become_a_mean():
    trials = [trial(0.6, "a"), trial(0.8, "a", ("0", "2")), trial(0.7, "b"), trial(0.9, "b", regime="transductive")]
    results = [row(0.5, "a") | {"config": "default"}, row(0.7, "a", seed=1), row(0.2, "c")]
    results += [row(0.1, "a", sampler="cata"), row(0.1, "a", score="pooled"), row(0.1, "b", observations=1)]
    (found,) = gather(trials, results)
    assert (found.question, found.method, found.name) == (("svhn", "5", "episode", 2), "mp", "a")
    assert found.held_out == {("0", "1"): 60, ("0", "2"): 80}
    assert found.novel == [50, 70]
    assert found.same_code
    other = [one | {"settings": {"rate": "a", "method": "mp"}, "commit": "def"} for one in results[:2]]  # no mix yet
    (older,) = gather(trials, other)
    assert not older.same_code


def test_only_splits_that_all_settings_share_count():
    trials = [trial(0.9, "a"), trial(0.1, "a", ("0", "2")), trial(0.7, "b"), trial(0.8, "c")]
    results = [row(0.5, "a"), row(0.6, "b"), row(0.7, "c")]
    (found,) = comparisons(gather(trials, results))
    assert (found.held_out, found.splits) == ([90, 70, 80], 1)
    assert found.novel[found.first] == 50
    apart = [
        trial(0.8, "a", (name,)) | {"settings": one["settings"]} for name, one in zip("xyz", trials[1:], strict=True)
    ]
    assert not comparisons(gather(apart, results))


def test_methods_are_compared_together_and_each_by_itself():
    trials = [trial(0.5 + i / 100, str(i), method=m) for m in ("mp", "rs") for i in range(3)]
    results = [row(0.5 + i / 100, str(i), m) for m in ("mp", "rs") for i in range(3)]
    found = comparisons(gather(trials, results))
    assert [len(one.settings) for one in found] == [6, 3, 3]
    _heading, *lines = correlation_table(gather(trials, results))
    assert [line[1] for line in lines] == ["6", "3", "3"]
    assert lines[1][4].startswith("1.00")
    assert lines[1][-2:] == ["52.0", "52.0"]
    assert len(draw(gather(trials, results)).axes) == 3


@pytest.mark.parametrize(
    "values",
    [
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]),
        ([1, 1, 2, 3], [5, 7, 7, 8]),
        ([3, 1, 2], [1, 2, 3]),
        (list(range(12)), [3, 1, 2, 0, 7, 5, 6, 4, 11, 9, 10, 8]),
    ],
)
def test_the_correlation_is_spearmans_and_p_the_share_of_orders_that_do_as_well(values):
    found = correlate(*values)
    assert found.rho == pytest.approx(spearmanr(*values).statistic)
    assert -1 <= found.low <= found.high <= 1
    if found.n <= 5:
        orders = [spearmanr(values[0], order).statistic for order in permutations(values[1])]
        assert found.p == pytest.approx(sum(one >= found.rho - 1e-9 for one in orders) / len(orders))
    else:
        assert found.p == pytest.approx(spearmanr(*values, alternative="greater").pvalue, abs=0.01)


def test_rows_without_both_kinds_are_refused():
    with pytest.raises(InputError, match="no 3 settings"):
        draw(gather([trial(0.5, "a")], [row(0.5, "b")]))
