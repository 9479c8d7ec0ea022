"""Settings that were tried on held-out known classes meet their results on novel ones."""

from choosing import comparisons, correlation_table, draw, gather


def row(acc: float, config: str, method: str = "mp", **other: object) -> dict:
    run = {"dataset": "svhn", "method": method, "config": config, "sampler": None, "observations": 5}
    scored = {"regime": "honest", "score": "episode", "acc": acc, "commit": "abc"}
    return run | scored | {"settings": {"method": method, "rate": config, "mix": None}} | other


def trial(acc: float, config: str, held_out: tuple[str, ...] = ("0", "1"), **other: object) -> dict:
    return row(acc, config, asked_way=2, held_out=list(held_out), **other)


def test_methods_are_compared_together_and_each_by_itself_on_splits_that_all_share():
    trials = [trial(0.5 + i / 100, str(i), method=m) for m in ("mp", "rs") for i in range(3)]
    trials.append(trial(0.9, "0", ("0", "2")))
    results = [row(0.5 + i / 100, str(i), m) for m in ("mp", "rs") for i in range(3)]
    settings = gather(trials, results)
    assert [(len(one.settings), one.splits) for one in comparisons(settings)] == [(6, 1), (3, 1), (3, 1)]
    _heading, *lines = correlation_table(settings)
    assert lines[1][4].startswith("1.00")
    assert lines[1][-2:] == ["52.0", "52.0"]
    assert len(draw(settings).axes) == 3
