import json
import subprocess
from dataclasses import asdict, replace
from itertools import product

import pytest
import torch

from medi.bench import run as bench_run
from medi.bench.choose import hold_out, try_candidates
from medi.bench.grid import Run
from medi.bench.run import run_grid, same_settings, train_learner
from medi.errors import InputError
from medi.methods import METHODS, MP
from medi.methods.dtc_config import DTCConfig
from medi.methods.inner_steps import InnerSteps
from medi.methods.mm import MM, MMConfig
from medi.methods.mp import MPConfig
from medi.runtime.context import Context
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent
from medi.train.schedule import Schedule

FIELDS = {
    "dataset", "method", "config", "sampler", "way", "observations", "regime", "score", "seed", "acc", "nmi", "ari",
    "chance", "acc_ci95", "episodes", "balance", "network", "seconds", "device", "torch", "version", "commit",
}  # fmt: skip
KMEANS = Run("glyphs", "kmeans", "default", None, 5, 5, "honest", "episode", 0)
TINY = Run("glyphs", "mp", "tiny", "uniform", 5, 2, "honest", "episode", 0)


@pytest.fixture(autouse=True)
def tiny_config(monkeypatch, glyphs):
    config = MPConfig(queries=3, images=60, schedule=Schedule(steps=4))
    monkeypatch.setattr(MP, "configs", {**MP.presets, "tiny": config})
    monkeypatch.setattr(bench_run, "load", lambda name, device: glyphs)


def go(runs, out, **options):
    defaults = {"episodes": 5, "device": torch.device("cpu"), "resume": False, "reporter": Silent()}
    return run_grid(runs, out, **(defaults | options))


def test_every_run_is_a_row_with_all_that_it_came_from(tmp_path):
    rows = go([KMEANS, replace(KMEANS, regime="grouped"), TINY], tmp_path / "out")
    assert read_journal(tmp_path / "out" / "results.jsonl") == rows
    assert all(set(row) >= FIELDS for row in rows)
    assert rows[0]["sampler"] is None
    assert rows[0]["network"] is None
    assert rows[2]["network"] == "conv4"
    assert rows[2]["balance"] is True
    assert rows[2]["settings"]["schedule"]["steps"] == 4
    assert all(0 <= row["acc"] <= 1 and 0 < row["chance"] < 1 and row["acc_ci95"] > 0 for row in rows)


def test_pooled_scores_have_no_interval_over_episodes(tmp_path):
    (row,) = go([replace(KMEANS, score="pooled")], tmp_path / "out")
    assert row["acc_ci95"] is None
    assert row["episodes"] == 1


def test_runs_that_differ_in_their_scoring_set_are_scored_apart(tmp_path):
    episode, pooled = go([KMEANS, replace(KMEANS, score="pooled")], tmp_path / "out")
    assert (episode["episodes"], pooled["episodes"]) == (5, 1)
    assert pooled["acc_ci95"] is None


def test_the_oracle_uses_no_balance(tmp_path):
    honest, grouped = go([TINY, replace(TINY, regime="grouped")], tmp_path / "out")
    assert honest["balance"]
    assert not grouped["balance"]


def test_results_of_other_settings_are_never_mixed(tmp_path, monkeypatch):
    go([TINY], tmp_path / "out")
    other = MPConfig(queries=3, images=60, schedule=Schedule(steps=5))
    monkeypatch.setattr(MP, "configs", {**MP.presets, "tiny": other})
    with pytest.raises(InputError, match="other settings"):
        go([TINY], tmp_path / "out", resume=True)


def test_a_grid_is_continued_without_repeating_or_losing_a_run(tmp_path):
    out = tmp_path / "out"
    first = go([KMEANS], out)
    rows = go([KMEANS, replace(KMEANS, seed=1)], out, resume=True)
    assert rows[0] == first[0]
    assert len(read_journal(out / "results.jsonl")) == 2
    go([KMEANS, replace(KMEANS, seed=1)], out, resume=True)
    assert len(read_journal(out / "results.jsonl")) == 2


def test_a_half_written_last_line_is_done_again(tmp_path):
    out = tmp_path / "out"
    runs = [KMEANS, replace(KMEANS, seed=1)]
    whole = go(runs, out)
    text = (out / "results.jsonl").read_text()
    (out / "results.jsonl").write_text(text[:-40])
    again = go(runs, out, resume=True)
    timeless = [{k: v for k, v in row.items() if k != "seconds"} for row in whole]
    assert [{k: v for k, v in row.items() if k != "seconds"} for row in again] == timeless
    assert len([json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]) == 2


