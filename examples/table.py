"""Group the rows of a table that nobody labelled, and recognise further rows.

`python examples/table.py` takes a few seconds.
"""

import numpy as np
from sklearn.datasets import load_digits

from medi import MetaDiscovery
from medi.metrics import acc


def main() -> None:
    """Digits 0 to 6 are known; 7, 8 and 9 were never named, and nobody says that they are three."""
    rows, digits = load_digits(return_X_y=True)
    rows, digits, further = rows[:600], digits[:600], rows[600:605]
    given = np.where(digits < 7, digits, -1)  # -1 marks rows without a label
    model = MetaDiscovery(random_state=0).fit(rows, given)
    new = given == -1
    print(f"{model.n_classes_} groups, probably {model.n_classes_interval_[0]} to {model.n_classes_interval_[1]}")
    print(f"right: {acc(digits[new], model.labels_[new]):.2f}, expected: {model.confidence_[new].mean():.2f}")
    for row in model.recognise(further):
        print(f"a further row: {row.kind} {row.label}, {row.confidence:.2f}")


if __name__ == "__main__":
    main()
