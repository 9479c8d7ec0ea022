"""The reference of the Python package, from its docstrings; nothing of it is imported but the registry of methods."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import griffe

from medi.registry import METHOD_LISTINGS

SOURCE = Path(__file__).resolve().parents[1] / "src"
LINE = 88

METHOD_PLACES = tuple(listing.place.replace(":", ".") for listing in METHOD_LISTINGS.values())
# Page: title, and what is on it. `shown as: where it is written` where users import it from elsewhere.
PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "estimator": (
        "MetaDiscovery",
        (
            "medi.MetaDiscovery: medi.estimator.MetaDiscovery",
            *(f"medi.discover.result.{name}" for name in ("Discovery", "ClassCount", "Diagnosis", "Group")),
            *(f"medi.grouping.recogniser.{name}" for name in ("Recogniser", "Recognised", "Guess")),
        ),
    ),
    "methods": (
        "Methods",
        (
            *("medi.methods.METHODS", "medi.methods.method_of"),
            *(f"medi.methods.{name}: medi.methods.base.{name}" for name in ("Method", "Plan", "Learner")),
            *(f"medi.methods.{name}: medi.methods.base.{name}" for name in ("Clustering", "Assignment")),
            "medi.methods.EmbeddingMethod: medi.methods.embedding.EmbeddingMethod",
            "medi.methods.bag_training.BagMethod",
            *("medi.nn.loop.train", "medi.nn.schedule.Schedule", "medi.nn.context.Context"),
            *METHOD_PLACES,
        ),
    ),
    "data": (
        "Data",
        (
            *("medi.data.benchmarks.load", "medi.data.benchmarks.Benchmark", "medi.data.imageset.ImageSet"),
            "medi.data.facts.Augmentation",
        ),
    ),
    "scores": (
        "Scores",
        (
            *("medi.evaluate: medi.bench.score.evaluate", "medi.bench.score.Scoring", "medi.bench.score.Score"),
            *(f"medi.metrics.{name}" for name in ("acc", "nmi", "ari", "score_episodes", "Scores", "chance")),
        ),
    ),
    "theory": (
        "Theory",
        (
            *(f"medi.theory.{name}: medi.theory.supports.{name}" for name in ("overlap", "Overlap")),
            *(
                f"medi.theory.{name}: medi.theory.bound.{name}"
                for name in ("generalisation_bound", "largest_useful_beta")
            ),
        ),
    ),
    "errors": ("Errors", ("medi.core.errors.InputError", "medi.core.errors.LostError")),
}


def pages() -> dict[str, str]:
    """Markdown by name."""
    package = griffe.load("medi", search_paths=[SOURCE])
    made = {}
    for name, (title, entries) in PAGES.items():
        parts = [f"# {title}"]
        for entry in entries:
            shown, _, place = entry.partition(": ")
            parts += _entry(package[(place or shown).removeprefix("medi.")], shown)
        made[name] = "\n\n".join(parts) + "\n"
    return made


def _entry(thing: Any, shown: str) -> list[str]:
    """A class with its public methods, a function, or a value."""
    if thing.is_attribute:
        return [f"## {shown}", _value(shown)]
    parts = [f"## {shown}", _signature(thing, shown), *_documented(thing)]
    if thing.is_class:
        for name, member in thing.members.items():
            if not member.is_alias and member.is_function and not name.startswith("_") and member.has_docstring:
                parts += [f"### {thing.name}.{name}", _signature(member, name), *_documented(member)]
            elif not name.startswith("_") and "property" in member.labels and member.has_docstring:
                parts += [f"### {thing.name}.{name}", *_documented(member)]
    return parts


def _value(shown: str) -> str:
    """The registry of methods is the one value there is."""
    if shown != "medi.methods.METHODS":
        raise LookupError(f"no words for {shown}")
    lines = (
        f"`{name}`\n:   [{place.rpartition('.')[2]}](#{place.replace('.', '').lower()})"
        for name, place in zip(METHOD_LISTINGS, METHOD_PLACES, strict=True)
    )
    return "\n\n".join(["Classes of methods by the name that `--method` takes.", *lines])


def _signature(thing: Any, shown: str) -> str:
    """As it is called; with an argument a line where it is long."""
    owner = thing if thing.is_function else thing.all_members.get("__init__")
    if owner is None or not owner.is_function:
        return f"```python\nclass {shown}\n```" if thing.is_class else ""
    words: list[str] = []
    for one in owner.parameters:
        if one.name in ("self", "cls"):
            continue
        if one.kind is griffe.ParameterKind.keyword_only and "*" not in words:
            words.append("*")
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(one.kind, "")
        kind = f": {one.annotation}" if one.annotation is not None else ""
        default = "" if one.default is None or stars else f" = {one.default}" if kind else f"={one.default}"
        words.append(f"{stars}{one.name}{kind}{default}")
    returns = f" -> {owner.returns}" if thing.is_function and owner.returns is not None else ""
    line = f"{shown}({', '.join(words)}){returns}"
    if len(line) > LINE:
        line = f"{shown}(\n" + "".join(f"    {word},\n" for word in words) + f"){returns}"
    return f"```python\n{line}\n```"


def _documented(thing: Any) -> list[str]:
    """The docstring; its lists of arguments, attributes and results as definitions."""
    if thing.docstring is None:
        raise LookupError(f"{thing.path} has no docstring")
    parts = []
    for section in thing.docstring.parse("google", warnings=False):
        kind = section.kind.value
        if kind == "text":
            parts.append(re.sub(r"^>>> .*?(?=\n\n|\Z)", r"```pycon\n\g<0>\n```", section.value, flags=re.M | re.S))
        elif kind == "examples":
            parts += [f"```pycon\n{text}\n```" if form.value == "examples" else text for form, text in section.value]
        elif kind in ("returns", "yields"):
            parts.append("**Returns:** " + " ".join(" ".join(one.description.split()) for one in section.value))
        elif kind == "raises":
            parts += [f"**Raises** `{one.annotation}`: {one.description}" for one in section.value]
        elif kind in ("parameters", "attributes"):
            parts.append(f"**{kind.capitalize()}**")
            parts += [f"`{one.name}`\n:   {_indented(one.description)}" for one in section.value]
        else:
            raise LookupError(f"{thing.path}: no words for the section {kind}")
    return [part.replace("<", "&lt;") if not part.startswith("```") else part for part in parts]


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ").lstrip()
