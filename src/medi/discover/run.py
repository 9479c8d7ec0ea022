"""`medi discover`: from two folders of photos to an output folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from medi.core.errors import InputError
from medi.core.files import make_folder, only_process, write_atomically
from medi.core.machine import machine
from medi.core.progress import Reporter
from medi.core.workplace import Workplace
from medi.data.facts import PHOTO
from medi.discover import output
from medi.discover.accepted import accepted_photos
from medi.discover.arguments import Arguments, Manner
from medi.discover.config import DiscoveryConfig, check_grouping, check_method
from medi.discover.facts import compared_by, discovery_facts
from medi.discover.inputs import Folders, Inputs, find_folders, read_inputs
from medi.discover.large_pools import MOST_GROUPED
from medi.discover.model_folder import choose_encoder, save_model
from medi.discover.parallel_encoding import check_ways, encode_together, warn_of_lost
from medi.discover.pipeline import Outcome, discover_groups
from medi.discover.result import Discovery
from medi.discover.transfer import settle
from medi.jobs import ranks
from medi.photos.encode_folder import read_thumbnails
from medi.photos.encoders import DEFAULT_ENCODER, Encoder
from medi.photos.features_file import read_features
from medi.photos.folders import Skipped

Thumbnails = Callable[[Sequence[int]], Sequence[bytes]]
"""From numbers of novel photos to a JPEG of each."""
Render = Callable[[Discovery, Sequence[str], Thumbnails, Sequence[Skipped], str, Mapping[str, str]], str]
"""Makes a page of a discovery, the novel photos' paths, their thumbnails, skipped files, the command and facts."""


class Carry(NamedTuple):
    """What keeps that which was said in a review of an earlier discovery in the same folder.

    Attributes:
        aside: From an output folder to the paths of photos that were set aside.
        journal: From an output folder and a new `clusters.csv` to the new journal; None for none.
    """

    aside: Callable[[Path], frozenset[str]]
    journal: Callable[[Path, Path], bytes | None]


@dataclass(frozen=True)
class _Sorted:
    """What came out of sorting the photos; `read_at` is when they had been read."""

    inputs: Inputs
    outcome: Outcome
    read_at: float


def run_discover(
    arguments: Arguments, render: Render, reporter: Reporter, manner: Manner, *, carry: Carry | None = None
) -> dict[str, Any] | None:
    """Read, group, write, and give what `discovery.json` holds; faults of the input are found before all that.

    Under torchrun all ranks encode photos and train a network on them; the first one does everything else, and the
    others get None.
    """
    start = monotonic()
    check_ways(manner.ray)
    check_method(arguments.method)
    check_grouping(arguments.grouping)
    folders = find_folders(arguments.known, arguments.novel)
    _check_numbers(arguments, len(folders.novel.paths))
    out = arguments.out
    for flag, folder in (("--known", arguments.known), ("--novel", arguments.novel)):
        if out.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--out {out} lies inside {flag} {folder}: choose a folder outside it.")
    features = read_features(arguments.features, manner.ray) if arguments.features else None
    if features is not None:
        features.check(folders.known, folders.novel)
    with ExitStack() as ours:
        with ranks.joined(arguments.device):
            first, device = ranks.is_first(), machine(ranks.count())
            encoder = features or choose_encoder(arguments.encoder or DEFAULT_ENCODER, arguments.device)
            if manner.verbose:
                reporter.say(f"Features: {encoder.describe()}.")
            work = Workplace(arguments.device, arguments.seed, out / output.UNFINISHED / output.TRAINING, reporter)
            if first:
                ours.enter_context(only_process(make_folder(out), "medi discover"))
                if settle(out):
                    folders = find_folders(arguments.known, arguments.novel)
                output.claim(out, arguments.as_facts(encoder), force=manner.force)
            together = encode_together(
                [folders.known, folders.novel], encoder, arguments.device, manner.ray, reporter, shown=folders.novel
            )
            said = carry.aside(out) if carry is not None and (out / output.REVIEW).is_file() else frozenset[str]()
            if encoder.network:
                found = _sort(arguments, folders, encoder, work, said, together=together)
        if not first:
            return None
        if not encoder.network:  # on features, more processes or threads would only wait for each other
            with threadpool_limits(1):  # many small operations wait for no other thread
                found = _sort(arguments, folders, encoder, work, said, together=together)
        seconds = {"reading": found.read_at - start, "grouping": monotonic() - found.read_at}
        facts = discovery_facts(arguments, found.inputs, found.outcome.discovery, encoder, seconds, device)
        return _write(arguments, found, encoder, facts, render, carry)


