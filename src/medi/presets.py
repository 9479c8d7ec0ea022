"""Which settings a name stands for: presets are JSON beside the methods, in the format of `--candidates`.

`resolve` is the one place that knows. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeVar

from medi.core.errors import unknown_name
from medi.core.settings import FROM, Changes, apply_changes, read_changes
from medi.data.facts import BENCHMARKS

DEFAULT, CPU = "default", "cpu"
FULL, FIFTH, SHORTER = "full", "fifth", 5
"""A published recipe; and the same with every length divided by five, so that it fits into ten minutes of a GPU."""
LENGTHS = ("steps", "epochs")
"""Settings that say how long something takes."""
VECTORS = "vectors"
"""Takes the place of a dataset's name where items are vectors: settings for images are too large for these."""

Presets = Mapping[str, Changes]
"""What differs from the defaults of a dataclass's fields, by name; one named like a dataset is the default there."""


class Configurable(Protocol):
    """A dataclass of settings that has presets."""

    presets: ClassVar[Presets]


SettingsT = TypeVar("SettingsT", bound=Configurable)


@cache
def read_presets(name: str) -> Presets:
    """The presets of a file, `default` where it has none (the fields as they are), and `fifth` of each `full`."""
    path = Path(__file__).parent / "methods" / "presets" / f"{name}.json"
    found = read_changes(path, "install this package anew.")
    for one in found.values():
        if FROM in one:
            raise unknown_name(f"preset that one of {path.name} starts from", one[FROM], found)
    shorter = {one.replace(FULL, FIFTH): _fifth_of(changes) for one, changes in found.items() if one.startswith(FULL)}
    return MappingProxyType({DEFAULT: {}, **found, **shorter})


def _fifth_of(changes: Changes) -> Changes:
    """A published recipe, shortened: nothing but its lengths is changed, at any depth."""

    def shortened(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return _fifth_of(value)
        if name in LENGTHS:
            return max(1, round(value / SHORTER))
        return FIFTH if (name, value) == (FROM, FULL) else value

    return {name: shortened(name, value) for name, value in changes.items()}


def preset_for(
    kind: type[Configurable],
    name: str = DEFAULT,
    dataset: str | None = None,
    *,
    on_cpu: bool = False,
    everything: bool = False,
) -> str:
    """The preset that a name stands for, which may differ between datasets: `full-svhn` is `full` there.

    `default` is the dataset's own; where it has none, `cpu` on a CPU or a dataset made for one.

    Args:
        kind: Whose presets.
        name: Asked for; `cpu` may be asked of anything, and is the default where there is none.
        dataset: Of a benchmark, or `VECTORS`; None for settings that are not for any.
        on_cpu: Whether a CPU does the work.
        everything: Whether all images of the novel classes are observed, not a few.
    """
    presets = kind.presets
    if name not in (*presets, DEFAULT, CPU):
        raise unknown_name(f"config of {kind.__name__.lower()}", name, presets)
    general, small = name, False
    if name == DEFAULT:
        small = on_cpu or (dataset is not None and dataset in BENCHMARKS and BENCHMARKS[dataset].small)
        if everything:
            general = getattr(kind, "default_for_all", {}).get(dataset, name)
    own = dataset if general == DEFAULT else f"{general}-{dataset}"
    wanted = (own, *([CPU] if small else []), general, DEFAULT)
    return next((str(one) for one in wanted if one in presets), DEFAULT)


def resolve(
    kind: type[SettingsT],
    name: str = DEFAULT,
    dataset: str | None = None,
    *,
    on_cpu: bool = False,
    everything: bool = False,
    changes: Changes | None = None,
) -> SettingsT:
    """The settings that a name stands for, with some changed; see `preset_for`.

    Settings inside them may start from presets of their own, for the same dataset.
    """

    def named(kind: Any, name: str) -> Any:
        return resolve(kind, name, dataset)

    chosen = preset_for(kind, name, dataset, on_cpu=on_cpu, everything=everything)
    preset: SettingsT = apply_changes(kind(), kind.presets.get(chosen, {}), named)
    changed: SettingsT = apply_changes(preset, changes or {}, named)
    return changed
