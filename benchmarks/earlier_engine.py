"""Run the `medi` that is on PYTHONPATH, an earlier one, on draws that `discover.py` wrote: one JSON object a draw."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

from medi.data.imageset import ImageSet
from medi.discovery.discover import DiscoveryConfig, discover_groups
from medi.runtime.context import Context

torch.set_num_threads(1)
for number in range(int(sys.argv[2])):
    with np.load(Path(sys.argv[1]) / f"{number}.npz") as file:
        labels = torch.from_numpy(file["labels"])
        names = tuple(str(c) for c in range(int(labels.max()) + 1))
        known, pool = ImageSet(torch.from_numpy(file["known"]), labels, names), torch.from_numpy(file["pool"])
    found, _ = discover_groups(known, pool, DiscoveryConfig(method="kmeans"), Context(seed=number))
    answer = {"k": found.count.k, "low": found.count.low, "high": found.count.high}
    print(json.dumps(answer | {"labels": list(found.labels), "confidence": list(found.confidence)}))
