"""Data frames of pandas and polars in and out of `MetaDiscovery`."""

from datetime import date

import numpy as np
import pytest
from sklearn.base import clone

from medi import MetaDiscovery

COLUMNS = ["length", "width", "height"]
CLASSES = np.repeat([0, 1, 2, -1], 8)
NAMES = np.repeat(["ant", "bee", "cat", "-1"], 8)


@pytest.fixture(scope="module")
def rows():
    """Three known heaps of points, and a novel one; whole numbers, so that every type can hold them."""
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(50 * heap, 4, (8, 3)) for heap in range(4)]).round()


@pytest.fixture(scope="module")
def fitted(rows):
    return MetaDiscovery(1, method="kmeans", random_state=0).fit(rows, CLASSES)


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    return pytest.importorskip(request.param)


def frame_of(library, rows):
    return library.DataFrame({name: rows[:, i] for i, name in enumerate(COLUMNS)})


def test_a_frame_and_a_series_are_as_good_as_arrays(library, rows, fitted):
    frame = frame_of(library, rows)
    model = clone(fitted).fit(frame, library.DataFrame({"class": CLASSES})["class"])
    assert model.feature_names_in_.tolist() == COLUMNS
    assert (model.labels_ == fitted.labels_).all()
    assert (model.confidence_ == fitted.confidence_).all()
    assert (model.predict_proba(frame) == fitted.predict_proba(rows)).all()
    assert model.recognise(frame) == fitted.recognise(rows)
    for ask in (model.predict, model.predict_proba, model.recognise, model.transform):
        with pytest.raises(ValueError, match="same order"):
            ask(frame[COLUMNS[::-1]])


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_transform_gives_a_frame_of_the_library_that_is_wanted(library, rows, fitted, container):
    wanted = pytest.importorskip(container)
    model = clone(fitted).set_output(transform=container).fit(frame_of(library, rows), CLASSES)
    points = model.transform(frame_of(library, rows))
    assert isinstance(points, wanted.DataFrame)
    names = [f"metadiscovery{i}" for i in range(points.shape[1])]
    assert list(points.columns) == names == model.get_feature_names_out().tolist()
    assert (points.to_numpy() == fitted.transform(rows)).all()
    if container == "pandas" == library.__name__:
        named = frame_of(library, rows).set_axis([f"row {i}" for i in range(len(rows))])
        assert model.transform(named).index.equals(named.index)


@pytest.mark.parametrize("kind", ["int8", "float32", "Int64", "Float64", "UInt8", "int64[pyarrow]", "double[pyarrow]"])
def test_nullable_and_arrow_columns_of_pandas_hold_numbers(rows, fitted, kind):
    pandas = pytest.importorskip("pandas")
    shifted = rows - rows.min() if kind != "int8" else rows - 100  # what every type can hold
    expected = clone(fitted).fit(shifted, CLASSES)
    frame = pandas.DataFrame(shifted, columns=COLUMNS).astype(kind)
    model = clone(fitted).fit(frame, CLASSES)
    assert (model.labels_ == expected.labels_).all()
    assert (model.transform(frame) == expected.transform(shifted)).all()


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        *((CLASSES, kind) for kind in ("Int64", "int64[pyarrow]", "category", "object")),
        *((NAMES, kind) for kind in ("str", "string", "string[pyarrow]", "category", "object")),
        *((NAMES, f"polars.{kind}") for kind in ("String", "Categorical")),
    ],
)
def test_classes_are_whole_numbers_or_strings_in_every_series(rows, fitted, given, kind):
    if kind.startswith("polars."):
        polars = pytest.importorskip("polars")
        series = polars.Series(given.tolist(), dtype=getattr(polars, kind.removeprefix("polars.")))
    else:
        series = pytest.importorskip("pandas").Series(given).astype(kind)
    model = clone(fitted).fit(rows, series)
    assert model.classes_.tolist() == given[[0, 8, 16]].tolist()
    assert (model.labels_ == fitted.labels_).all()


@pytest.mark.parametrize("value", [0, 0.5, True, "ant"])
@pytest.mark.parametrize("nullable", [False, True])
def test_a_missing_label_is_an_error_that_names_the_cure(library, value, nullable):
    y = library.Series([value, None])
    if nullable and library.__name__ == "pandas":
        y = y.convert_dtypes()
    with pytest.raises(ValueError, match='row 1: mark novel rows by -1, among strings by "-1"'):
        MetaDiscovery(method="kmeans").fit(frame_of(library, np.arange(6.0).reshape(2, 3)), y)


@pytest.mark.parametrize("values", [["a", "b"], ["1", "2"], [[1.0], [2.0]], [date(2020, 1, 1), date(2020, 1, 2)]])
def test_columns_without_numbers_are_refused_in_one_line(library, rows, fitted, values):
    frame = frame_of(library, rows[:2])
    others = [library.DataFrame({**{name: frame[name] for name in COLUMNS}, "kind": values})]
    if library.__name__ == "pandas":  # they look like numbers
        others += [frame.assign(kind=[1, 2]).astype({"kind": kind}) for kind in ("category", "object")]
    for other in others:
        for ask in (clone(fitted).fit, fitted.predict):
            with pytest.raises(ValueError, match=r"hold no numbers: 'kind' \([^\n]*\); encode them[^\n]*$"):
                ask(other)
    if library.__name__ == "polars":
        with pytest.raises(ValueError, match=r"X\.collect\(\)"):
            clone(fitted).fit(frame.lazy(), CLASSES)


def test_truth_values_are_numbers_and_missing_numbers_are_not(library, rows, fitted):
    true = frame_of(library, rows)
    flags = {"low": rows[:, 0] < 20, "middle": rows[:, 0] < 70, "high": rows[:, 0] < 120}
    assert clone(fitted).fit(library.DataFrame(flags), CLASSES).n_classes_ == 1
    gaps = library.DataFrame({**{name: true[name] for name in COLUMNS}, "weight": [None, *rows[1:, 0]]})
    with pytest.raises(ValueError, match="X contains NaN"):
        clone(fitted).fit(gaps, CLASSES)
