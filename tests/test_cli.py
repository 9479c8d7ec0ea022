"""The program as a person runs it: exit codes, one line on stderr, nothing half-done."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from systems import posix

import medi
from medi import cli
from medi.errors import STOPPED
from medi.names import METHOD_NAMES

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}


ROW = {"dataset": "glyphs", "method": "mp", "config": "default", "sampler": "cata", "way": 20, "observations": 5}
ROW |= {"regime": "honest", "score": "pooled", "seed": 0, "acc": 0.5, "nmi": 0.5, "ari": 0.5, "chance": 0.5}
ROW |= {"acc_ci95": None, "episodes": 1, "balance": True}


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "medi", *arguments]
    environment = ENVIRONMENT | options.pop("env", {})
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, **options)


def run_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which has imported everything: for the many ways to be refused."""
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["medi", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.run()
    code = int(end.value.code or 0)
    return subprocess.CompletedProcess(["medi", *arguments], code, out.getvalue(), errors.getvalue())


def bench(out: Path, *more: str, go=run_here) -> subprocess.CompletedProcess[str]:
    return go("bench", "run", "--dataset", "glyphs", "--method", "kmeans", "--out", str(out), *more)


def fails(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    """Exit code 2, exactly one line on stderr, no traceback, and the parts in it."""
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


@pytest.mark.parametrize(
    ("command", "part"), [("--help", "bench"), ("bench run --help", ", ".join(METHOD_NAMES)), ("discover --help", "rs")]
)
def test_help_needs_no_torch(command, part):
    code = (
        f"import sys; sys.argv = ['medi', *{command.split()}]\n"
        "from medi.__main__ import main\n"
        "try: main()\n"
        "finally: assert not {'torch', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules), 'too much imported'"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert result.returncode == 0, result.stderr
    assert part in result.stdout


def test_the_version_is_the_packages():
    assert run_here("--version").stdout.strip() == f"medi {medi.__version__}"


def test_the_verbose_version_names_the_licence_of_the_weights():
    assert "Apache License 2.0" in run_here("--version", "--verbose").stdout


def test_a_console_without_our_characters_shows_others_and_nothing_dies(tmp_path):
    (tmp_path / "花.jsonl").write_text(json.dumps(ROW) + "\n")
    command = [sys.executable, "-X", "utf8=0", "-m", "medi", "bench", "rerun", str(tmp_path / "花.jsonl:2")]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "cp1252"}
    result = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert result.returncode == 2, result.stderr
    assert b"?.jsonl has 1 lines" in result.stderr


@pytest.mark.parametrize("command", [[], ["bench"], ["data"]])
def test_a_command_without_its_verb_shows_help(command):
    result = run_here(*command)
    assert result.returncode == 0
    assert "Usage" in result.stdout


def test_a_benchmark_runs_and_its_table_prints(tmp_path):
    options = ["--seeds", "1", "--episodes", "3", "--way", "5", "--regime", "honest,grouped"]
    done = bench(tmp_path / "out", *options, go=run)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [row["regime"] for row in rows] == ["honest", "grouped"]
    for form, sign in (("text", "not published"), ("md", "| ACC |"), ("csv", "dataset,task"), ("latex", r"\toprule")):
        table = run_here("bench", "table", "--results", str(tmp_path / "out"), "--format", form)
        assert table.returncode == 0, table.stderr
        assert sign in table.stdout


def test_a_table_and_a_figure_are_made_of_several_folders(tmp_path):
    folders = []
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "results.jsonl").write_text(json.dumps(ROW | {"seed": seed}) + "\n")
        folders += ["--results", str(folder)]
    table = run_here("bench", "table", *folders, "--format", "csv")
    assert "honest,yes,50.0,0.0,2," in table.stdout
    picture = tmp_path / "figure.png"
    assert run_here("bench", "figure", *folders, "--sampler", "cata", "--out", str(picture)).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    fails(run_here("bench", "figure", *folders, "--sampler", "uniform", "--out", str(picture)), "uniform", "cata")


def test_names_that_do_not_exist_suggest_the_nearest(tmp_path):
    out = str(tmp_path / "out")
    fails(
        run_here("bench", "run", "--dataset", "cifar11", "--method", "mp", "--out", out),
        "cifar11",
        "did you mean 'cifar10'",
    )
    fails(run_here("bench", "run", "--dataset", "glyphs", "--method", "pm", "--out", out), "unknown method 'pm'")
    fails(bench(tmp_path / "out", "--config", "papper"), "papper")
    fails(bench(tmp_path / "out", "--regime", "honset"), "did you mean 'honest'")
    fails(bench(tmp_path / "out", "--sampler", "uniforn"), "did you mean 'uniform'")
    fails(bench(tmp_path / "out", "--score", "episodes"), "did you mean 'episode'")
    fails(bench(tmp_path / "out", "--device", "gpu"), "gpu")
    fails(run_here("bench", "tabel"), "table")
    fails(bench(tmp_path / "out", "--sedes", "1"), "--seeds")
    assert not (tmp_path / "out").exists()


def choose(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return run_here("bench", "choose", "--dataset", "glyphs", "--method", "kmeans", "--out", str(out), *more)


def test_settings_that_a_method_does_not_have_are_refused_and_leave_no_folder(tmp_path):
    out, file = tmp_path / "out", tmp_path / "candidates.json"
    fails(bench(out, "--set", "grouping.untt=true"), "--set", "grouping.untt", "did you mean 'grouping.unit'")
    fails(bench(out, "--set", "grouping.neighbours=many"), "grouping.neighbours", "a whole number")
    fails(bench(out, "--set", "grouping"), "field=value")
    fails(choose(out), "--config", "--candidates")
    fails(choose(out, "--candidates", str(file)), str(file), "no such file")
    file.write_text('{"new": {"groupign": {}}}')
    fails(choose(out, "--candidates", str(file)), str(file), "new", "did you mean 'grouping'")
    fails(choose(out, "--config", "default", "--regime", "grouped"), "grouped")
    fails(choose(out, "--config", "default", "--held-out", "5000"), "5000")
    fails(choose(out, "--config", "default", "--observations", "19"), "19 observations")
    assert not out.exists()


def test_presets_and_candidates_are_compared_and_a_changed_candidate_is_refused(tmp_path):
    out, file = tmp_path / "out", tmp_path / "candidates.json"
    options = ("--config", "default", "--candidates", str(file), "--way", "3", "--episodes", "2", "--splits", "1")
    file.write_text('{"free": {"grouping": {"neighbours": 3}}}')
    done = choose(out, *options, "--set", "grouping.unit=true")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "choices.jsonl").read_text().splitlines()]
    assert [(row["config"], row["settings"]["grouping"]["neighbours"]) for row in rows] == [("default", 0), ("free", 3)]
    assert {row["settings"]["grouping"]["unit"] for row in rows} == {True}
    file.write_text('{"free": {"grouping": {"neighbours": 4}}}')
    fails(choose(out, *options, "--set", "grouping.unit=true", "--resume"), "(free, ", "other settings")
    fails(choose(out, *options, "--resume"), "other settings")


