"""The simulated person of benchmarks/review.py."""

import numpy as np
from reviews import made_up_review, toy_pool

import review as benchmark


def test_answers_put_a_wrong_grouping_right(tmp_path):
    pool = toy_pool((6, 6, 6), known=0, alone=0)
    truth = pool.labels.tolist()
    pool.labels = np.where(np.arange(18) % 5 == 0, (pool.labels + 1) % 3, pool.labels)
    review = made_up_review(tmp_path, pool, photos=False)
    found = benchmark.answer_questions(review, truth, after=(0, 3, 6))
    assert found["0"] < 0.9
    assert found["6"] == 1
    assert found["shown"] <= 6
    assert len(review.history.done) <= 6
