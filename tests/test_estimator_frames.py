"""Data frames of pandas and polars in and out of `MetaDiscovery`."""

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


def test_columns_in_another_order_are_refused(library, rows, fitted):
    frame = frame_of(library, rows)
    model = clone(fitted).fit(frame, CLASSES)
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
    both = clone(model).fit_transform(frame_of(library, rows), CLASSES)
    assert (both.to_numpy() == points.to_numpy()).all()


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
    ],
)
def test_classes_are_whole_numbers_or_strings_in_every_series_of_pandas(rows, fitted, given, kind):
    pandas = pytest.importorskip("pandas")
    model = clone(fitted).fit(rows, pandas.Series(given).astype(kind))
    assert model.classes_.tolist() == given[[0, 8, 16]].tolist()
    assert (model.labels_ == fitted.labels_).all()


@pytest.mark.parametrize("kind", ["String", "Categorical"])
def test_names_of_classes_may_be_any_strings_of_polars(rows, fitted, kind):
    polars = pytest.importorskip("polars")
    model = clone(fitted).fit(rows, polars.Series(NAMES.tolist(), dtype=getattr(polars, kind)))
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert (model.labels_ == fitted.labels_).all()


@pytest.mark.parametrize("values", [[0, None], [0.5, None], [True, None], ["ant", None], ["ant", float("nan")]])
def test_a_missing_label_is_an_error_that_names_the_cure(library, values):
    if library.__name__ == "polars" and isinstance(values[1], float):
        pytest.skip("polars has no NaN among strings")
    frame = frame_of(library, np.arange(6.0).reshape(2, 3))
    with pytest.raises(ValueError, match='row 1: mark novel rows by -1, among strings by "-1"'):
        MetaDiscovery(method="kmeans").fit(frame, library.Series(values))


@pytest.mark.parametrize("kind", ["Int64", "string", "category", "boolean"])
def test_a_missing_label_in_a_nullable_series_of_pandas_is_the_same_error(kind):
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(["ant" if kind in ("string", "category") else 1, None]).astype(kind)
    with pytest.raises(ValueError, match="in 1 of 2 rows, the first is row 1"):
        MetaDiscovery(method="kmeans").fit(np.zeros((2, 3)), y)


@pytest.mark.parametrize("values", [["a", "b"], ["1", "2"], [[1.0], [2.0]]])
def test_columns_without_numbers_are_refused_in_one_line(library, rows, fitted, values):
    frame = frame_of(library, rows[:2])
    other = library.DataFrame({**{name: frame[name] for name in COLUMNS}, "kind": values})
    for ask in (clone(fitted).fit, fitted.predict):
        with pytest.raises(ValueError, match=r"hold no numbers: 'kind' \([^\n]*\); encode them[^\n]*$"):
            ask(other)


def test_categories_objects_and_dates_are_refused_even_where_they_look_like_numbers(rows):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"a": pandas.Categorical([1, 2]), "b": pandas.Series([1, 2], dtype=object)})
    frame["c"] = pandas.Timestamp("2020-01-01")
    frame["d"] = "text"
    with pytest.raises(ValueError, match=r"'a' \(category\), 'b' \(object\), 'c' \(datetime64\[.*\]\) and 1 more;"):
        MetaDiscovery().fit(frame)
    dates = polars.DataFrame({"day": ["2020-01-01", "2020-01-02"]}).with_columns(polars.col("day").str.to_date())
    with pytest.raises(ValueError, match=r"'day' \(Date\)"):
        MetaDiscovery().fit(dates)


def test_truth_values_are_numbers_and_missing_numbers_are_not(library, rows, fitted):
    true = frame_of(library, rows)
    flags = {"low": rows[:, 0] < 20, "middle": rows[:, 0] < 70, "high": rows[:, 0] < 120}
    assert clone(fitted).fit(library.DataFrame(flags), CLASSES).n_classes_ == 1
    gaps = library.DataFrame({**{name: true[name] for name in COLUMNS}, "weight": [None, *rows[1:, 0]]})
    with pytest.raises(ValueError, match="X contains NaN"):
        clone(fitted).fit(gaps, CLASSES)


def test_a_frame_that_was_not_collected_says_so(rows, fitted):
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"X\.collect\(\)"):
        clone(fitted).fit(frame_of(polars, rows).lazy(), CLASSES)
