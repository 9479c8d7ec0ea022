"""The reference of the command line, from the program itself: every command, argument, option, default and help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from medi.cli.main import app

_TYPES = {"<path>": "PATH", "<str>": "TEXT", "<int>": "N", "<int range>": "N", "<float>": "X", "<float range>": "X"}


def page() -> str:
    """Markdown of all commands, in the order of `medi --help`."""
    program = typer.main.get_command(app)
    parts = ["# Command line", "Made from the program's own help. `python -m medi` is the same as `medi`."]
    for context, depth in _commands(program, typer.Context(program, info_name="medi")):
        parts += _command(context, depth)
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, context: Any, depth: int = 1) -> Iterator[tuple[Any, int]]:
    """Contexts of a command and of all below it, with their depth."""
    yield context, depth
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, typer.Context(child, info_name=name, parent=context), depth + 1)


def _command(context: Any, depth: int) -> list[str]:
    command = context.command
    required = [one for one in command.params if one.required and one.opts[0].startswith("-")]
    pieces = [_names(one, context) for one in required] + command.collect_usage_pieces(context)
    usage = " ".join([context.command_path, *(piece.replace("{", "").replace("}", "") for piece in pieces)])
    parts = [f"{'#' * depth} {context.command_path}"] if depth > 1 else []
    parts += [_prose(inspect.cleandoc(command.help or "")), f"```text\n{usage}\n```"]
    return [*parts, *(_definition(one, context) for one in command.params if one.name != "help")]


def _names(parameter: Any, context: Any) -> str:
    """As a user would write it: `--seed N`, `DIR`."""
    names: str = parameter.get_help_record(context)[0]
    if not parameter.opts[0].startswith("-"):
        return names.partition(" <")[0]
    return re.sub(r"<[^>]*>", lambda kind: _TYPES.get(kind[0], kind[0].strip("<>").upper()), names)


def _definition(parameter: Any, context: Any) -> str:
    """What is written, whether it must be and what it is otherwise; then the help."""
    text, _, facts = parameter.get_help_record(context)[1].partition("  [")
    facts = facts.removesuffix("]").replace("default: (", "default: ").replace(")", "").replace("<=x<=", " to ")
    return f"`{_names(parameter, context)}`{f' ({facts})' if facts else ''}\n:   {_prose(text)}"


def _prose(text: str) -> str:
    """Help as Markdown: pages of docs/ are links, and angle brackets outside of code are no tags."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [
        re.sub(r"docs/(\w+)\.md", r"[\1](../\1.md)", piece.replace("<", "&lt;")).replace("[docs/", "[")
        for piece in pieces[::2]
    ]
    return "".join(pieces)
