"""`check` tells whole, partial, damaged and absent files apart, and agrees with the readers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from official import CIFAR10, CIFAR100, OMNIGLOT, SVHN, write_tiny

from medi.data.check import FileState, State, check, summary
from medi.data.facts import BENCHMARKS, Facts
from medi.data.formats import DamagedFile

downloaded = pytest.mark.parametrize("facts", [CIFAR10, CIFAR100, SVHN, OMNIGLOT], ids=lambda facts: facts.name)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEDI_DATA", str(tmp_path))
    return tmp_path


@downloaded
def test_a_set_is_absent_partial_and_counted_or_whole(folder: Path, facts: Facts) -> None:
    assert summary(check(facts)) == State.ABSENT
    write_tiny(folder, facts)
    files = check(facts)
    assert summary(files) == State.PARTIAL
    assert [(file.records, file.expected) for file in files] == [(20, count) for count in facts.records.values()]
    assert summary(check(replace(facts, records=dict.fromkeys(facts.records, 20)))) == State.WHOLE


@downloaded
def test_a_set_with_a_cut_file_is_damaged_and_the_file_named(folder: Path, facts: Facts) -> None:
    write_tiny(folder, facts)
    path = folder / facts.folder / list(facts.records)[-1]
    path.write_bytes(path.read_bytes()[:-3])
    files = check(facts)
    assert summary(files) == State.DAMAGED
    assert [file.path for file in files if file.fault] == [path]
    assert str(path) in str(files[-1].fault)


@pytest.mark.parametrize("facts", [SVHN, OMNIGLOT], ids=lambda facts: facts.name)
def test_a_flipped_byte_in_a_zip_or_a_compressed_mat_is_damage(folder: Path, facts: Facts) -> None:
    write_tiny(folder, facts)
    path = folder / facts.folder / next(iter(facts.records))
    content = bytearray(path.read_bytes())
    # Both are checksummed: the pixels of a mat file by zlib, a drawing by the zip.
    content[len(content) // 2 if facts is SVHN else content.index(b"IDAT") + 8] ^= 0xFF
    path.write_bytes(content)
    assert summary(check(facts)) == State.DAMAGED


def test_a_generated_set_has_no_files() -> None:
    assert check(BENCHMARKS["glyphs"]) == []


def test_the_worst_file_speaks_for_a_damaged_set_and_a_missing_one_makes_it_partial() -> None:
    path = Path("train.bin")
    whole, absent = FileState(path, expected=2, records=2), FileState(path, expected=2)
    damaged = FileState(path, expected=2, fault=DamagedFile(CIFAR100, path, "cut"))
    assert summary([whole, absent]) == State.PARTIAL
    assert summary([whole, absent, damaged]) == State.DAMAGED
