"""`medi data list`, `fetch` and `check` as they are typed; what programs read of them: `tests/schemas`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from official import CIFAR10, CIFAR100, write_tiny
from typer.testing import CliRunner

from medi.cli.data import app
from medi.core.errors import InputError
from medi.data.facts import BENCHMARKS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDI_DATA", str(tmp_path))
    return tmp_path


def medi_data(*arguments: str) -> tuple[str, BaseException | None]:
    result = CliRunner().invoke(app, list(arguments))
    return result.output, result.exception


def test_list_names_every_benchmark_and_where_its_data_lies(folder: Path) -> None:
    write_tiny(folder, CIFAR10)
    output, error = medi_data("list")
    assert error is None
    rows = {line.split()[0]: line.split()[-1] for line in output.splitlines() if line.strip()}
    assert set(BENCHMARKS) <= set(rows)
    assert (rows["cifar10"], rows["svhn"], rows["glyphs"]) == ("yes", "no", "generated")
    assert str(folder) in output


def test_list_imports_nothing_heavy() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from medi.cli.data import app\n"
        "assert CliRunner().invoke(app, ['list']).exit_code == 0\n"
        "sys.exit(' '.join({'torch', 'numpy', 'scipy', 'requests'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr.strip() == ""


def test_check_fails_on_a_damaged_file_after_telling_of_all(folder: Path) -> None:
    write_tiny(folder, CIFAR10)
    write_tiny(folder, CIFAR100)
    cut = folder / CIFAR10.folder / "test_batch.bin"
    cut.write_bytes(cut.read_bytes() + b"x")
    output, error = medi_data("check", "cifar10", "cifar100")
    assert isinstance(error, InputError)
    assert str(cut) in str(error)
    assert "\n" not in str(error)
    assert "cifar10: damaged" in output
    assert "cifar100: partial" in output


@pytest.mark.parametrize("arguments", [("cifar10", "svhn"), ("cifar10,svhn",), ("cifar10,svhn", "svhn")])
def test_names_may_be_parted_by_spaces_or_commas(arguments: tuple[str, ...]) -> None:
    assert medi_data("check", *arguments)[0].endswith(":\ncifar10: absent\nsvhn: absent\n")


def test_fetch_leaves_alone_what_is_there_and_what_is_generated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny(folder, CIFAR10)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert medi_data("fetch", "glyphs", "cifar10")[1] is None
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    fetched = []
    monkeypatch.setattr("medi.data.download.fetch", lambda facts, reporter: fetched.append(facts.name))
    medi_data("fetch", "all")
    assert fetched == [name for name, facts in BENCHMARKS.items() if not facts.generated]


@pytest.mark.parametrize("command", ["fetch", "check"])
def test_an_unknown_name_is_answered_with_the_nearest(command: str) -> None:
    _, error = medi_data(command, "cifar_100")
    assert isinstance(error, InputError)
    assert "did you mean 'cifar100'?" in str(error)
