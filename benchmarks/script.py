"""How the scripts of `benchmarks` and `experiments` start and end.

Bad arguments and missing data are one line on stderr and exit code 2, as `medi` itself answers them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from medi.core.errors import InputError, unknown_name
from medi.core.files import make_folder, write_atomically
from medi.core.reading import input_errors


class Parser(argparse.ArgumentParser):
    """Raises what is wrong with the arguments, so that it becomes one line without the usage."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise InputError(f"{message}; --help lists the arguments.")


def run(main: Callable[[Parser], object], description: str | None) -> None:
    """Run a script; exit with 2 where the input is at fault, with 130 on Ctrl-C.

    Args:
        main: Adds its arguments to a parser, parses them and does the work.
        description: What --help says: the script's docstring.
    """
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    try:
        main(parser)
    except InputError as error:
        parser.exit(2, f"{parser.prog}: {' '.join(str(error).split())}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"{parser.prog}: stopped.\n")


def positive(text: str) -> int:
    """A whole number from 1, as the type of an argument."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small: give at least 1")
    return number


def some_of(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    """Names separated by commas, each of them allowed, as the type of an argument."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise unknown_name("name", name, allowed)
        return names

    return parse


def read_json(path: Path) -> dict[str, Any]:
    """What `write_json` wrote."""
    with input_errors(path, "read"):
        content = path.read_bytes()
    try:
        found: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise InputError(f"{path} is not JSON: give a file that --out wrote.") from error
    return found


def write_json(path: Path | None, figures: Mapping[str, Any]) -> None:
    """Write figures to a file, into a folder that is made; without a path nothing is written."""
    if path:
        make_folder(path.parent)
        write_atomically(path, (json.dumps(figures, indent=1) + "\n").encode())
