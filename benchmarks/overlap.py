"""How long the overlap of classes takes: 10,000 points of 512 dimensions in 20 classes, target under 30 s on 2 cores.

    python benchmarks/overlap.py [--points 10000] [--width 512] [--classes 20] [--repeats 3] [--out FILE.json]

Gaussian classes whose supports overlap in part; the default settings of `medi.theory.overlap`. Prints wall-clock and
processor seconds of each repeat; on a busy machine, read the processor seconds.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter, process_time

import torch
from script import Parser, positive, run, write_json

from medi.runtime.devices import describe_device
from medi.theory import overlap


def main(parser: Parser) -> None:
    """Measure and print."""
    parser.add_argument("--points", type=positive, default=10_000)
    parser.add_argument("--width", type=positive, default=512)
    parser.add_argument("--classes", type=positive, default=20)
    parser.add_argument("--repeats", type=positive, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(options.points) % options.classes
    z = torch.randn(options.points, options.width, generator=generator)
    z += 0.3 * torch.randn(options.classes, options.width, generator=generator)[y]
    figures: dict[str, object] = {
        "device": describe_device(torch.device("cpu")),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "points": options.points,
        "width": options.width,
        "classes": options.classes,
        "wall seconds": [],
        "processor seconds": [],
    }
    for repeat in range(options.repeats):
        wall, processor = perf_counter(), process_time()
        found = overlap(z, y, seed=repeat)
        wall, processor = perf_counter() - wall, process_time() - processor
        figures["wall seconds"].append(round(wall, 2))
        figures["processor seconds"].append(round(processor, 2))
        print(f"{wall:.1f} s ({processor:.1f} s of processor time), tau {found.tau:.3f}")
    print(f"{figures['device']}, torch {torch.__version__}")
    write_json(options.out, figures)


if __name__ == "__main__":
    run(main, __doc__)
