"""What programs read, held against the schemas that are shipped."""

import json
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from jsonschema import Draft202012Validator

from medi.schemas import schema


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def check(name: str, document: Any) -> Any:
    """The document, which its schema must take; the message says where it does not."""
    errors = [f"{error.json_path}: {error.message[:300]}" for error in validator(name).iter_errors(document)]
    assert not errors, "\n".join(errors)
    return document


def check_printed(name: str, text: str) -> Any:
    """The one document that was printed, in ASCII."""
    assert text.isascii()
    return check(name, parsed(text))


def check_lines(name: str, path: Path) -> list[Any]:
    """The documents of a file, one a line."""
    return [check(name, parsed(line)) for line in path.read_text().splitlines()]


def parsed(text: str) -> Any:
    """JSON as the standard has it, without NaN and infinity."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> NoReturn:
    raise AssertionError(f"{name} is no JSON")
