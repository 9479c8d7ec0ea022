"""results/presets.md: the settings in use for each dataset, from the code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from textwrap import fill
from typing import Any

from medi.data.facts import BENCHMARKS
from medi.methods import METHODS, Method

HEAD = """# Presets

What `--config default` stands for on each dataset, and `paper`: what differs from the defaults of a method's fields.
The presets themselves (`src/medi/methods/presets`) also have `full`, the recipes published for CIFAR-10 (RS: and for
CIFAR-100 and SVHN). `--set field=value` changes a field. `make results` writes this page.
"""


def page() -> str:
    """The whole page."""
    by_text: dict[str, list[str]] = {}
    for name, method in METHODS.items():
        by_text.setdefault(_block(method), []).append(name)
    return HEAD + "".join(f"\n## {', '.join(names)}\n\n```text\n{text}\n```\n" for text, names in by_text.items())


def _block(method: type[Method]) -> str:
    by_settings: dict[str, list[str]] = {}
    for dataset in BENCHMARKS:
        by_settings.setdefault(_text(method.preset("default", dataset)), []).append(dataset)
    for dataset in method.default_for_all:
        everything = _text(method.preset("default", dataset, everything=True))
        by_settings.setdefault(everything, []).append(f"{dataset} with everything observed")
    if "paper" in method.presets:
        by_settings.setdefault(_text(method.preset("paper")), []).append("paper")
    lines = [f"{', '.join(names)}: {text or 'as the class has it'}" for text, names in by_settings.items()]
    return "\n".join(map(_wrapped, lines))


def _wrapped(line: str) -> str:
    return fill(line, 110, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _text(settings: Method) -> str:
    return " ".join(_changes(settings, type(settings)(), ""))


def _changes(value: Any, usual: Any, path: str) -> Iterator[str]:
    """What a value has other than the usual one, as `--set` and candidates name it."""
    if value == usual:
        return
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        if len(value) > 1 and len(set(map(repr, value))) == 1:
            yield f"{path}={len(value)}x"
            value = value[:1]
        usual = usual if isinstance(usual, tuple) else ()
        for number, part in enumerate(value):
            yield from _changes(part, usual[number] if number < len(usual) else None, f"{path}.{number}")
    elif is_dataclass(value):
        if type(usual) is not type(value):
            usual = None
        for field in fields(value):
            before = _default(field) if usual is None else getattr(usual, field.name)
            yield from _changes(getattr(value, field.name), before, f"{path}.{field.name}".lstrip("."))
    else:
        yield f"{path}={_short(value)}"


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _short(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(map(_short, value)) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
