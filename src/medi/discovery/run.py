"""`medi discover`: from two folders of photos to an output folder."""

from __future__ import annotations

import platform
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from medi import __version__
from medi.data.facts import PHOTO
from medi.discovery import output
from medi.discovery.accepted import accepted_photos
from medi.discovery.discover import MOST_GROUPED, DiscoveryConfig, discover_groups
from medi.discovery.inputs import Folders, Inputs, find_folders, read_inputs
from medi.discovery.model_folder import choose_encoder, save_model
from medi.discovery.parallel_encoding import encode_together, on_ray, warn_of_lost
from medi.discovery.pool import SavedPool
from medi.discovery.recogniser import Recogniser
from medi.discovery.result import Discovery
from medi.errors import InputError
from medi.methods import method_of
from medi.photos.encode_folder import read_thumbnails
from medi.photos.encoders import DEFAULT, Encoder
from medi.photos.features_file import Features, read_features
from medi.photos.folders import Skipped
from medi.runtime import ranks
from medi.runtime.context import Context
from medi.runtime.devices import choose_device, cpu_threads, describe_device
from medi.runtime.files import write_atomically
from medi.runtime.progress import Reporter
from medi.runtime.terminal import plain

Thumbnails = Callable[[Sequence[int]], Sequence[bytes]]
"""From numbers of novel photos to a JPEG of each."""
Render = Callable[[Discovery, Sequence[str], Thumbnails, Sequence[Skipped], str, Mapping[str, str]], str]
"""Makes a page of a discovery, the novel photos' paths, their thumbnails, skipped files, the command and facts."""
Carry = Callable[[Path, Path], bytes | None]
"""From an output folder and a new `clusters.csv` to the journal that keeps what was said in a review; None for none."""


@dataclass(frozen=True)
class Arguments:
    """What `medi discover` was asked for; an encoder, or files with features that were made elsewhere."""

    known: Path
    novel: Path
    out: Path
    classes: int | Literal["auto"] = "auto"
    method: str = "mp"
    encoder: str | None = DEFAULT
    seed: int = 0
    device: str = "auto"
    export: bool = False
    features: tuple[Path, ...] = ()
    only_novel: bool = False

    def as_facts(self, encoder: Encoder) -> dict[str, Any]:
        """As JSON-able values, by which an unfinished run is recognised; folders and files in full."""
        digests = [source.sha256 for source in encoder.sources] if isinstance(encoder, Features) else []
        files = zip(self.features, digests, strict=True)
        return (
            asdict(self)
            | {name: str(getattr(self, name).resolve()) for name in ("known", "novel", "out")}
            | {"features": [{"file": str(file.resolve()), "sha256": digest} for file, digest in files]}
        )

    def command(self) -> str:
        """The command that does the same again, also when defaults have changed."""
        words = ["medi", "discover"]
        for name, value in asdict(self).items():
            if name == "features":
                words += [word for file in self.features for word in ("--features", str(file))]
            elif isinstance(value, bool):
                words += [f"--{name.replace('_', '-')}"] if value else []
            elif value is not None:
                words += [f"--{name}", str(value)]
        return shlex.join(words)


@dataclass(frozen=True)
class _Found:
    """What was found among the photos; `read_at` is when they had been read."""

    inputs: Inputs
    discovery: Discovery
    recogniser: Recogniser
    read_at: float


def run_discover(
    arguments: Arguments,
    render: Render,
    reporter: Reporter,
    *,
    carry: Carry | None = None,
    force: bool = False,
    ray: str | None = None,
    verbose: bool = False,
) -> dict[str, Any] | None:
    """Read, group, write; faults of the input are found before anything long begins.

    Under torchrun all ranks encode photos and train a network on them; the first one does everything else.

    Args:
        arguments: What was asked for.
        render: Makes the report.
        reporter: Shows progress.
        carry: Keeps what was said in a review of an earlier discovery in the same folder.
        force: Replace an earlier discovery.
        ray: Address of a Ray cluster that encodes photos.
        verbose: Say what runs the encoder, where it comes from, and its licence.

    Returns:
        What `discovery.json` holds; None on all ranks but the first.
    """
    start = monotonic()
    method_of(arguments.method)
    device = choose_device(arguments.device)
    folders = find_folders(arguments.known, arguments.novel)
    _check_numbers(arguments, len(folders.novel.paths))
    out = arguments.out
    for flag, folder in (("--known", arguments.known), ("--novel", arguments.novel)):
        if out.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--out {out} lies inside {flag} {folder}: choose a folder outside it.")
    features = read_features(arguments.features, ray) if arguments.features else None
    if features is not None:
        features.check(folders.known, folders.novel)
    workers = None if ray is None else on_ray(ray, arguments.device)
    with ranks.joined(device):
        first, machine = ranks.is_first(), describe_device(device)
        encoder = features or choose_encoder(arguments.encoder or DEFAULT, device)
        if verbose:
            reporter.say(f"Features: {encoder.describe()}.")
        context = Context(device, arguments.seed, out / output.UNFINISHED / output.TRAINING, reporter)
        if first:
            output.claim(out, arguments.as_facts(encoder), force=force)
        together = encode_together(
            [folders.known, folders.novel], encoder, arguments.device, workers, reporter, shown=folders.novel
        )
        if encoder.network:
            found = _find(arguments, folders, encoder, context, together=together)
    if not first:
        return None
    if not encoder.network:  # on features, more processes or threads would only wait for each other
        with cpu_threads(1):
            found = _find(arguments, folders, encoder, context, together=together)
    inputs, discovery = found.inputs, found.discovery
    seconds = {"reading": found.read_at - start, "grouping": monotonic() - found.read_at}
    results = output.results_folder(out)
    save_model(results / output.MODEL, found.recogniser, encoder)
    SavedPool.save(results / output.MODEL, inputs.novel.arrays, found.recogniser, discovery)
    facts = _facts(arguments, inputs, discovery, encoder, machine, seconds)
    output.write_clusters(results / output.CLUSTERS, inputs.novel.paths, discovery)
    if carry is not None and (out / output.REVIEW).is_file():
        write_atomically(results / output.REVIEW, carry(out, results / output.CLUSTERS) or b"")
    if arguments.export:
        facts["exported"] = output.export(out, arguments.novel, inputs.novel.paths, discovery.labels)
    page = _report(arguments, inputs, discovery, facts, render, _compared_by(encoder))
    write_atomically(results / output.REPORT, page.encode(errors="replace"))
    output.finish(out, facts)
    return facts


