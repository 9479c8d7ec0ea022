"""Build the site: stage docs/, make the reference, have Zensical build it strictly, check every link.

`python website/build.py` writes build/site; open build/site/index.html.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import api_pages
import check_pages
import cli_pages
import staging

STAGED, SITE = staging.ROOT / "build" / "docs", staging.ROOT / "build" / "site"


def main() -> int:
    """Exit status: 0 where all is well."""
    try:
        staging.stage(STAGED)
    except staging.MissingFile as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write_reference(STAGED / "reference")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    if subprocess.run(command, cwd=staging.ROOT, check=False).returncode:
        return 1
    faults = check_pages.faults(SITE) + check_pages.unread_markdown(SITE)
    sys.stderr.writelines(f"{line}\n" for line in faults)
    return 1 if faults else 0


def write_reference(folder: Path) -> None:
    """The pages that are made from the program."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"cli": cli_pages.page(), **api_pages.pages()}.items():
        (folder / f"{name}.md").write_text(text)


if __name__ == "__main__":
    sys.exit(main())