def test_a_setting_can_be_changed_for_a_run_and_a_resumed_run_must_have_it_too(tmp_path):
    options = ("--seeds", "1", "--episodes", "2", "--way", "3", "--set", "grouping.neighbours=3")
    assert bench(tmp_path / "out", *options).returncode == 0
    (row,) = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert row["settings"]["grouping"]["neighbours"] == 3
    assert row["set"] == {"grouping": {"neighbours": 3}}
    assert bench(tmp_path / "out", *options, "--resume").returncode == 0
    fails(bench(tmp_path / "out", *options[:-2], "--resume"), "other settings")


def test_every_candidate_of_a_file_is_run_under_its_name(tmp_path):
    out, file = tmp_path / "out", tmp_path / "candidates.json"
    file.write_text('{"unit": {"grouping": {"unit": true}}, "near": {"from": "unit", "grouping": {"neighbours": 3}}}')
    options = ("--seeds", "1", "--episodes", "2", "--way", "3", "--candidates", str(file))
    fails(bench(out, *options, "--config", "default"), "--config", "--candidates")
    assert bench(out, *options).returncode == 0
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    grouped = [(row["config"], row["settings"]["grouping"]) for row in rows]
    assert [(name, each["unit"], each["neighbours"]) for name, each in grouped] == [
        ("unit", True, 0),
        ("near", True, 3),
    ]