def _find(arguments: Arguments, folders: Folders, encoder: Encoder, context: Context, *, together: bool) -> _Found:
    """Read the photos and group the novel ones."""
    inputs = read_inputs(folders, encoder, context.reporter, accepted_photos(arguments.out))
    if together:
        warn_of_lost(inputs.computed, context.reporter)
    novel = len(inputs.novel.paths)
    _check_numbers(arguments, novel)
    if novel > MOST_GROUPED:
        inputs = replace(inputs, warnings=(*inputs.warnings, _too_many(novel)))
    for warning in inputs.warnings:
        context.reporter.say(f"Note: {warning}")
    read_at = monotonic()
    config = DiscoveryConfig(
        classes=arguments.classes,
        method=arguments.method,
        network=encoder.network or DiscoveryConfig.network,
        augmentation=PHOTO,
        only_novel=arguments.only_novel,
        noun="picture",
        already_known=len(inputs.already_known),
    )
    discovery, recogniser = discover_groups(inputs.known, inputs.novel.arrays, config, context)
    return _Found(inputs, discovery, recogniser, read_at)


def _too_many(novel: int) -> str:
    return (
        f"the groups were found among {MOST_GROUPED:,} of the {novel:,} novel photos, drawn at random; each of the "
        "others joined what it fits best. A class with few photos among so many may have been missed."
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
    inputs: Inputs,
    discovery: Discovery,
    encoder: Encoder,
    machine: str,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """What `discovery.json` says."""
    packages = ("torch", "numpy", "scikit-learn", "pillow", *filter(None, [encoder.package]))
    paths = inputs.novel.paths
    facts: dict[str, Any] = plain(
        {
            "arguments": arguments.as_facts(encoder),
            "command": arguments.command(),
            "versions": {
                "medi": __version__,
                "python": platform.python_version(),
                **{package: version(package) for package in packages},
            },
            "device": machine,
            "seed": arguments.seed,
            "encoder": {
                "name": encoder.name,
                "identity": encoder.identity,
                "engine": encoder.engine,
                "licence": encoder.licence,
                "source": encoder.source,
            },
            "features": encoder.facts() if isinstance(encoder, Features) else None,
            "n_classes": discovery.count.k,
            "classes": asdict(discovery.count),
            "diagnostics": asdict(discovery.diagnosis),
            "representation": {"used": discovery.representation, "scores": dict(discovery.representation_scores)},
            "groups": [
                {
                    "cluster": number,
                    "photos": group.items,
                    "typical": paths[group.medoid],
                    "confidence": group.confidence,
                    "together": group.together,
                    "verdict": group.verdict,
                    "sibling": group.sibling,
                    "sibling_probability": group.sibling_probability,
                    "nearest_known": list(group.neighbours),
                }
                for number, group in enumerate(discovery.groups)
            ],
            "kinds": {kind: discovery.kinds.count(kind) for kind in ("novel", "known", "alone")},
            "known_photos_found": dict(sorted(Counter(name for name in discovery.known if name).items())),
            "alone": discovery.kinds.count("alone"),
            "already_known": dict(inputs.already_known),
            "known_classes": inputs.known.n_classes,
            "known_photos": len(inputs.known),
            "novel_photos": len(paths),
            "warnings": list(inputs.warnings),
            "skipped": [asdict(item) for item in inputs.skipped],
            "seconds": {name: round(value, 2) for name, value in seconds.items()},
        }
    )
    return facts


def _compared_by(encoder: Encoder) -> dict[str, str]:
    """What the page says about an encoder."""
    if isinstance(encoder, Features):
        return {"Features": encoder.describe()}
    about = {"Encoder": encoder.name, "Source": encoder.source, "Licence": encoder.licence}
    return {name: fact for name, fact in about.items() if fact}


def _report(
    arguments: Arguments,
    inputs: Inputs,
    discovery: Discovery,
    facts: Mapping[str, Any],
    render: Render,
    compared_by: Mapping[str, str],
) -> str:
    """The page of a discovery."""
    paths, digests = inputs.novel.paths, inputs.novel.digests

    def thumbnails(numbers: Sequence[int]) -> list[bytes]:
        some, contents = [paths[i] for i in numbers], [digests[i] for i in numbers]
        return read_thumbnails(arguments.novel, some, contents, inputs.thumbnails)

    about = {
        "Known": f"{facts['known_photos']} photos of {facts['known_classes']} classes",
        **compared_by,
        "Method": arguments.method,
        "Seed": str(arguments.seed),
        "Versions": ", ".join(f"{name} {number}" for name, number in facts["versions"].items()),
        "Device": facts["device"],
        "Time": f"{sum(facts['seconds'].values()):.0f} s",
    }
    about |= {"Note" if not i else f"Note {i + 1}": text for i, text in enumerate(inputs.warnings)}
    return render(discovery, paths, thumbnails, inputs.skipped, arguments.command(), about)
