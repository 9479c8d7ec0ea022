"""A folder of labelled photos as a benchmark: would MEDI find these classes, had nobody named them?

`python examples/photo_benchmark.py FOLDER` wants a subfolder a class; without FOLDER it draws letters.
"""

import subprocess
import sys
from pathlib import Path

from medi.demo import write_letters


def main() -> None:
    """The first half of the classes, by name, is known; pools are drawn from the other half."""
    if len(sys.argv) < 2:
        write_letters(Path("letters"))
    folder = sys.argv[1] if len(sys.argv) > 1 else "letters/known"
    words = "bench run --method plain --grouping posterior --classes given,auto --pool pure,mixed --way 4 --seeds 1"
    much = ["--dataset", f"folder:{folder}", "--episodes", "10", "--out", "benchmark", "--resume"]
    subprocess.run([sys.executable, "-m", "medi", *words.split(), *much], check=True)


if __name__ == "__main__":
    main()
