"""The program as a person runs it: exit codes, one line on stderr, nothing half-done."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from people import refused
from systems import posix

import medi
from medi.core.errors import STOPPED
from medi.core.files import read_journal

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
ROW = {"dataset": "glyphs", "method": "mp", "config": "default", "sampler": "cata", "way": 20, "observations": 5}
ROW |= {"regime": "honest", "score": "pooled", "seed": 0, "acc": 0.5, "nmi": 0.5, "ari": 0.5, "chance": 0.5}
ROW |= {"acc_ci95": None, "episodes": 1, "balance": True}
SMALL = ("--episodes", "2", "--way", "3")


@pytest.fixture
def bench(medi_):
    return partial(medi_, "bench", "run", "--dataset", "glyphs", "--method", "kmeans", "--out")


@pytest.fixture
def choose(medi_):
    return partial(medi_, "bench", "choose", "--dataset", "glyphs", "--method", "kmeans", "--out")


@pytest.mark.parametrize("command", ["--help", "bench run --help", "discover --help"])
def test_help_needs_no_torch(command):
    code = (
        f"import sys; sys.argv = ['medi', *{command.split()}]\n"
        "from medi.__main__ import main\n"
        "try: main()\n"
        "finally: assert not {'torch', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules), 'too much imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_the_version_is_the_packages(medi_):
    assert medi_("--version").out.strip() == f"medi {medi.__version__}"
    assert medi_("--version", "--verbose").out.startswith(f"medi {medi.__version__} ")


def test_a_console_without_our_characters_shows_others_and_nothing_dies(tmp_path):
    (tmp_path / "花.jsonl").write_text(json.dumps(ROW) + "\n")
    command = [sys.executable, "-X", "utf8=0", "-m", "medi", "bench", "rerun", str(tmp_path / "花.jsonl:2")]
    environment = ENVIRONMENT | {"PYTHONIOENCODING": "cp1252"}
    result = subprocess.run(command, capture_output=True, timeout=60, env=environment)
    assert result.returncode == 2, result.stderr
    assert b"?.jsonl has 1 lines" in result.stderr


@pytest.mark.parametrize("command", [[], ["bench"], ["data"]])
def test_a_command_without_its_verb_shows_help(medi_, command):
    result = medi_(*command)
    assert (result.code, "Usage" in result.out) == (0, True)


@pytest.mark.parametrize(
    "command", ["discover", "assign", "review", "bench run", "bench choose", "bench table", "data fetch"]
)
def test_a_command_that_needs_more_says_what(medi_, command):
    refused(medi_(*command.split()), "Missing")


def test_a_benchmark_runs_and_its_table_prints_in_every_form(tmp_path, medi_, bench):
    done = bench(tmp_path / "out", "--seeds", "1", *SMALL, "--regime", "honest,grouped")
    assert done.code == 0, done.err
    assert [row["regime"] for row in read_journal(tmp_path / "out" / "results.jsonl")] == ["honest", "grouped"]
    for form, sign in (("text", "glyphs"), ("md", "| ACC |"), ("csv", "dataset,task"), ("latex", r"\toprule")):
        table = medi_("bench", "table", "--results", tmp_path / "out", "--format", form)
        assert table.code == 0, table.err
        assert sign in table.out
    refused(medi_("bench", "table", "--results", tmp_path, "--format", "pdf"), "pdf")


def test_a_table_and_a_figure_are_made_of_several_folders(tmp_path, medi_):
    folders = []
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "results.jsonl").write_text(json.dumps(ROW | {"seed": seed}) + "\n")
        folders += ["--results", folder]
    table = medi_("bench", "table", *folders, "--format", "csv")
    assert "honest,yes,50.0,0.0,2," in table.out
    picture = tmp_path / "figure.png"
    assert medi_("bench", "figure", *folders, "--sampler", "cata", "--out", picture).code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    refused(medi_("bench", "figure", *folders, "--sampler", "uniform", "--out", picture), "uniform", "cata")


@pytest.mark.parametrize(
    ("option", "value", "parts"),
    [
        ("--dataset", "cifar11", ("did you mean 'cifar10'",)),
        ("--method", "pm", ("unknown method 'pm'",)),
        ("--config", "papper", ("papper",)),
        ("--regime", "honset", ("did you mean 'honest'",)),
        ("--sampler", "uniforn", ("did you mean 'uniform'",)),
        ("--score", "episodes", ("did you mean 'episode'",)),
        ("--score", "episode,pooled", ("episode,pooled",)),
        ("--device", "gpu", ("gpu",)),
        ("--sedes", "1", ("--seeds",)),
        ("--seeds", "0", ("--seeds",)),
        ("--seeds", "999999999999", ("--seeds",)),
        ("--first-seed", "9" * 20, ("--first-seed",)),
        ("--episodes", "0", ("--episodes",)),
        ("--observations", "²", ("²",)),
        ("--observations", "19", ("19 observations", "20 images")),
        ("--way", "5000", ("5000",)),
        ("--set", "grouping.untt=true", ("--set", "did you mean 'grouping.unit'")),
        ("--set", "grouping", ("field=value",)),
        ("--candidates", "none.json", ("none.json", "no such file")),
    ],
)
def test_what_cannot_be_is_refused_by_its_name_and_leaves_no_folder(tmp_path, bench, option, value, parts):
    refused(bench(tmp_path / "out", option, value), *parts)
    assert not (tmp_path / "out").exists()


def test_a_choice_that_cannot_be_is_refused_and_leaves_no_folder(tmp_path, medi_, bench, choose):
    out, file = tmp_path / "out", tmp_path / "candidates.json"
    refused(medi_("bench", "tabel"), "table")
    refused(choose(out), "--config", "--candidates")
    file.write_text('{"new": {"groupign": {}}}')
    refused(choose(out, "--candidates", file), str(file), "new", "did you mean 'grouping'")
    refused(bench(out, "--candidates", file, "--config", "default"), "--config", "--candidates")
    refused(choose(out, "--config", "default", "--regime", "grouped"), "grouped")
    refused(choose(out, "--config", "default", "--held-out", "5000"), "5000")
    assert not out.exists()


def test_presets_and_candidates_are_compared_and_a_changed_candidate_is_refused(tmp_path, choose):
    out, file = tmp_path / "out", tmp_path / "candidates.json"
    options = ("--config", "default", "--candidates", file, *SMALL, "--splits", "1")
    file.write_text('{"free": {"grouping": {"neighbours": 3}}}')
    done = choose(out, *options, "--set", "grouping.unit=true")
    assert done.code == 0, done.err
    settings = {row["config"]: row["settings"]["grouping"] for row in read_journal(out / "choices.jsonl")}
    assert {name: (each["neighbours"], each["unit"]) for name, each in settings.items()} == {
        "default": (0, True),
        "free": (3, True),
    }
    refused(choose(out, *options, "--resume"), "other settings")


def test_every_candidate_of_a_file_is_run_under_its_name_and_resumed_with_the_same_settings(tmp_path, bench):
    out, file = tmp_path / "out", tmp_path / "candidates.json"
    file.write_text('{"unit": {"grouping": {"unit": true}}, "near": {"from": "unit", "grouping": {"neighbours": 3}}}')
    options = ("--seeds", "1", *SMALL, "--candidates", file, "--resume")
    assert bench(out, *options).code == 0
    rows = read_journal(out / "results.jsonl")
    assert {row["config"]: row["set"]["grouping"] for row in rows} == {
        "unit": {"unit": True},
        "near": {"unit": True, "neighbours": 3},
    }
    assert bench(out, *options).code == 0
    assert read_journal(out / "results.jsonl") == rows
    refused(bench(out, *options, "--set", "grouping.neighbours=4"), "other settings")


def test_missing_data_says_where_it_was_looked_for_and_how_to_get_it(tmp_path, monkeypatch, bench):
    monkeypatch.setenv("MEDI_DATA", str(tmp_path / "nowhere"))
    for names in ("cifar10", "glyphs,cifar10"):  # what the last dataset lacks is said before the first is run
        refused(bench(tmp_path / "out", "--dataset", names), "nowhere", "medi data fetch cifar10")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_used_or_that_cannot_be_written_to_is_named(tmp_path, bench):
    (tmp_path / "notes.txt").write_text("mine")
    refused(bench(tmp_path), "--resume")
    refused(bench(tmp_path / "notes.txt"), "notes.txt")
    if Path("/proc/1").exists():
        refused(bench(Path("/proc/1/medi-out")), "/proc/1/medi-out")


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


@posix
def test_ctrl_c_stops_with_130_and_a_resumed_grid_finishes(tmp_path):
    results = tmp_path / "out" / "results.jsonl"
    command = [sys.executable, "-m", "medi", "bench", "run", "--dataset", "rules", "--method", "mp", "--way", "3"]
    command += ["--out", str(results.parent), "--seeds", "2", "--episodes", "2", "--device", "cpu"]
    command += ["--set", "network=mlp", "--set", "schedule.steps=100"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    deadline = time.monotonic() + 100
    while not (results.exists() and results.read_text().endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # the line is on the disk, and the second seed is trained with
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
def test_ray_stands_with_or_without_an_address_but_not_beside_jobs(tmp_path, bench, ray):
    refused(bench(tmp_path / "out", *ray, "--jobs", "2"), "--jobs and --ray are two ways")
    assert not (tmp_path / "out").exists()
