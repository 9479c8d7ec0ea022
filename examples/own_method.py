"""A method of one's own against the paper's MP, on letters that neither learns from.

`python examples/own_method.py` takes a minute. `WORDS` makes it short: a first look, no result.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from medi.data.imageset import ImageSet
from medi.methods import EmbeddingMethod, Plan

WORDS = "--dataset glyphs --config cpu --balance off --seeds 1 --episodes 20 --out own_method".split()


@dataclass(frozen=True)
class Discriminant(EmbeddingMethod):
    """Linear discriminant analysis of pixels; a setting of it is a field."""

    shrinkage: float = 0.5  # 0 to 1: how round the scatter inside classes is taken to be

    def learn(self, known: ImageSet, plan: Plan) -> Callable[[Tensor], Tensor]:
        """A function from images (n, c, h, w) to features (n, d), learnt from images with labels."""
        model = LinearDiscriminantAnalysis(solver="eigen", shrinkage=self.shrinkage)
        model.fit(known.images.flatten(1).cpu().numpy(), known.labels.cpu().numpy())
        matrix = torch.from_numpy(model.scalings_[:, : known.n_classes - 1]).float().to(known.images.device)
        return lambda images: images.flatten(1).float() @ matrix


if __name__ == "__main__":
    methods = ["--method", f"{__file__}:Discriminant,mp"]
    subprocess.run([sys.executable, "-m", "medi", "bench", "run", *methods, *WORDS], check=True)