def test_an_interrupted_grid_keeps_its_finished_runs(tmp_path, monkeypatch):
    out = tmp_path / "out"
    real = bench_run.train_learner

    def interrupted(run, benchmark, context):
        if run.seed == 1:
            raise KeyboardInterrupt
        return real(run, benchmark, context)

    monkeypatch.setattr(bench_run, "train_learner", interrupted)
    with pytest.raises(KeyboardInterrupt):
        go([KMEANS, replace(KMEANS, seed=1)], out)
    assert [row["seed"] for row in read_journal(out / "results.jsonl")] == [0]


def test_the_commit_says_when_the_code_was_changed_after_it(tmp_path, monkeypatch):
    package = tmp_path / "src" / "medi"
    package.mkdir(parents=True)
    code = package / "__init__.py"
    code.write_text("one")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(bench_run.medi, "__file__", str(code))
    asked_anew = bench_run.commit.__wrapped__
    clean = asked_anew()
    assert len(clean) == 40
    code.write_text("two")
    assert asked_anew() == f"{clean}-dirty"


def test_a_folder_that_is_not_empty_is_only_used_on_request(tmp_path):
    (tmp_path / "out").mkdir()
    go([KMEANS], tmp_path / "out")  # an empty one is fine
    with pytest.raises(InputError, match="add --resume"):
        go([KMEANS], tmp_path / "out")


