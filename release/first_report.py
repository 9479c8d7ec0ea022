"""What a newcomer has and does, with the installed package alone: folders of pictures, and the estimator.

python release/first_report.py pictures FOLDER     known/ and novel/ with drawings of letters
python release/first_report.py estimator           scikit-learn's digits, five of them known
"""

from __future__ import annotations

import sys
from pathlib import Path

KNOWN_CLASSES, NOVEL_CLASSES, KNOWN_EACH, NOVEL_EACH = 12, 6, 12, 5


def pictures(folder: Path) -> None:
    """Twelve letters with twelve drawings each, and thirty drawings of six others."""
    from PIL import Image

    from medi.data.benchmarks import load

    glyphs = load("glyphs")
    for name, images, classes, each in (
        ("known", glyphs.known, KNOWN_CLASSES, KNOWN_EACH),
        ("novel", glyphs.novel, NOVEL_CLASSES, NOVEL_EACH),
    ):
        for label in range(classes):
            place = folder / name / (f"letter {label}" if name == "known" else "")
            place.mkdir(parents=True, exist_ok=True)
            for number in (images.labels == label).nonzero().flatten()[:each].tolist():
                drawing = Image.fromarray(255 - images.images[number, 0].numpy()).resize((128, 128))
                drawing.save(place / f"{number}.png")


def estimator() -> None:
    """Group digits that have no label, and score that against the truth, which is used for nothing else."""
    from sklearn.datasets import load_digits

    from medi import MetaDiscovery
    from medi.metrics import acc

    X, truth = load_digits(return_X_y=True)
    X, truth = X[:600] / 16, truth[:600]
    y = truth.copy()
    novel = truth >= 5
    y[novel] = -1
    model = MetaDiscovery(n_classes=5, random_state=0).fit(X, y)
    score = acc(truth[novel], model.labels_[novel])
    print(f"estimator: {model.n_classes_} novel digits, ACC {100 * score:.1f} (chance about 20)")
    assert model.n_classes_ == 5
    assert score > 0.6, "the estimator does not find the digits"


if __name__ == "__main__":
    if sys.argv[1] == "pictures":
        pictures(Path(sys.argv[2]))
    else:
        estimator()
