"""An encoder of one's own: what photos are compared by.

`python examples/own_encoder.py` sorts drawn letters by it.
"""

import subprocess
import sys
from pathlib import Path


class Outline:
    """Where a picture is dark, coarsely, and how steep its edges are."""

    side = 32  # the pixels that it wants

    def __call__(self, images):
        """Rows of numbers (n, d) for images (n, 3, side, side), uint8."""
        grey = images.mean(1)
        steep = abs(grey[:, 1:, 1:] - grey[:, :-1, :-1])[:, :30, :30]
        coarse = grey.reshape(len(grey), 8, 4, 8, 4).mean((2, 4))
        edges = steep.reshape(len(grey), 10, 3, 10, 3).mean((2, 4))
        return [[*one.ravel(), *two.ravel()] for one, two in zip(coarse, edges, strict=True)]


def main() -> None:
    """The file is the encoder; the model keeps its text, so `medi assign` can use it later."""
    from medi.demo import write_letters

    write_letters(Path("letters"))
    words = "discover --known letters/known --novel letters/novel --out outlines --force".split()
    subprocess.run([sys.executable, "-m", "medi", *words, "--encoder", f"{__file__}:Outline"], check=True)


if __name__ == "__main__":
    main()
