"""Markdown tables, read back."""


def cells(table: str) -> list[dict[str, str]]:
    """The rows of a Markdown table, by the names of its columns."""
    lines = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    head = [name.strip() for name in lines[0]]
    return [dict(zip(head, (cell.strip() for cell in line), strict=True)) for line in lines[2:]]
