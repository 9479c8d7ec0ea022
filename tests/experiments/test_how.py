"""The pictures of how it works show what the engine says."""

import how

BINS = {"lines": [4, 60], "confidence": [1.0, 54.0], "right": [0, 48]}
ROWS = [{"pool": pool, "approaches": {"medi": {"bins": BINS}}} for pool in ("mixed", "mixed", "pure")]


def test_letters_of_the_pool_are_weighed_and_drawn(tmp_path):
    drawn = how.letters()
    for number, figure in enumerate((how.teaching(), how.weighing(drawn), how.rehearsing(drawn, ROWS))):
        how.save(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 5000
