"""`medi discover` from folders to files, and the model by which `medi assign` recognises the groups again."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import torch

from medi import __version__
from medi.data.cache import FeatureCache
from medi.data.facts import PHOTO
from medi.discover import output
from medi.discover.engine import DiscoverySettings, discover_groups
from medi.discover.material import Material, find_folders, read_material
from medi.discover.result import Discovery
from medi.discover.saved import choose_encoder, save_model
from medi.errors import InputError
from medi.files import write_atomically
from medi.licence import WEIGHTS
from medi.methods import method_of
from medi.nets.pretrained import DEFAULT, Encoder
from medi.progress import Reporter
from medi.report.page import Item, render, thumbnail
from medi.train.devices import choose_device, cpu_threads, describe_device
from medi.train.loop import Desk


@dataclass(frozen=True)
class Arguments:
    """What `medi discover` was asked for."""

    known: Path
    novel: Path
    out: Path
    classes: int | Literal["auto"] = "auto"
    method: str = "mp"
    encoder: str = DEFAULT
    seed: int = 0
    device: str = "auto"
    export: bool = False

    def as_facts(self) -> dict[str, Any]:
        """As JSON-able values, by which an unfinished run is recognised; folders in full."""
        return asdict(self) | {name: str(getattr(self, name).resolve()) for name in ("known", "novel", "out")}

    def command(self) -> str:
        """What to type to do it again, whatever the defaults will be."""
        words = ["medi", "discover"]
        for name, value in asdict(self).items():
            if name != "export":
                words += [f"--{name}", str(value)]
        return shlex.join([*words, "--export"] if self.export else words)


@dataclass(frozen=True)
class Outcome:
    """What was found, and what `discovery.json` says of it."""

    discovery: Discovery
    facts: Mapping[str, Any]


def run_discover(arguments: Arguments, reporter: Reporter, *, force: bool = False) -> Outcome:
    """Read, group, write; what is at fault is said before anything long begins."""
    start = monotonic()
    method_of(arguments.method)
    device = choose_device(arguments.device)
    folders = find_folders(arguments.known, arguments.novel)
    _check_numbers(arguments, len(folders.novel.paths))
    for flag, folder in (("--known", arguments.known), ("--novel", arguments.novel)):
        if arguments.out.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--out {arguments.out} lies inside {flag} {folder}: choose a folder outside it.")
    encoder = choose_encoder(arguments.encoder, device)
    work = output.claim(arguments.out, arguments.as_facts(), force=force)
    cache = FeatureCache(encoder.identity, reporter)
    try:
        material = read_material(folders, encoder, cache, reporter, thumbnail)
    finally:
        cache.close()
    _check_numbers(arguments, len(material.novel.paths))
    for warning in material.warnings:
        reporter.say(f"Note: {warning}")
    read = monotonic()
    desk = Desk(device, arguments.seed, work, reporter)
    settings = DiscoverySettings(
        classes=arguments.classes,
        method=arguments.method,
        network=encoder.network or DiscoverySettings.network,
        augmentation=PHOTO,
    )
    # Features are small: threads only wait for each other. Networks that are trained on images are not.
    with nullcontext() if encoder.network else cpu_threads(1):
        discovery, recogniser = discover_groups(material.known, material.novel.arrays, settings, desk)
    seconds = {"reading": read - start, "grouping": monotonic() - read}
    save_model(arguments.out / output.MODEL, recogniser, encoder)
    facts = _facts(arguments, material, discovery, encoder, device, seconds)
    output.write_clusters(arguments.out / output.CLUSTERS, material.novel.paths, discovery)
    if arguments.export:
        novel = material.novel.paths
        facts["exported"] = output.export(arguments.out, arguments.novel, novel, discovery.labels)
    _write_report(arguments, material, discovery, facts)
    output.finish(arguments.out, facts)
    return Outcome(discovery, facts)


def _check_numbers(arguments: Arguments, novel: int) -> None:
    if arguments.classes != "auto" and arguments.classes > novel:
        raise InputError(
            f"--classes {arguments.classes} asks for more groups than the {novel} photos in --novel "
            f"{arguments.novel} can make: lower it, or use auto."
        )


def _facts(
    arguments: Arguments,
    material: Material,
    discovery: Discovery,
    encoder: Encoder,
    device: torch.device,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """What `discovery.json` says."""
    packages = ("torch", "numpy", "scikit-learn", "pillow")
    paths, labels = material.novel.paths, discovery.labels
    return {
        "arguments": arguments.as_facts(),
        "command": arguments.command(),
        "versions": {"medi": __version__, "python": platform.python_version(), **{p: version(p) for p in packages}},
        "device": describe_device(device),
        "seed": arguments.seed,
        "encoder": {"name": encoder.name, "identity": encoder.identity},
        "n_classes": discovery.count.k,
        "classes": asdict(discovery.count),
        "diagnostics": asdict(discovery.diagnosis),
        "representation": {"used": discovery.representation, "scores": dict(discovery.representation_scores)},
        "groups": [
            {
                "cluster": group,
                "photos": labels.count(group),
                "typical": paths[medoid],
                "nearest_known": [asdict(neighbour) for neighbour in discovery.neighbours[group]],
            }
            for group, medoid in enumerate(discovery.medoids)
        ],
        "known_classes": material.known.n_classes,
        "known_photos": len(material.known),
        "novel_photos": len(paths),
        "warnings": list(material.warnings),
        "skipped": [asdict(item) for item in material.skipped],
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
    }


def _write_report(arguments: Arguments, material: Material, discovery: Discovery, facts: Mapping[str, Any]) -> None:
    items = [Item(*pair) for pair in zip(material.novel.paths, material.novel.thumbnails, strict=True)]
    shown = {
        "Known": f"{facts['known_photos']} photos of {facts['known_classes']} classes",
        "Encoder": arguments.encoder,
        "Method": arguments.method,
        "Seed": str(arguments.seed),
        "Versions": ", ".join(f"{name} {number}" for name, number in facts["versions"].items()),
        "Device": facts["device"],
        "Time": f"{sum(facts['seconds'].values()):.0f} s",
    }
    if arguments.encoder == DEFAULT:
        shown["Licence"] = WEIGHTS
    shown |= {"Note" if not i else f"Note {i + 1}": text for i, text in enumerate(material.warnings)}
    page = render(discovery, items, material.skipped, arguments.command(), shown)
    write_atomically(arguments.out / output.REPORT, page.encode(errors="replace"))