def _write(
    arguments: Arguments, found: _Sorted, encoder: Encoder, facts: dict[str, Any], render: Render, carry: Carry | None
) -> dict[str, Any]:
    """Write all files of a discovery."""
    out, inputs, discovery = arguments.out, found.inputs, found.outcome.discovery
    results = output.results_folder(out)
    save_model(results / output.MODEL, found.outcome.recogniser, encoder)
    found.outcome.pool.save(results / output.MODEL)
    output.write_clusters(results / output.CLUSTERS, inputs.novel.paths, discovery)
    if carry is not None and (out / output.REVIEW).is_file():
        if (out / output.REVIEW).stat().st_size:
            output.keep_round(out)
        write_atomically(results / output.REVIEW, carry.journal(out, results / output.CLUSTERS) or b"")
    if arguments.export:
        facts["exported"] = output.export(out, arguments.novel, inputs.novel.paths, discovery.labels)
    page = _report(arguments, inputs, discovery, facts, render, compared_by(encoder))
    write_atomically(results / output.REPORT, page.encode(errors="replace"))
    output.finish(out, facts)
    return facts


def _sort(
    arguments: Arguments, folders: Folders, encoder: Encoder, work: Workplace, aside: frozenset[str], *, together: bool
) -> _Sorted:
    """Read the photos and group the novel ones, but for those that were set aside."""
    inputs = read_inputs(folders, encoder, work.reporter, accepted_photos(arguments.out))
    if together:
        warn_of_lost(inputs.computed, work.reporter)
    novel = len(inputs.novel.paths)
    _check_numbers(arguments, novel)
    if novel > MOST_GROUPED:
        too_many = (
            f"the groups were found among {MOST_GROUPED:,} of the {novel:,} novel photos, drawn at random; each of the "
            "others joined what it fits best. A class with few photos among so many may have been missed."
        )
        inputs = replace(inputs, warnings=(*inputs.warnings, too_many))
    for warning in inputs.warnings:
        work.reporter.say(f"Note: {warning}")
    if aside.issuperset(inputs.novel.paths):
        raise InputError(f"every photo in --novel {arguments.novel} was set aside: there is nothing left to sort.")
    read_at = monotonic()
    config = DiscoveryConfig(
        classes=arguments.classes,
        method=arguments.method,
        network=encoder.network or DiscoveryConfig.network,
        augmentation=PHOTO,
        only_novel=arguments.only_novel,
        noun="picture",
        aside=frozenset(item for item, path in enumerate(inputs.novel.paths) if path in aside),
        grouping=arguments.grouping,
    )
    return _Sorted(inputs, discover_groups(inputs.known, inputs.novel.arrays, config, work), read_at)


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


def _report(
    arguments: Arguments,
    inputs: Inputs,
    discovery: Discovery,
    facts: Mapping[str, Any],
    render: Render,
    features: Mapping[str, str],
) -> str:
    """The page of a discovery."""
    paths, digests = inputs.novel.paths, inputs.novel.digests

    def thumbnails(numbers: Sequence[int]) -> list[bytes]:
        some, contents = [paths[i] for i in numbers], [digests[i] for i in numbers]
        return read_thumbnails(arguments.novel, some, contents, inputs.thumbnails)

    about = {
        "Known": f"{facts['known_photos']} photos of {facts['known_classes']} classes",
        **features,
        "Method": arguments.method,
        "Seed": str(arguments.seed),
        "Versions": ", ".join(f"{name} {number}" for name, number in facts["versions"].items()),
        "Device": facts["device"],
        "Time": f"{sum(facts['seconds'].values()):.0f} s",
    }
    about |= {"Note" if not i else f"Note {i + 1}": text for i, text in enumerate(inputs.warnings)}
    return render(discovery, paths, thumbnails, inputs.skipped, arguments.command(), about)
