"""Sort a folder of photos, and read the answer. Drawn letters play the photos.

`python examples/sort_folder.py` writes `letters/` and `sorted/` into the current folder.
"""

import json
import subprocess
import sys
from pathlib import Path

from medi.demo import write_letters


def main() -> None:
    """Draw letters, sort the pool, and say what lies together."""
    write_letters(Path("letters"))  # letters/known/<letter>/ has known ones, letters/novel/ is the pool
    words = "discover --known letters/known --novel letters/novel --out sorted --force --json".split()
    done = subprocess.run([sys.executable, "-m", "medi", *words], check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    print(f"{found['n_classes']} groups. Can you trust this? {found['diagnostics']['verdict']}")
    for group in found["groups"]:
        print(f"group {group['cluster']}: {group['photos']} photos, {group['typical']} is typical")
    print("Look at sorted/report.html. Next: medi review sorted")


if __name__ == "__main__":
    main()
