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


def test_sorting_labels_many_photos_by_a_gesture_and_all_of_them_rightly(tmp_path):
    pool = toy_pool((20, 20, 20), known=0, alone=2)
    truth = ["abc"[label] if label >= 0 else f"single {item}" for item, label in enumerate(pool.labels.tolist())]
    review = made_up_review(tmp_path, pool, photos=False)
    found = benchmark.sort_pool(review, truth)
    assert found["photos"] == 60
    assert found["right"] == 1
    assert found["per_gesture"] > 2
