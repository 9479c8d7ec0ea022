"""What lets `--ray` stand on the command line with an address or without."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class RayCommand(TyperCommand):
    """A command whose `--ray` needs no address, which typer's options cannot."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in the address of this machine where none is given."""
        filled = []
        for argument, following in zip(args, [*args[1:], "-"], strict=True):
            filled += [argument, "local"] if argument == "--ray" and following.startswith("-") else [argument]
        return super().parse_args(ctx, filled)