def test_the_same_seed_gives_the_same_row_and_another_seed_another(tmp_path):
    one, two, other = (
        go([replace(TINY, seed=seed)], tmp_path / name)[0]["acc"] for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert one == two
    assert one != other


def test_a_trained_model_is_used_again_for_another_regime(tmp_path):
    out = tmp_path / "out"
    go([TINY], out)
    models = {path: path.stat().st_mtime_ns for path in (out / "models").glob("*.safetensors")}
    go([TINY, replace(TINY, regime="transductive")], out, resume=True)
    assert {path: path.stat().st_mtime_ns for path in (out / "models").glob("*.safetensors")} == models


def test_too_many_observations_are_refused_before_training(tmp_path):
    with pytest.raises(InputError, match="images but a task needs"):
        go([replace(TINY, observations=50)], tmp_path / "out")
    assert not (tmp_path / "out" / "models").exists()


def test_candidates_are_compared_on_held_out_known_classes_and_continued(tmp_path, monkeypatch, glyphs):
    from medi.bench import choose

    known_only = replace(glyphs, known=glyphs.known.of_classes(range(12)))
    monkeypatch.setattr(choose, "load", lambda name, device: known_only)
    options = {"episodes": 3, "device": torch.device("cpu"), "reporter": Silent()}
    runs = [replace(TINY, way=2), replace(TINY, way=2, regime="transductive")]
    first = try_candidates(runs, tmp_path, resume=False, **options)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert len(rows) == 2 * 5
    assert not {name for row in rows for name in row["held_out"]} & set(glyphs.novel.class_names)
    assert [summary.splits for summary in first] == [5, 5]
    again = try_candidates(runs, tmp_path, resume=True, **options)
    assert again == first
    assert len(read_journal(tmp_path / "choices.jsonl")) == 10


@pytest.mark.parametrize("families", [False, True])
def test_candidates_can_be_compared_with_held_out_classes_observed_in_full(tmp_path, monkeypatch, glyphs, families):
    known = glyphs.known.of_classes(range(12))
    known = replace(known, class_names=tuple(f"{'abcd'[number % 4]}/{number}" for number in range(12)))
    benchmark = replace(glyphs, known=known, facts=replace(glyphs.facts, families=families))
    monkeypatch.setattr("medi.bench.choose.load", lambda name, device: benchmark)
    run = Run("glyphs", "kmeans", "default", None, 20, "all", "honest", "pooled", 0)
    options = {"episodes": 1, "device": torch.device("cpu"), "resume": False, "reporter": Silent(), "splits": 2}
    (summary,) = try_candidates([run], tmp_path, **options)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert summary.splits == 2
    assert [row["split"] for row in rows] == [0, 2]
    assert {row["episodes"] for row in rows} == {2 if families else 1}
    assert all(row["chance"] < row["acc"] and row["seconds"] > 0 for row in rows)


def test_trials_of_more_held_out_classes_are_kept_apart(tmp_path, monkeypatch, glyphs):
    five = replace(glyphs, known=glyphs.known.of_classes(range(5)))
    monkeypatch.setattr("medi.bench.choose.load", lambda name, device: five)
    run = Run("glyphs", "kmeans", "default", None, 5, 5, "honest", "episode", 0)
    options = {"episodes": 3, "device": torch.device("cpu"), "reporter": Silent(), "splits": 2}
    (pairs,) = try_candidates([run], tmp_path, resume=False, **options)
    (threes,) = try_candidates([run], tmp_path, resume=True, held_out=3, **options)
    assert (pairs.splits, threes.splits) == (2, 2)
    rows = read_journal(tmp_path / "choices.jsonl")
    assert [len(row["held_out"]) for row in rows] == [row["asked_way"] for row in rows] == [2, 2, 3, 3]
    assert try_candidates([run], tmp_path, resume=True, **options) == [pairs]
    assert read_journal(tmp_path / "choices.jsonl") == rows


def test_what_cannot_be_held_out_of_the_last_dataset_is_refused_before_the_first_is_trained(
    tmp_path, monkeypatch, glyphs
):
    sets = {"glyphs": glyphs, "rules": replace(glyphs, known=glyphs.known.of_classes(range(5)))}
    monkeypatch.setattr("medi.bench.choose.load", lambda name, device: sets[name])
    runs = [Run(name, "kmeans", "default", None, 5, 5, "honest", "episode", 0) for name in sets]
    options = {"episodes": 3, "device": torch.device("cpu"), "reporter": Silent(), "resume": False}
    with pytest.raises(InputError, match="--held-out 4"):
        try_candidates(runs, tmp_path, held_out=4, **options)
    assert not (tmp_path / "choices.jsonl").exists()


def test_a_candidate_that_stands_for_other_settings_than_its_trials_is_refused(tmp_path, monkeypatch, glyphs):
    monkeypatch.setattr("medi.bench.choose.load", lambda name, device: glyphs)
    options = {"episodes": 1, "device": torch.device("cpu"), "reporter": Silent(), "splits": 1}
    try_candidates([TINY], tmp_path, resume=False, **options)
    other = replace(MP.presets["tiny"], schedule=Schedule(steps=5))
    monkeypatch.setattr(MP, "configs", {**MP.presets, "tiny": other})
    with pytest.raises(InputError, match="other settings than 'tiny'"):
        try_candidates([TINY], tmp_path, resume=True, **options)


@pytest.mark.parametrize("observations", [5, "all"])
def test_a_learner_may_see_observed_images_beforehand_where_all_are_observed(monkeypatch, glyphs, observations):
    plans = []
    monkeypatch.setattr(METHODS["kmeans"], "fit", lambda self, known, plan: plans.append(plan))
    run = Run("glyphs", "kmeans", "default", None, 5, observations, "honest", "pooled", 0)
    split = hold_out(glyphs, (3, 5), "all")
    train_learner(run, split, Context())
    if observations == "all":
        assert torch.equal(plans[0].observed, split.novel_train.images)
    else:
        assert plans[0].observed is None


def test_a_method_bound_to_its_number_of_classes_is_trained_for_the_held_out_ones(tmp_path, monkeypatch, glyphs):
    config = MMConfig(network="mlp", inner=InnerSteps(steps=1), tasks=1, schedule=Schedule(steps=1))
    monkeypatch.setattr(MM, "configs", {**MM.presets, "tiny": config})
    five = replace(glyphs, known=glyphs.known.of_classes(range(5)))
    monkeypatch.setattr("medi.bench.choose.load", lambda name, device: five)
    run = Run("glyphs", "mm", "tiny", "uniform", 5, 1, "honest", "episode", 0)
    options = {"episodes": 2, "device": torch.device("cpu"), "resume": False, "reporter": Silent()}
    (summary,) = try_candidates([run], tmp_path, **options)
    assert summary.splits == 10
    assert {row["asked_way"] for row in read_journal(tmp_path / "choices.jsonl")} == {2}


@pytest.mark.parametrize("name", METHODS)
def test_settings_read_back_from_a_file_are_those_of_their_config_and_of_no_other(name):
    configs = list(METHODS[name].presets.values())[:12]
    for one, other in product(configs, configs):
        assert same_settings(json.loads(json.dumps(asdict(one))), other) == (one == other)


def test_a_setting_that_did_not_exist_counts_as_its_default_and_one_that_is_gone_as_another():
    config = DTCConfig()
    old = json.loads(json.dumps(asdict(config)))
    del old["ramp"], old["stage"]["least"]
    assert not same_settings(old, config), "the stage's least number of steps is not the default"
    old["stage"]["least"] = config.stage.least
    assert same_settings(old, config)
    assert not same_settings(old, replace(config, ramp=0.5))
    assert not same_settings(old | {"gone": 1}, config)
    assert not same_settings(None, config)
