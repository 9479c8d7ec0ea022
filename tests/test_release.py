"""The version, the changelog, the citation and the workflows agree; a faulty archive is refused."""

import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import archives
import pytest
import versions
from archives import ReleaseError

import medi

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
METADATA = """\
Metadata-Version: 2.4
Name: medi
Version: 0.2.0
Summary: x
Author: x
Keywords: x
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.11
Description-Content-Type: text/markdown
"""


def test_package_citation_and_changelog_name_one_version():
    assert versions.agreed_version(ROOT, f"v{medi.__version__}") == medi.__version__


@pytest.fixture
def root(tmp_path) -> Path:
    (tmp_path / "src" / "medi").mkdir(parents=True)
    (tmp_path / "src" / "medi" / "__init__.py").write_text('__version__ = "0.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 0.2.0\ndate-released: 2026-11-18\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-18\n")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("src/medi/__init__.py", "0.2.0", "0.3.0", r"no ## \[0.3.0\]"),
        ("CITATION.cff", "0.2.0", "0.1.0", "CITATION.cff says"),
        ("CITATION.cff", "2026-11-18", "2026-11-17", "CITATION.cff says"),
        ("CHANGELOG.md", " - 2026-11-18", "", r"no ## \[0.2.0\] - YYYY"),
        ("CHANGELOG.md", "## [Unreleased]", "", "Unreleased"),
    ],
)
def test_versions_that_disagree_are_refused(root, file, old, new, part):
    assert versions.agreed_version(root) == "0.2.0"
    (root / file).write_text((root / file).read_text().replace(old, new))
    with pytest.raises(ReleaseError, match=part):
        versions.agreed_version(root)


def wheel(path: Path, files: dict[str, str] | None = None, metadata: str = METADATA) -> Path:
    content = {"medi/__init__.py": "", "medi-0.2.0.dist-info/licenses/LICENSE": "MIT"} | (files or {})
    with ZipFile(path, "w") as archive:
        for name, text in (content | {"medi-0.2.0.dist-info/METADATA": metadata}).items():
            archive.writestr(name, text)
    return path


def test_a_wheel_of_code_and_licence_is_fine(tmp_path):
    good = wheel(tmp_path / "medi.whl")
    archives.check_wheel(good, {"medi/__init__.py"})
    archives.check_metadata(good, "0.2.0")
    archives.check_same(good, wheel(tmp_path / "again.whl"))


@pytest.mark.parametrize(
    "name",
    ["medi/rows.jsonl", "medi/__pycache__/a.pyc", "tests/test_a.py", "medi/net.safetensors", "medi/a.png", ".git/x"],
)
def test_data_and_caches_in_a_wheel_are_refused(tmp_path, name):
    with pytest.raises(ReleaseError, match=re.escape(name)):
        archives.check_wheel(wheel(tmp_path / "medi.whl", {name: ""}), {"medi/__init__.py", name})


def test_a_wheel_that_is_not_the_source_or_too_large_or_without_licence_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ReleaseError, match=r"lacks \['medi/cli.py'\]"):
        archives.check_wheel(wheel(tmp_path / "a.whl"), {"medi/__init__.py", "medi/cli.py"})
    with pytest.raises(ReleaseError, match=r"adds \['medi/left.py'\]"):
        archives.check_wheel(wheel(tmp_path / "b.whl", {"medi/left.py": ""}), {"medi/__init__.py"})
    with pytest.raises(ReleaseError, match=r"differs from that of the checkout: medi/left\.py"):
        archives.check_same(tmp_path / "a.whl", tmp_path / "b.whl")
    with ZipFile(tmp_path / "c.whl", "w") as archive:
        archive.writestr("medi/__init__.py", "")
    with pytest.raises(ReleaseError, match="LICENSE"):
        archives.check_wheel(tmp_path / "c.whl", {"medi/__init__.py"})
    monkeypatch.setattr(archives, "WHEEL_BYTES", 10)
    with pytest.raises(ReleaseError, match="more than 10"):
        archives.check_wheel(tmp_path / "a.whl", {"medi/__init__.py"})


def test_workflows_name_actions_by_commit_and_give_no_rights_by_default():
    assert {path.name for path in WORKFLOWS} >= {"test.yml", "publish.yml"}
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^permissions:\n  contents: read\n", text, re.MULTILINE), path.name
        for action in re.findall(r"uses: (.*)$", text, re.MULTILINE):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), f"{path.name}: {action}"


def test_the_check_says_what_it_does():
    done = subprocess.run([sys.executable, ROOT / "release" / "check.py", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--record" in done.stdout