def test_numbers_out_of_all_proportion_are_refused(tmp_path):
    for option, value in (
        ("--seeds", "0"),
        ("--seeds", "999999999999"),
        ("--first-seed", "9" * 20),
        ("--episodes", "0"),
    ):
        fails(bench(tmp_path / "out", option, value), option)
    fails(bench(tmp_path / "out", "--observations", "²"), "²")
    fails(bench(tmp_path / "out", "--score", "episode,pooled"), "episode,pooled")


def test_missing_data_says_where_it_was_looked_for_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("MEDI_DATA", str(tmp_path / "nowhere"))
    for names in ("cifar10", "glyphs,cifar10"):  # what the last dataset lacks is said before the first is run
        result = run_here("bench", "run", "--dataset", names, "--method", "kmeans", "--out", str(tmp_path / "out"))
        fails(result, "nowhere", "medi data fetch cifar10")
    assert not (tmp_path / "out").exists()


@posix
@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.3, 0.6, 1.0, 1.5])
def test_ctrl_c_at_any_moment_of_the_start_gives_130_and_one_line(tmp_path, seconds):
    command = [sys.executable, "-c", "import time; from medi.__main__ import main; print('go', flush=True); main()"]
    command += ["bench", "run", "--dataset", "glyphs", "--method", "kmeans", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout.readline() == "go\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, STOPPED + "\n")


def test_more_observations_than_images_are_refused_with_the_numbers(tmp_path):
    fails(bench(tmp_path / "out", "--observations", "19"), "19 observations", "20 images")
    fails(bench(tmp_path / "out", "--way", "5000"), "5000")
    assert not (tmp_path / "out").exists()


def test_an_out_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    fails(bench(tmp_path), "--resume")
    fails(bench(tmp_path / "notes.txt"), "notes.txt")


@pytest.mark.skipif(not Path("/proc/1").exists(), reason="needs a folder that nobody may write to")
def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    fails(bench(Path("/proc/1/medi-out")), "/proc/1/medi-out")


def test_results_that_are_not_there_are_named(tmp_path):
    fails(run_here("bench", "table", "--results", str(tmp_path / "none")), "none", "medi bench run")
    fails(run_here("bench", "table", "--results", str(tmp_path), "--format", "pdf"), "pdf")


@posix
def test_ctrl_c_stops_with_130_and_a_resumed_grid_finishes(tmp_path):
    results = tmp_path / "out" / "results.jsonl"
    command = [sys.executable, "-m", "medi", "bench", "run", "--dataset", "rules", "--method", "mp", "--way", "3"]
    command += ["--out", str(results.parent), "--seeds", "2", "--episodes", "2", "--device", "cpu"]
    command += ["--set", "network=mlp", "--set", "schedule.steps=400"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    deadline = time.monotonic() + 100
    while not results.exists() and time.monotonic() < deadline:  # afterwards it trains with the second seed
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1] == STOPPED
    assert "Traceback" not in errors
    finished = results.read_text()
    assert [json.loads(line)["seed"] for line in finished.splitlines()] == [0]
    resumed = subprocess.run([*command, "--resume"], capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert resumed.returncode == 0, resumed.stderr
    assert results.read_text().startswith(finished)
    assert results.read_text().count("\n") == 2


@pytest.mark.parametrize("ray", [["--ray"], ["--ray", "auto"], ["--ray=auto"]])
def test_ray_stands_with_or_without_an_address_but_not_beside_jobs(tmp_path, ray):
    fails(bench(tmp_path / "out", *ray, "--jobs", "2"), "--jobs and --ray are two ways")
    assert not (tmp_path / "out").exists()
