"""A plain installation has no torch: the whole way of a photo goes without, and what needs it says so in one line."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

EXTRAS = (
    "torch",
    "torchvision",
    "requests",
    "matplotlib",
    "pyarrow",
    "rawpy",
    "ray",
    "timm",
    "open_clip",
    "transformers",
)
WITHOUT = f"""
from importlib.machinery import PathFinder
find_spec = PathFinder.find_spec
PathFinder.find_spec = lambda name, *where: None if name.partition(".")[0] in {EXTRAS} else find_spec(name, *where)
"""
"""What Python runs before a program: packages that a plain installation does not bring are not found."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A folder that processes start in."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "sitecustomize.py").write_text(WITHOUT)
    return folder


def python(folder: Path, *words: object) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": str(folder)}
    environment |= {"MEDI_CACHE": str(folder / "cache"), "MEDI_DATA": str(folder / "data")}
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def medi(folder: Path, *words: object, code: int = 0) -> str:
    """What the program says: on stdout, or on stderr where it should fail."""
    process = python(folder, "-m", "medi", *words)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    return errors if code else said


@pytest.fixture(scope="module")
def found(plain) -> Path:
    """What `medi demo` found in its letters."""
    said = medi(plain, "demo")
    assert "medi review" in said.replace("\n", " ")
    return plain / "demo" / "found"


def test_extras_are_really_out_of_reach(plain):
    for name in EXTRAS:
        process = python(plain, "-c", f"import {name}")
        assert f"No module named '{name}'" in process.communicate(timeout=60)[1]


def test_photos_are_discovered_assigned_reviewed_accepted_and_exported(plain, found):
    letters = found.parent / "letters"
    folders = ("--known", letters / "known", "--novel", letters / "novel")
    facts = json.loads(medi(plain, "discover", *folders, "--out", "out", "--export", "--json"))
    assert facts["n_classes"] == json.loads((found / "discovery.json").read_text())["n_classes"]
    assert (plain / "out" / "report.html").is_file()
    medi(plain, "assign", "--model", "out/model", "--images", letters / "novel", "--out", "new.csv")
    with (plain / "new.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == facts["novel_photos"]

    reviewed = python(plain, "-m", "medi", "review", "out", "--no-browser")
    try:
        address = reviewed.stdout.readline().strip()
        with httpx.Client(base_url=address.partition("/?")[0], timeout=60) as client:
            client.get("/" + address.rpartition("/")[2])
            state = client.get("/api/state").json()
            first, second = (group["id"] for group in state["groups"][:2])
            merged = client.post(
                "/api/actions", json={"seq": state["seq"], "action": "merge", "groups": [first, second]}
            )
            assert merged.status_code == 200, merged.text
    finally:
        reviewed.kill()
        reviewed.communicate(timeout=60)

    (group,) = {first, second} & {group["id"] for group in merged.json()["groups"]}
    medi(plain, "accept", "out", "--into", letters / "known", f"{group}=new letter")
    assert len(list((letters / "known" / "new letter").iterdir())) >= 2
    medi(plain, "export", "out", "--format", "csv", "--out", "labels.csv")
    assert "new letter" in (plain / "labels.csv").read_text()


def test_the_estimator_groups_vectors(plain):
    program = """
from sklearn.datasets import load_digits
from medi import MetaDiscovery
X, y = load_digits(return_X_y=True)
X, y = X[:400], y[:400]
model = MetaDiscovery(random_state=0).fit(X, [label if label < 6 else -1 for label in y])
print(len(model.predict(X)), model.n_classes_)
"""
    process = python(plain, "-c", program)
    said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    items, groups = map(int, said.split())
    assert items == 400
    assert groups >= 2


def test_the_version_and_the_theory_are_told(plain):
    assert "torch" in medi(plain, "--version", "--verbose")
    assert "epsilon" in medi(plain, "theory", "bound", "--tasks", 1000, "--beta", 0.001, "--max-loss", 1)
    assert "cifar10" in medi(plain, "data", "list")


@pytest.mark.parametrize("method", ["mp", "mm", "medi"])
def test_a_method_that_learns_names_the_extra_before_anything_is_read(plain, found, method):
    letters = found.parent / "letters"
    folders = ("--known", letters / "known", "--novel", letters / "novel", "--out", f"out-{method}")
    refused(medi(plain, "discover", *folders, "--method", method, code=2), f"--method {method}")
    assert not (plain / f"out-{method}").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("demo --method mp --out other", "--method mp"),
        ("bench run --dataset glyphs --method mp --out rows", "medi bench"),
        ("bench choose --dataset glyphs --method mp --config default --out rows", "medi bench"),
        ("bench rerun rows/results.jsonl:1", "medi bench"),
    ],
)
def test_commands_that_need_torch_name_the_extra(plain, words, what):
    refused(medi(plain, *words.split(), code=2), what)


def test_a_download_names_the_extra(plain):
    said = medi(plain, "data", "fetch", "svhn", code=2)
    assert said == 'medi: medi data fetch needs requests: pip install "medi[train]"\n'


@pytest.mark.parametrize("encoder", ["timm:resnet10t", "open_clip:RN50/openai", "transformers:facebook/dinov2-small"])
def test_an_encoder_of_another_library_names_its_extra(plain, found, encoder):
    letters = found.parent / "letters"
    folders = ("--known", letters / "known", "--novel", letters / "novel", "--out", "out-of-a-hub")
    said = medi(plain, "discover", *folders, "--encoder", encoder, code=2)
    refused(said, f"--encoder {encoder}", extra=encoder.partition(":")[0])


def refused(said: str, what: str, extra: str = "train") -> None:
    """One line: what needs torch, and the command that brings it."""
    assert re.fullmatch(rf'medi: .*{what}.* needs torch: pip install "medi\[{extra}\]"\n', said), said
