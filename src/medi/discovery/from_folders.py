"""`medi discover` from folders to files, and the model by which `medi assign` recognises the groups again."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from medi import __version__
from medi.data.facts import PHOTO
from medi.discovery import output
from medi.discovery.discover import MOST_GROUPED, DiscoveryConfig, discover_groups
from medi.discovery.inputs import Folders, Material, find_folders, read_material
from medi.discovery.model_folder import choose_encoder, save_model
from medi.discovery.parallel_encoding import complain, on_ray, share
from medi.discovery.recogniser import Recogniser
from medi.discovery.result import Discovery
from medi.errors import InputError
from medi.licence import WEIGHTS
from medi.methods import method_of
from medi.photos.encode_folder import read_thumbnails
from medi.photos.encoders import DEFAULT, Encoder
from medi.report.page import Item, render, shown_items, thumbnail
from medi.runtime import ranks
from medi.runtime.context import Context
from medi.runtime.devices import choose_device, cpu_threads, describe_device
from medi.runtime.files import write_atomically
from medi.runtime.progress import Reporter


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


@dataclass(frozen=True)
class _Found:
    """What became of the photos; `read` is when they had been read."""

    material: Material
    discovery: Discovery
    recogniser: Recogniser
    read: float


def run_discover(
    arguments: Arguments, reporter: Reporter, *, force: bool = False, ray: str | None = None
) -> Outcome | None:
    """Read, group, write; what is at fault is said before anything long begins.

    Under torchrun the ranks share the encoding of photos and the training of a network on them; the first one does
    everything else, and None is returned to the others.
    """
    start = monotonic()
    method_of(arguments.method)
    device = choose_device(arguments.device)
    folders = find_folders(arguments.known, arguments.novel)
    _check_numbers(arguments, len(folders.novel.paths))
    for flag, folder in (("--known", arguments.known), ("--novel", arguments.novel)):
        if arguments.out.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--out {arguments.out} lies inside {flag} {folder}: choose a folder outside it.")
    spread = None if ray is None else on_ray(ray, arguments.device)
    with ranks.joined(device):
        first, machine = ranks.is_first(), describe_device(device)
        encoder = choose_encoder(arguments.encoder, device)
        context = Context(device, arguments.seed, arguments.out / output.WORK, reporter)
        if first:
            output.claim(arguments.out, arguments.as_facts(), force=force)
        shared = share([folders.known, folders.novel], encoder, arguments.device, spread, reporter)
        if encoder.network:
            found = _find(arguments, folders, encoder, context, shared=shared)
    if not first:
        return None
    if not encoder.network:  # features are small: sharing would cost more than it saves
        with cpu_threads(1):  # and threads would only wait for each other
            found = _find(arguments, folders, encoder, context, shared=shared)
    material, discovery = found.material, found.discovery
    seconds = {"reading": found.read - start, "grouping": monotonic() - found.read}
    save_model(arguments.out / output.MODEL, found.recogniser, encoder)
    facts = _facts(arguments, material, discovery, encoder, machine, seconds)
    output.write_clusters(arguments.out / output.CLUSTERS, material.novel.paths, discovery)
    if arguments.export:
        novel = material.novel.paths
        facts["exported"] = output.export(arguments.out, arguments.novel, novel, discovery.labels)
    _write_report(arguments, material, discovery, facts)
    output.finish(arguments.out, facts)
    return Outcome(discovery, facts)


def _find(arguments: Arguments, folders: Folders, encoder: Encoder, context: Context, *, shared: bool) -> _Found:
    """Read the photos and group the novel ones."""
    material = read_material(folders, encoder, context.reporter)
    if shared:
        complain(material.encoded, context.reporter)
    novel = len(material.novel.paths)
    _check_numbers(arguments, novel)
    if novel > MOST_GROUPED:
        material = replace(material, warnings=(*material.warnings, _too_many(novel)))
    for warning in material.warnings:
        context.reporter.say(f"Note: {warning}")
    read = monotonic()
    settings = DiscoveryConfig(
        classes=arguments.classes,
        method=arguments.method,
        network=encoder.network or DiscoveryConfig.network,
        augmentation=PHOTO,
    )
    discovery, recogniser = discover_groups(material.known, material.novel.arrays, settings, context)
    return _Found(material, discovery, recogniser, read)


def _too_many(novel: int) -> str:
    return (
        f"the groups were found among {MOST_GROUPED:,} of the {novel:,} novel photos, drawn at random; each of the "
        "others joined the nearest group. A class with few photos among so many may have been missed."
    )


def _check_numbers(arguments: Arguments, novel: int) -> None:
    if arguments.classes == "auto":
        return
    if arguments.classes > novel:
        raise InputError(
            f"--classes {arguments.classes} asks for more groups than the {novel} photos in --novel "
            f"{arguments.novel} can make: lower it, or use auto."
        )
    if arguments.classes > MOST_GROUPED:
        raise InputError(f"--classes {arguments.classes} asks for more than {MOST_GROUPED} groups: lower it.")


def _facts(
    arguments: Arguments,
    material: Material,
    discovery: Discovery,
    encoder: Encoder,
    machine: str,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """What `discovery.json` says."""
    packages = ("torch", "numpy", "scikit-learn", "pillow")
    paths, labels = material.novel.paths, discovery.labels
    return {
        "arguments": arguments.as_facts(),
        "command": arguments.command(),
        "versions": {"medi": __version__, "python": platform.python_version(), **{p: version(p) for p in packages}},
        "device": machine,
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
    paths = material.novel.paths
    shown = sorted(number for group in shown_items(discovery) for number in group)
    pictures = dict(zip(shown, read_thumbnails(arguments.novel, [paths[i] for i in shown], thumbnail), strict=True))
    items = [Item(path, pictures.get(number, b"")) for number, path in enumerate(paths)]
    about = {
        "Known": f"{facts['known_photos']} photos of {facts['known_classes']} classes",
        "Encoder": arguments.encoder,
        "Method": arguments.method,
        "Seed": str(arguments.seed),
        "Versions": ", ".join(f"{name} {number}" for name, number in facts["versions"].items()),
        "Device": facts["device"],
        "Time": f"{sum(facts['seconds'].values()):.0f} s",
    }
    if arguments.encoder == DEFAULT:
        about["Licence"] = WEIGHTS
    about |= {"Note" if not i else f"Note {i + 1}": text for i, text in enumerate(material.warnings)}
    page = render(discovery, items, material.skipped, arguments.command(), about)
    write_atomically(arguments.out / output.REPORT, page.encode(errors="replace"))
