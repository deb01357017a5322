"""Radius and kernel models, really poisoned and really refitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.neighbors.poisoners import class_after, prediction_after, weights_of, worst_labellings, worst_tables

from poisonproof.errors import DataError, ParameterError, ParameterTypeError, ThreatError
from poisonproof.neighbors.kernel import CertifiedKernelClassifier, CertifiedKernelRegressor
from poisonproof.neighbors.similarity import Similarity
from poisonproof.neighbors.within_radius import CertifiedRadiusClassifier, CertifiedRadiusRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.threat import Moves

THREATS: list[Moves] = ["insert+delete", "insert", "delete", "relabel"]


def same_sign(queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.75 * (np.sign(queries[:, :1]) == np.sign(rows[:, 0])) + 0.25 * (queries[:, :1] == rows[:, 0])


def nearest_of_all(queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """No similarity of two rows: the farthest row of the table has a say in it."""
    apart = np.abs(queries[:, :1] - rows[:, 0])
    return np.asarray(1 - apart / (1 + apart.max()))


def half_of_first(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * rows[:, 0]


REGRESSORS = {
    "radius": CertifiedRadiusRegressor(1.5, metric="manhattan", empty_value=0.4),
    "radius with offset": CertifiedRadiusRegressor(0.2, ranges=(-3, 3), weights=[1.0, 0.5], offset=half_of_first),
    "box": CertifiedKernelRegressor("box", 1.5, metric="chebyshev"),
    "tricube": CertifiedKernelRegressor("tricube", 2.0, offset=half_of_first, empty_value=-0.2),
    "gaussian": CertifiedKernelRegressor("gaussian", 0.7),
    "laplacian": CertifiedKernelRegressor("laplacian", 0.7, metric="minkowski", p=3),
    "function": CertifiedKernelRegressor(same_sign),
    "largest": CertifiedKernelRegressor([(1.0, same_sign), (0.3, "tricube"), (0.6, Similarity("box", 0.4))], 2.0),
    "half": CertifiedKernelRegressor([(0.5, "box")], 1.0),
}
CLASSIFIERS = {
    "radius": CertifiedRadiusClassifier(1.2, classes=[0, 1, 2], empty_value=1),
    "radius, undeclared": CertifiedRadiusClassifier(1.2),
    "tricube": CertifiedKernelClassifier("tricube", 2.0, classes=[0, 1, 2]),
    "gaussian, undeclared": CertifiedKernelClassifier("gaussian", 0.5, empty_value=2),
    "largest": CertifiedKernelClassifier([(1.0, same_sign), (0.3, "box")], 2.0, classes=[0, 1, 2]),
}


def table(rng: np.random.Generator, n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X = rng.normal(size=(n_rows, 2)).round(1)
    return X, (X[:, 0] + rng.normal(scale=0.5, size=n_rows)).round(1)


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_the_radius_holds_and_one_more_breaks_it(name: str, moves: Moves) -> None:
    rng = np.random.default_rng([len(name), len(moves)])
    model = clone(REGRESSORS[name]).set_params(threat=moves)
    # Nothing can be inserted beside a user's function, or under a scale, that outweighs what was declared.
    broken = 0
    for n_rows in (1, 2, 5, 12, 30, 60):
        X, y = table(rng, n_rows)
        row = X[:1] if n_rows % 2 else rng.normal(size=(1, 2)).round(1)
        model.fit(X, y)
        lower, upper = model.predict(row)[0] + np.array([-0.6, 0.4])
        cert = model.certify(row, lower, upper)
        radius = int(cert.radius[0])
        assert radius >= 0
        for spent in {0, radius // 2, radius} if not cert.unbreakable[0] else {0, n_rows // 2, n_rows}:
            after = [
                prediction_after(model, made, row) for made in worst_tables(model, X, y, row, spent, (lower, upper))
            ]
            assert all(lower <= value <= upper for value in after)
        if not cert.unbreakable[0]:
            after = [
                prediction_after(model, made, row)
                for made in worst_tables(model, X, y, row, radius + 1, (lower, upper))
            ]
            assert not all(lower <= value <= upper for value in after)
            broken += 1
    assert broken >= 3


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_the_interval_contains_attacked_predictions_and_its_ends_are_reached(name: str, moves: Moves) -> None:
    rng = np.random.default_rng([len(name), len(moves), 1])
    model = clone(REGRESSORS[name]).set_params(threat=moves)
    X, y = table(rng, 40)
    model.fit(X, y)
    rows = rng.normal(size=(4, 2)).round(1)
    for budget in (0, 1, 4):
        band = model.interval(rows, budget)
        for place in range(len(rows)):
            row, ends = rows[place : place + 1], (band.lower[place], band.upper[place])
            if np.isfinite(ends).all():
                # Everything beyond an end is inside for the attack that reaches it.
                reached = [
                    prediction_after(model, made, row)
                    for bound in ((np.nextafter(ends[0], np.inf), np.nextafter(ends[1], -np.inf)), ends)
                    for made in worst_tables(model, X, y, row, budget, bound)
                ]
                assert min(reached) == ends[0]
                assert max(reached) == ends[1]


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_the_class_holds_and_one_more_breaks_it(name: str, moves: Moves) -> None:
    rng = np.random.default_rng([len(name), len(moves), 2])
    model = clone(CLASSIFIERS[name]).set_params(threat=moves)
    broken = 0
    for n_rows in (3, 8, 20, 40, 60):
        X, values = table(rng, n_rows)
        y = np.digitize(values, [-0.4, 0.4])
        row = rng.normal(size=(1, 2)).round(1)
        model.fit(X, y)
        target = int(model.predict(row)[0])
        rivals = [label for label in ([0, 1, 2] if "undeclared" not in name else [-1, 0, 1, 2]) if label != target]
        cert = model.certify(row)
        radius = int(cert.radius[0])
        spent_well = n_rows if cert.unbreakable[0] else radius
        for spent in {spent_well // 2, spent_well}:
            tables = worst_labellings(model, X, y, row, spent, rivals, target)
            assert all(class_after(model, made, row) == target for made in tables if len(made[1]))
        if not cert.unbreakable[0]:
            tables = worst_labellings(model, X, y, row, radius + 1, rivals, target)
            breaks = any(class_after(model, made, row) != target for made in tables)
            present = weights_of(model, row, X) > 0
            alone = bool((y[present] == target).all()) and (moves == "delete" or not present.any())
            # Where an undeclared class answers for an empty set, nothing is claimed, so nothing need break.
            assert breaks or (alone and model.empty_class_ < 0)
            broken += breaks
        others = np.setdiff1d(model.classes_, target)
        assert len(others) == 0 or (model.certify(np.repeat(row, len(others), axis=0), others).radius == -1).all()
    assert broken >= 2


@pytest.mark.parametrize("name", REGRESSORS)
def test_neither_the_batch_nor_the_order_nor_the_threads_count(name: str) -> None:
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    rows = rng.normal(size=(40, 2))
    model = clone(REGRESSORS[name]).fit(X, y)
    cert = model.certify(rows, within=0.3, relative=False)
    alone = [model.certify(rows[place : place + 1], within=0.3, relative=False) for place in range(len(rows))]
    assert [float(one.prediction[0]) for one in alone] == cert.prediction.tolist()
    assert [int(one.radius[0]) for one in alone] == cert.radius.tolist()
    order = rng.permutation(len(X))
    shuffled = clone(model).fit(X[order], y[order]).certify(rows, within=0.3, relative=False)
    assert np.array_equal(shuffled.prediction, cert.prediction)
    assert np.array_equal(shuffled.radius, cert.radius)


def test_threads_and_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    X, y, rows = rng.normal(size=(200, 3)), rng.normal(size=200), rng.normal(size=(50, 3))
    whole = CertifiedKernelRegressor("gaussian").fit(X, y).certify(rows, within=0.5, relative=False)
    monkeypatch.setattr("poisonproof.neighbors.weighing._CHUNK_PAIRS", 1400)
    for n_jobs in (None, 2):
        model = CertifiedKernelRegressor("gaussian", n_jobs=n_jobs).fit(X, y)
        cert = model.certify(rows, within=0.5, relative=False)
        assert np.array_equal(cert.prediction, whole.prediction)
        assert np.array_equal(cert.radius, whole.radius)
        assert np.array_equal(model.predict(rows), whole.prediction)
        assert np.array_equal(model.interval(rows, 0).upper, whole.prediction)


def test_a_box_is_a_radius() -> None:
    rng = np.random.default_rng(10)
    X, y, rows = rng.normal(size=(200, 3)), rng.normal(size=200), rng.normal(size=(50, 3))
    for moves in THREATS:
        box = CertifiedKernelRegressor("box", 1.3, threat=moves).fit(X, y)
        ball = CertifiedRadiusRegressor(1.3, threat=moves).fit(X, y)
        one, other = (model.certify(rows, -0.5, 0.7) for model in (box, ball))
        assert np.array_equal(one.prediction, other.prediction)
        assert np.array_equal(one.radius, other.radius)
        assert np.array_equal(one.unbreakable, other.unbreakable)
        assert np.array_equal(box.interval(rows, 2).lower, ball.interval(rows, 2).lower)


@pytest.mark.parametrize(
    ("kernel", "halfway"),
    [("box", 1.0), ("tricube", (1 - 0.5**3) ** 3), ("gaussian", np.exp(-0.125)), ("laplacian", np.exp(-0.5))],
)
def test_similarities_fall_as_declared(kernel: Any, halfway: float) -> None:
    rows = np.array([[0.0], [1.0], [2.0], [9.0]])
    found = Similarity(kernel, bandwidth=2.0)(rows[:1], rows)[0]
    assert found[0] == 1.0
    assert found[1] == pytest.approx(halfway, abs=1e-15)
    # Weights are whole steps, 2**30 of them for the same row.
    model = CertifiedKernelRegressor(kernel, 2.0).fit(rows, [0.0, 1.0, 2.0, 3.0])
    steps = model.weighing_.weigh(model.weighing_.encode(rows[:1]), model.encoded_)[0]
    assert steps.tolist() == np.rint(found * 2**30).astype(int).tolist()
    # The bandwidth itself still counts for a box; the sum of the others ends or fades there.
    assert (found[2] == 1.0) == (kernel == "box")
    assert found[3] < 0.02


def test_the_edge_of_the_radius_is_within() -> None:
    X = np.array([[0.0], [0.5], [np.nextafter(0.5, 1)]])
    model = CertifiedRadiusRegressor(0.5).fit(X, [1.0, 3.0, 100.0])
    assert model.predict([[0.0]]).tolist() == [2.0]


def test_two_classes_agree_with_the_median_of_their_labels() -> None:
    rng = np.random.default_rng(11)
    X, rows = rng.normal(size=(101, 2)), rng.normal(size=(60, 2))
    y = rng.integers(0, 2, 101)
    for moves in THREATS:
        classifier = CertifiedRadiusClassifier(1.0, classes=[0, 1], threat=moves).fit(X, y)
        regressor = CertifiedRadiusRegressor(1.0, threat=moves).fit(X, y)
        predicted = classifier.predict(rows)
        median_side = regressor.predict(rows)
        odd = median_side != 0.5
        assert np.array_equal(predicted[odd], median_side[odd])
        # A tie goes to class 0: halfway is still on its side, and no longer on that of class 1.
        cert = classifier.certify(rows)
        bounds = np.where(predicted == 0, 0.5, np.inf), np.where(predicted == 1, np.nextafter(0.5, 1), -np.inf)
        halves = regressor.certify(rows, bounds[1], bounds[0])
        near = np.stack([weights_of(regressor, row[None], X) for row in rows])
        both = (near @ y > 0) & (near @ (1 - y) > 0)
        assert np.array_equal(cert.radius[both], halves.radius[both])
        assert both.sum() > 30
        # Among neighbours of one class a poisoned number may lie farther out than any label.
        assert (cert.radius >= halves.radius).all()


def test_labels_may_be_words() -> None:
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])
    y = np.array(["low", "low", "low", "high", "high"])
    model = CertifiedRadiusClassifier(1.0, empty_value="nothing").fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "nothing"]
    cert = model.certify([[0.0], [5.0], [50.0]])
    assert cert.prediction.tolist() == ["low", "high", "nothing"]
    assert cert.radius.tolist() == [2, 1, 0]
    assert model.certify([[0.0], [5.0]], ["low", "low"]).radius.tolist() == [2, -1]


BAD: list[tuple[Any, type[Exception], str]] = [
    (CertifiedRadiusRegressor(0), ParameterError, "radius=0"),
    (CertifiedRadiusRegressor(-1.0), ParameterError, "radius"),
    (CertifiedRadiusRegressor(np.nan), ParameterError, "radius"),
    (CertifiedRadiusRegressor("wide"), ParameterTypeError, "radius"),  # type: ignore[arg-type]
    (CertifiedRadiusRegressor(empty_value=np.nan), ParameterError, "empty_value"),
    (CertifiedRadiusRegressor(empty_value=None), ParameterError, "empty_value"),  # type: ignore[arg-type]
    (CertifiedRadiusRegressor(threat="change"), ParameterError, "threat"),  # type: ignore[arg-type]
    (CertifiedRadiusRegressor(metric="taxi"), ParameterError, "metric"),  # type: ignore[arg-type]
    (CertifiedRadiusRegressor(ranges=[[0, 1]] * 3), ParameterError, "ranges"),
    (CertifiedRadiusRegressor(offset=3), ParameterTypeError, "offset"),  # type: ignore[arg-type]
    (CertifiedRadiusRegressor(empty_value=1j), ParameterError, "empty_value=1j must be a finite number"),  # type: ignore[arg-type]
    (CertifiedRadiusRegressor(empty_value=True), ParameterError, "empty_value=True must be a finite number"),
    (CertifiedKernelRegressor("wide"), ParameterError, "similarity"),  # type: ignore[arg-type]
    (CertifiedKernelRegressor("box", 0), ParameterError, "bandwidth"),
    (CertifiedKernelRegressor(7), ParameterTypeError, "similarity"),  # type: ignore[arg-type]
    (CertifiedKernelRegressor([]), ParameterError, "similarity"),
    (CertifiedKernelRegressor([(2.0, "box")]), ParameterError, "at most 1"),
    (CertifiedKernelRegressor([(1e-12, "box")]), ParameterError, r"rounds to 0; it must be at least 2\*\*-30"),
    (CertifiedKernelRegressor([("box", 1.0)]), ParameterTypeError, "scale"),  # type: ignore[list-item]
    (CertifiedKernelRegressor(lambda queries, rows: np.full((len(queries), len(rows)), 2.0)), DataError, "outside"),
    (CertifiedKernelRegressor(lambda queries, rows: np.full((len(queries), len(rows)), np.nan)), DataError, "outside"),
    (CertifiedKernelRegressor(lambda queries, rows: np.ones(len(rows))), DataError, "shape"),  # noqa: ARG005  that is the mistake
    (CertifiedKernelRegressor(lambda queries, rows: queries @ rows), DataError, "failed"),
    (CertifiedKernelRegressor(nearest_of_all), DataError, "depends on the rows beside them"),
    (CertifiedKernelClassifier([(1.0, "box"), (0.5, nearest_of_all)]), DataError, "depends on the rows beside them"),
    (CertifiedRadiusClassifier(empty_value="none"), ParameterError, "like those in y"),
    (CertifiedRadiusClassifier(empty_value=[1, 2]), ParameterError, "like those in y"),
    (CertifiedRadiusClassifier(classes=[5, 6]), DataError, r"contains 0 in row 0, which is not one of .*\(5, 6\)"),
    (CertifiedRadiusClassifier(classes=["0", "1", "2"]), DataError, "contains 0 in row 0"),
    (CertifiedRadiusClassifier(classes=[0, 1, 2], empty_value=[1, 2]), ParameterError, "empty_value"),
    (CertifiedRadiusClassifier(classes=[0, 1, 2], empty_value=9), ParameterError, "empty_value"),
]


@pytest.mark.parametrize(("model", "error", "says"), BAD)
def test_bad_parameters_are_refused_with_a_way_out(model: Any, error: type[Exception], says: str) -> None:
    X = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [2.0, 0.5]])
    with pytest.raises(error, match=says):
        model.fit(X, [0, 1, 2, 0]).predict(X[:1])


def test_no_similarity_at_all_is_refused_when_it_is_declared() -> None:
    with pytest.raises(ParameterError, match="similarity is empty"):
        CertifiedKernelRegressor([]).fit([[0.0], [1.0]], [0.0, 1.0])


def test_bad_rows_budgets_and_sources_are_refused() -> None:
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    model = CertifiedRadiusRegressor().fit(X, y)
    with pytest.raises(ThreatError, match="one source can insert any number"):
        CertifiedRadiusRegressor().fit(X, y, groups=[1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(ThreatError, match="CertifiedClassifier"):
        CertifiedKernelClassifier().fit(X, y > 0, groups=[1, 2, 3])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="budget"):
        model.interval(X, -1)
    with pytest.raises(ParameterError, match="within"):
        model.certify(X, 0.0, within=1.0)
    with pytest.raises(ParameterError, match="bounds"):
        model.certify(X)
    with pytest.raises(ValueError, match="NaN"):
        model.predict([[np.nan]])
    classifier = CertifiedRadiusClassifier().fit(X, y)
    with pytest.raises(DataError, match="y has shape"):
        classifier.certify(X, [1.0])
    # Labels that were read as text would otherwise all count as wrong predictions.
    with pytest.raises(DataError, match="contains '0' in row 0, which is not one of the classes"):
        classifier.certify(X, ["0", "1", "2"])


@pytest.mark.parametrize("moves", THREATS)
def test_no_attack_is_claimed_where_no_row_so_similar_can_be_inserted(moves: Moves) -> None:
    """A quarter of the declared weight is all that a row inserted at the test row has."""

    def faint(queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(0, 0.25 - np.abs(queries[:, None, 0] - rows[None, :, 0]))

    X = np.linspace(-0.5, 0.5, 41).reshape(-1, 1)
    rows, y = X[[10, 20, 30]], X[:, 0]
    known = moves in ("delete", "relabel")
    unreached: list[Any] = [faint, [(1.0, faint), (0.25, "box")]]
    reached: list[Any] = ["gaussian", [(1.0, "box"), (0.5, faint)]]
    for similarity in unreached:
        model = CertifiedKernelRegressor(similarity, threat=moves).fit(X, y)
        cert = model.certify(rows, within=0.1, relative=False)
        assert cert.exact.tolist() == [known] * 3
        assert known or cert.attack.tolist() == [42] * 3
        assert model.certify(rows, upper=-1.0).attack.tolist() == [0] * 3
        labels = CertifiedKernelClassifier(similarity, classes=[0, 1], threat=moves).fit(X, X[:, 0] > 0)
        assert labels.certify(rows[[0, 2]]).exact.tolist() == [known] * 2
    for similarity in reached:
        model = CertifiedKernelRegressor(similarity, threat=moves).fit(X, y)
        assert model.certify(rows, within=0.1, relative=False).exact.all()


def test_an_undeclared_class_of_no_neighbours_certifies_nothing() -> None:
    X, y = np.array([[0.0], [1.0]]), np.array([3, 4])
    for moves in THREATS:
        cert = CertifiedRadiusClassifier(threat=moves).fit(X, y).certify([[9.0]])
        assert cert.prediction[0] == 3
        assert cert.radius[0] == 0


def test_a_similarity_that_rounds_with_the_size_of_the_table_is_refused() -> None:
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(300, 7)), rng.normal(size=300)
    with pytest.raises(DataError, match="rather than a matrix product"):
        CertifiedKernelRegressor(rbf_kernel).fit(X, y)

    def summed_by_itself(queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-cdist(queries, rows, "sqeuclidean"))

    assert CertifiedKernelRegressor(summed_by_itself).fit(X, y).predict(X[:5]).shape == (5,)


# The default radius is made for scaled rows; the checks' rows are wider.
@parametrize_with_checks(
    [CertifiedRadiusRegressor(), CertifiedRadiusClassifier(), CertifiedKernelRegressor(), CertifiedKernelClassifier()]
)
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)
