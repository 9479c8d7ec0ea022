import json
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tiny import KMEANS_RUN, TINY, TINY_RUN

from medi.bench import run as bench_run
from medi.bench.choose import hold_out
from medi.bench.grid import config_of
from medi.bench.run import run_grid, train_learner
from medi.errors import InputError
from medi.methods import METHODS
from medi.runtime.context import Context
from medi.runtime.files import read_journal
from medi.runtime.progress import Silent

FIELDS = {
    "dataset", "method", "config", "sampler", "way", "observations", "regime", "score", "seed", "acc", "nmi", "ari",
    "chance", "acc_ci95", "episodes", "balance", "network", "seconds", "device", "torch", "version", "commit",
}  # fmt: skip
KMEANS, MP = (replace(run, dataset="glyphs") for run in (KMEANS_RUN, TINY_RUN))


@pytest.fixture(autouse=True)
def loaded(monkeypatch, glyphs):
    monkeypatch.setattr(bench_run, "load_dataset", lambda name, *_: glyphs)


def go(runs, out, **options):
    defaults = {"episodes": 5, "device": torch.device("cpu"), "resume": False, "reporter": Silent()}
    return run_grid(runs, out, **(defaults | options))


def without_time(rows) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_every_run_is_a_row_with_all_that_it_came_from(tmp_path):
    rows = go([KMEANS, replace(MP, balance=True), replace(MP, regime="grouped")], tmp_path / "out")
    assert read_journal(tmp_path / "out" / "results.jsonl") == rows
    assert all(set(row) >= FIELDS for row in rows)
    assert all(0 <= row["acc"] <= 1 and 0 < row["chance"] < 1 and row["acc_ci95"] > 0 for row in rows)
    assert [row["network"] for row in rows] == [None, "mlp", "mlp"]
    assert [row["sampler"] for row in rows] == [None, "uniform", "uniform"]
    assert [row["balance"] for row in rows] == [False, True, False]
    assert all(0 <= row["ece"] <= 1 and 0 <= row["confidence"] <= 1 and row["sizes"] == "equal" for row in rows)


def test_a_row_says_whether_the_loss_assumes_equal_sizes():
    learner = SimpleNamespace(network="mlp")
    said = [
        bench_run.provenance(replace(KMEANS, method=name), learner, torch.device("cpu")).get("assumes_equal_sizes")
        for name in ("kmeans", "dtc", "uno", "simgcd")
    ]
    assert said == [None, None, True, True]


def test_a_method_is_run_with_and_without_the_sizes_and_on_unequal_ones(tmp_path):
    runs = [replace(KMEANS, balance=True), KMEANS, replace(KMEANS, sizes="unequal")]
    told, untold, unequal = go(runs, tmp_path / "out")
    assert told["acc"] != untold["acc"] != unequal["acc"]
    assert go(runs[1:], tmp_path / "out", resume=True) == [untold, unequal]


def test_a_row_has_the_whole_settings_and_what_was_changed(tmp_path):
    plain, changed = go([KMEANS, MP], tmp_path / "out")
    assert "set" not in plain
    assert changed["set"] == TINY
    assert changed["settings"]["schedule"]["steps"] == 4
    assert changed["settings"]["distance"] == "squared"


def test_runs_that_differ_in_their_scoring_set_are_scored_apart(tmp_path):
    episode, pooled = go([KMEANS, replace(KMEANS, score="pooled")], tmp_path / "out")
    assert (episode["episodes"], pooled["episodes"]) == (5, 1)
    assert pooled["acc_ci95"] is None


def test_results_of_other_settings_are_never_mixed(tmp_path):
    go([MP], tmp_path / "out")
    other = replace(MP, changes=TINY | {"schedule": {"steps": 5}})
    with pytest.raises(InputError, match="other settings"):
        go([other], tmp_path / "out", resume=True)
    assert len(go([MP, replace(MP, regime="grouped")], tmp_path / "out", resume=True)) == 2


def test_a_result_without_a_setting_that_there_is_now_is_of_other_settings(tmp_path):
    go([KMEANS], tmp_path)
    (row,) = read_journal(tmp_path / "results.jsonl")
    del row["settings"]["pretraining"]
    (tmp_path / "results.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError, match="other settings"):
        go([KMEANS], tmp_path, resume=True)


def test_a_grid_is_continued_without_repeating_or_losing_a_run(tmp_path):
    first = go([KMEANS], tmp_path)
    for _ in range(2):
        rows = go([KMEANS, replace(KMEANS, seed=1)], tmp_path, resume=True)
        assert rows[0] == first[0]
        assert read_journal(tmp_path / "results.jsonl") == rows


def test_a_half_written_last_line_is_done_again(tmp_path):
    runs = [KMEANS, replace(KMEANS, seed=1)]
    whole = go(runs, tmp_path)
    text = (tmp_path / "results.jsonl").read_text()
    (tmp_path / "results.jsonl").write_text(text[:-40])
    assert without_time(go(runs, tmp_path, resume=True)) == without_time(whole)
    assert len([json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]) == 2


def test_an_interrupted_grid_keeps_its_finished_runs(tmp_path, monkeypatch):
    real = bench_run.train_learner

    def interrupted(run, benchmark, context):
        if run.seed == 1:
            raise KeyboardInterrupt
        return real(run, benchmark, context)

    monkeypatch.setattr(bench_run, "train_learner", interrupted)
    with pytest.raises(KeyboardInterrupt):
        go([KMEANS, replace(KMEANS, seed=1)], tmp_path)
    assert [row["seed"] for row in read_journal(tmp_path / "results.jsonl")] == [0]


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
        go([replace(MP, seed=seed)], tmp_path / name)[0]["acc"] for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert one == two
    assert one != other


def test_a_trained_model_is_used_again_for_another_regime(tmp_path):
    go([MP], tmp_path)
    models = {path: path.stat().st_mtime_ns for path in (tmp_path / "models").glob("*.safetensors")}
    go([MP, replace(MP, regime="transductive")], tmp_path, resume=True)
    assert models
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "models").glob("*.safetensors")} == models


def test_what_cannot_be_asked_is_refused_before_there_is_a_folder(tmp_path):
    with pytest.raises(InputError, match="images but a task needs"):
        go([KMEANS, replace(MP, observations=50)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("observations", [5, "all"])
def test_a_learner_may_see_observed_images_beforehand_where_all_are_observed(monkeypatch, glyphs, observations):
    plans = []
    monkeypatch.setattr(METHODS["kmeans"], "fit", lambda self, known, plan: plans.append(plan))
    split = hold_out(glyphs, (3, 5), "all")
    train_learner(replace(KMEANS, observations=observations, score="pooled"), split, Context())
    if observations == "all":
        assert torch.equal(plans[0].observed, split.novel_train.images)
    else:
        assert plans[0].observed is None


def test_a_preset_of_a_dataset_is_changed_where_only_changes_are_given():
    run = replace(KMEANS, method="mp", changes={"schedule": {"rate": 0.5}})
    preset = config_of(replace(run, changes={}))
    assert config_of(run) == replace(preset, schedule=replace(preset.schedule, rate=0.5))
