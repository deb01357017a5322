"""Models of nearest neighbours, attacked by fitting them again on poisoned rows."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from poisonproof.errors import DataError, ParameterError, ParameterTypeError, ThreatError
from poisonproof.neighbors import CertifiedNeighborsClassifier, CertifiedNeighborsRegressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Table = tuple[NDArray[np.float64], NDArray[Any]]

THREATS: list[Any] = ["insert+delete", "delete", "insert", "relabel"]


@parametrize_with_checks(
    [
        CertifiedNeighborsRegressor(),
        CertifiedNeighborsRegressor(1, metric="cosine", threat="delete", method="paper"),
        CertifiedNeighborsClassifier(),
    ]
)
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def small_table(rng: np.random.Generator, n: int, labels: int) -> Table:
    """Few distinct rows, so that duplicates and equal distances are common."""
    return rng.integers(0, 4, (n, 2)).astype(float), rng.integers(0, labels, n).astype(float)


def poisoned(table: Table, x: NDArray[np.float64], labels: Any, threat: str, budget: int) -> Iterator[Table]:
    """Every table that the budget reaches, if inserted rows lie at x or beside it."""
    X, y = table
    n = len(y)
    if threat == "relabel":
        for changed in combinations(range(n), min(budget, n)):
            for label in labels:
                other = y.copy()
                other[list(changed)] = label
                yield X, other
        return
    for deleted in range(budget + 1 if threat != "insert" else 1):
        inserted = budget - deleted if threat != "delete" else 0
        for gone in combinations(range(n), min(deleted, n)):
            for label, place in product(labels, (x, x + 1e-9, x + 1)) if inserted else [(0.0, x)]:
                rows = np.vstack([np.delete(X, gone, axis=0), np.tile(place, (inserted, 1))])
                yield rows, np.append(np.delete(y, gone), [label] * inserted)


@pytest.mark.parametrize("threat", THREATS)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_no_poisoned_table_breaks_a_radius(threat: Any, metric: Any) -> None:
    rng = np.random.default_rng(11)
    broken = 0
    for case in range(12):
        table = small_table(rng, 6, 5)
        x = rng.integers(0, 4, (1, 2)) + rng.choice([0.0, 0.5])
        model = CertifiedNeighborsRegressor(3, metric=metric, threat=threat, key=case).fit(*table)
        cert = model.certify(x, within=1.0, relative=False)
        radius, attack = int(cert.radius[0]), int(cert.attack[0])
        low, high = cert.prediction[0] - 1, cert.prediction[0] + 1
        for budget in range(attack + 1):
            ends = model.interval(x, budget)
            for rows, targets in poisoned(table, x[0], (-50.0, 50.0), threat, budget):
                if len(rows) < 3:
                    assert budget > radius
                    assert np.isinf([ends.lower[0], ends.upper[0]]).all()
                    continue
                prediction = clone(model).fit(rows, targets).predict(x)[0]
                # Inserted values stand for infinite ones.
                assert ends.lower[0] <= prediction <= ends.upper[0] or np.isinf(ends.lower[0] + ends.upper[0])
                if budget <= radius:
                    assert low <= prediction <= high
                else:
                    broken += not low <= prediction <= high
    assert broken > 0


@pytest.mark.parametrize("threat", THREATS)
def test_no_poisoned_table_breaks_a_class(threat: Any) -> None:
    rng = np.random.default_rng(12)
    broken = 0
    for classes in ([0.0, 1.0, 2.0], None):
        for case in range(5):
            table = small_table(rng, 6, 3)
            x = rng.integers(0, 4, (1, 2)) + 0.5
            model = CertifiedNeighborsClassifier(3, threat=threat, classes=classes, key=case).fit(*table)
            cert = model.certify(x)
            letters = (0.0, 1.0, 2.0) if classes else (-1.0, 0.0, 1.0, 2.0)
            for budget in range(int(cert.attack[0]) + 1):
                for rows, labels in poisoned(table, x[0], letters, threat, budget):
                    if len(rows) < 3:
                        assert budget > cert.radius[0]
                        continue
                    same = clone(model).fit(rows, labels).predict(x)[0] == cert.prediction[0]
                    assert same or budget > cert.radius[0]
                    broken += not same
    assert broken > 0


def best_attack(model: Any, table: Table, x: NDArray[np.float64], upper: float, cost: int) -> Table | None:
    """The mixture of insertions at x and deletions of good neighbours that pushes the median above its bound."""
    X, y = table
    order = model.kneighbors(x[None])[1][0] if model.threat == "relabel" else model.kneighbors(x[None], len(y))[1][0]
    k, good = model.n_neighbors, y[order] <= upper
    if model.threat == "relabel":
        other = y.copy()
        other[order[good][:cost]] = upper + 1e6
        return (X, other) if clone(model).fit(X, other).predict(x[None])[0] > upper else None
    for inserted in range(min(cost, k) + 1):
        deleted = cost - inserted
        if (inserted and model.threat == "delete") or (deleted and model.threat == "insert"):
            continue
        gone = order[good][:deleted]
        rows, targets = np.delete(X, gone, axis=0), np.delete(y, gone)
        rows = np.vstack([rows, np.tile(x, (inserted, 1))])
        if len(rows) >= k:
            attacked = rows, np.append(targets, np.full(inserted, upper + 1e6))
            if clone(model).fit(*attacked).predict(x[None])[0] > upper:
                return attacked
    return None


@pytest.mark.parametrize("threat", THREATS)
def test_attacks_break_the_next_radius(threat: Any) -> None:
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(120, 3)), rng.normal(size=120)
    model = CertifiedNeighborsRegressor(11, threat=threat, metric="manhattan").fit(X, y)
    queries = rng.normal(size=(15, 3))
    upper = model.predict(queries) + rng.random(15)
    cert = model.certify(queries, upper=upper)
    assert cert.exact.all()
    for x, bound, radius in zip(queries, upper, cert.radius, strict=True):
        assert best_attack(model, (X, y), x, bound, int(radius) + 1) is not None
        assert radius == 0 or best_attack(model, (X, y), x, bound, int(radius)) is None
    for x, end in zip(queries, model.interval(queries, 3).upper, strict=True):
        attacked = best_attack(model, (X, y), x, np.nextafter(end, -np.inf), 3)
        assert attacked is not None
        assert clone(model).fit(*attacked).predict(x[None])[0] == end


def test_agrees_with_scikit_learn_where_nothing_ties() -> None:
    rng = np.random.default_rng(14)
    X, y, queries = rng.normal(size=(200, 4)), rng.normal(size=200), rng.normal(size=(40, 4))
    ours = CertifiedNeighborsRegressor(7).fit(X, y)
    theirs = KNeighborsRegressor(7).fit(X, y)
    distances, numbers = ours.kneighbors(queries)
    expected = theirs.kneighbors(queries)
    np.testing.assert_allclose(distances, expected[0])
    np.testing.assert_array_equal(numbers, expected[1])
    np.testing.assert_array_equal(ours.predict(queries), np.median(y[expected[1]], axis=1))
    labels = (y > 0).astype(int)
    classifier = CertifiedNeighborsClassifier(7, n_jobs=2).fit(X, labels)
    np.testing.assert_array_equal(classifier.predict(queries), KNeighborsClassifier(7).fit(X, labels).predict(queries))
    assert ours.kneighbors(queries, 3)[1].shape == (40, 3)


def test_ties_are_broken_by_content_alone() -> None:
    rng = np.random.default_rng(15)
    X, y = rng.integers(0, 3, (80, 2)).astype(float), rng.normal(size=80)
    model = CertifiedNeighborsRegressor(5, metric="manhattan").fit(X, y)
    queries = rng.integers(0, 3, (9, 2)).astype(float)
    whole = [y[near] for near in model.kneighbors(queries, 80)[1]]
    kept = rng.permutation(80)[:50]
    part = clone(model).fit(X[kept], y[kept])
    for before, after in zip(whole, part.kneighbors(queries, 50)[1], strict=True):
        np.testing.assert_array_equal(before[np.isin(before, y[kept])], y[kept][after])
    other = clone(model).set_params(key=1).fit(X, y)
    assert any((a != b).any() for a, b in zip(whole, y[other.kneighbors(queries, 80)[1]], strict=True))


def test_ties_of_labels_do_not_depend_on_which_classes_there_are() -> None:
    X, labels = np.zeros((40, 1)), np.array(list("mnopqrsz") * 5)
    model = CertifiedNeighborsClassifier(1).fit(X, labels)
    order = labels[model.kneighbors([[0.0]], 40)[1][0]]
    more = clone(model).fit(np.append(X, [[0.0]], axis=0), np.append(labels, "a"))
    names = np.append(labels, "a")[more.kneighbors([[0.0]], 41)[1][0]]
    np.testing.assert_array_equal(names[names != "a"], order)


def test_ties_of_declared_labels_do_not_depend_on_how_the_rows_spell_them() -> None:
    X, labels = np.zeros((40, 1)), np.arange(40) % 2
    for key in range(20):
        model = CertifiedNeighborsClassifier(11, classes=[False, True], key=key)
        kept = model.fit(X, labels == 1).certify([[0.0]])
        # One row among the truth values that is a number turns all of them into numbers.
        attacked = clone(model).fit(np.append(X, [[9.0]], axis=0), np.append(labels == 1, 1))
        assert kept.radius[0] > 0
        assert attacked.predict([[0.0]])[0] == kept.prediction[0]


def test_row_order_batch_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(16)
    X, y, queries = rng.normal(size=(90, 5)), rng.normal(size=90), rng.normal(size=(20, 5))
    model = CertifiedNeighborsRegressor(9, weights=[1, 2, 0, 0.5, 3]).fit(X, y)
    cert = model.certify(queries, within=0.3)
    shuffled = rng.permutation(90)
    monkeypatch.setattr("poisonproof.neighbors.search._CHUNK_BYTES", 8 * 90 * 3)
    again = clone(model).set_params(n_jobs=2).fit(X[shuffled], y[shuffled])
    assert again.certify(queries, within=0.3).to_dict() == cert.to_dict()
    assert model.certify(queries[7:8], within=0.3).radius[0] == cert.radius[7]
    assert model.interval(queries[7:8], 2).upper[0] == again.interval(queries, 2).upper[7]


def test_offsets_move_with_the_row() -> None:
    rng = np.random.default_rng(17)
    X, queries = rng.random((300, 2)), rng.random((30, 2))
    y = 1000 * X[:, 0] + rng.normal(size=300)
    plain = CertifiedNeighborsRegressor(21, weights=[0, 1]).fit(X, y)
    model = clone(plain).set_params(offset=lambda rows: 1000 * rows[:, 0]).fit(X, y)
    by_hand = clone(plain).fit(X, y - 1000 * X[:, 0])
    truth = 1000 * queries[:, 0]
    cert = model.certify(queries, lower=truth - 1, upper=truth + 1)
    assert cert.radius.min() > plain.certify(queries, lower=truth - 1, upper=truth + 1).radius.max()
    np.testing.assert_array_equal(cert.radius, by_hand.certify(queries, lower=-1, upper=1).radius)
    np.testing.assert_array_equal(cert.prediction, model.predict(queries))
    band = model.interval(queries, 3)
    assert ((band.lower <= cert.prediction) & (cert.prediction <= band.upper)).all()


@pytest.mark.parametrize("threat", THREATS)
@pytest.mark.parametrize("n_rows", [35, 60])
def test_the_published_bound_is_never_larger(threat: Any, n_rows: int) -> None:
    rng = np.random.default_rng(18)
    X, y, queries = rng.normal(size=(n_rows, 2)), rng.normal(size=n_rows), rng.normal(size=(40, 2))
    exact = CertifiedNeighborsRegressor(31, threat=threat).fit(X, y).certify(queries, upper=0.5)
    model = CertifiedNeighborsRegressor(31, threat=threat, method="paper").fit(X, y)
    published = model.certify(queries, upper=0.5)
    assert (published.radius <= exact.radius).all()
    np.testing.assert_array_equal(published.attack, exact.attack)
    assert "published" in published.method
    near = model.kneighbors(queries)[1]
    most = n_rows - 31 if "delete" in threat else n_rows
    expected = np.clip(np.count_nonzero(y[near] <= 0.5, axis=1) - 16, -1, most)
    np.testing.assert_array_equal(published.radius, expected)
    assert n_rows == 60 or expected.max() >= 4


def test_many_deletions_look_beyond_the_first_ranks() -> None:
    X = np.arange(400.0).reshape(-1, 1)
    y = (X[:, 0] >= 300).astype(float)
    model = CertifiedNeighborsRegressor(5, threat="delete").fit(X, y)
    cert = model.certify([[0.0], [350.0], [0.0]], lower=[-np.inf, 0.5, 0.0], upper=[0.5, np.inf, 1.0])
    # Five rows must stay, two good ones among them; where no value is out of bounds only too few rows are.
    assert cert.radius.tolist() == [297, 97, 395]
    assert not cert.unbreakable.any()


def test_nothing_breaks_where_no_value_is_out_of_bounds() -> None:
    X = np.arange(9.0).reshape(-1, 1)
    cert = CertifiedNeighborsRegressor(3, threat="insert").fit(X, X[:, 0]).certify(X, upper=np.inf)
    assert cert.unbreakable.all()
    assert (cert.radius == 9).all()


def test_binary_labels_through_the_regressor_agree() -> None:
    rng = np.random.default_rng(19)
    X, y, queries = rng.normal(size=(80, 2)), rng.integers(0, 2, 80), rng.normal(size=(50, 2))
    for threat in THREATS:
        regressor = CertifiedNeighborsRegressor(9, threat=threat).fit(X, y)
        classifier = CertifiedNeighborsClassifier(9, threat=threat, classes=[0, 1]).fit(X, y)
        truth = rng.integers(0, 2, 50)
        bounds = np.where(truth, 0.5, -np.inf), np.where(truth, np.inf, 0.5)
        np.testing.assert_array_equal(
            regressor.certify(queries, *bounds).radius, classifier.certify(queries, truth).radius
        )


def test_an_undeclared_class_wins_ties() -> None:
    X, labels = np.arange(9.0).reshape(-1, 1), ["b"] * 9
    open_ended = CertifiedNeighborsClassifier(3).fit(X, labels).certify([[4.0]])
    declared = CertifiedNeighborsClassifier(3, classes=["a", "b"]).fit(X, labels).certify([[4.0]])
    alone = CertifiedNeighborsClassifier(3, classes=["b"], threat="insert").fit(X, labels).certify([[4.0]])
    assert (open_ended.radius[0], declared.radius[0], alone.radius[0]) == (1, 1, 9)
    assert alone.unbreakable[0]


def test_a_class_that_is_not_predicted_has_no_radius() -> None:
    X, labels = np.arange(9.0).reshape(-1, 1), np.array([1] * 5 + [4] * 4)
    model = CertifiedNeighborsClassifier(3).fit(X, labels)
    cert = model.certify([[0.0], [8.0]], [4, 4])
    assert cert.radius.tolist() == [-1, 1]
    assert cert.to_dict()["target"] == [4, 4]
    assert "at class 4" in cert.summary(1)


def test_frames_are_welcome() -> None:
    frame = pd.DataFrame({"a": np.arange(9.0), "b": 1.0})
    model = CertifiedNeighborsRegressor(3).fit(frame, frame["a"])
    assert model.predict(frame).tolist() == [1, 1, 2, 3, 4, 5, 6, 7, 7]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"n_neighbors": 4}, ParameterError, "n_neighbors=4 must be odd .*use 3 or 5"),
        ({"n_neighbors": 0}, ParameterError, "at least 1"),
        ({"n_neighbors": 3.0}, ParameterTypeError, "must be an integer"),
        ({"n_neighbors": True}, ParameterTypeError, "must be an integer"),
        ({"n_neighbors": 11}, DataError, "n_neighbors=11 is more than .*use at most 9"),
        ({"method": "fast"}, ParameterError, "'exact' or 'paper'"),
        ({"method": ["exact"]}, ParameterError, r"method=\['exact'\] is unknown; use 'exact' or 'paper'"),
        ({"n_jobs": 0}, ParameterError, "n_jobs=0 must be at least 1, or -1"),
        ({"n_jobs": "x"}, ParameterTypeError, "n_jobs='x' must be an integer or None"),
        ({"threat": "swap"}, ParameterError, "use one of"),
        ({"key": -1}, ParameterError, "key"),
        ({"metric": "hamming"}, ParameterError, "use one of"),
        ({"ranges": [[0, 1], [0, 1]]}, ParameterError, "2 pairs, but rows have 1 features"),
    ],
)
@pytest.mark.parametrize("kind", [CertifiedNeighborsRegressor, CertifiedNeighborsClassifier])
def test_bad_parameters_say_what_is_allowed(kind: Any, options: Any, error: type[Exception], says: str) -> None:
    X = np.arange(10.0).reshape(-1, 1)
    with pytest.raises(error, match=says):
        kind(**options).fit(X, X[:, 0].astype(int))


@pytest.mark.parametrize("kind", [CertifiedNeighborsRegressor, CertifiedNeighborsClassifier])
def test_sources_are_refused_with_the_model_that_counts_them(kind: Any) -> None:
    with pytest.raises(ThreatError, match=r"any number of neighbours.*partition_by='source'"):
        kind().fit(np.eye(6), np.arange(6), groups=np.arange(6))


@pytest.mark.parametrize("threat", THREATS)
def test_budgets_beyond_all_rows_reach_everything(threat: Any) -> None:
    X = np.arange(10.0).reshape(-1, 1)
    model = CertifiedNeighborsRegressor(3, threat=threat).fit(X, X[:, 0])
    for budget in (10, 2**63 - 1, 10**30):
        band = model.interval(X[:2], budget)
        assert band.budget == budget
        assert np.isinf(band.lower).all()
        assert np.isinf(band.upper).all()


def test_bad_offsets_budgets_counts_and_classes() -> None:
    X = np.arange(10.0).reshape(-1, 1)
    with pytest.raises(DataError, match="must be finite for every row"):
        CertifiedNeighborsRegressor(offset=lambda rows: np.full(len(rows), np.inf)).fit(X, X[:, 0])
    with pytest.raises(ParameterTypeError, match="function of one block"):
        CertifiedNeighborsRegressor(offset=3.0).fit(X, X[:, 0])  # type: ignore[arg-type]
    model = CertifiedNeighborsRegressor().fit(X, X[:, 0])
    with pytest.raises(ParameterError, match="at least 0"):
        model.interval(X, -1)
    with pytest.raises(ParameterTypeError, match="integer"):
        model.interval(X, True)
    with pytest.raises(ParameterError, match="from 1 to the 10 training rows"):
        model.kneighbors(X, 11)
    with pytest.raises(ParameterTypeError, match="must be an integer"):
        model.kneighbors(X, 2.5)  # type: ignore[arg-type]
    classifier = CertifiedNeighborsClassifier(classes=["x"])
    with pytest.raises(DataError, match="declare it in classes="):
        classifier.fit(X, ["x"] * 9 + ["y"])
    with pytest.raises(DataError, match="one class for each"):
        classifier.fit(X, ["x"] * 10).certify(X, ["x"])


def test_labels_spelled_alike_have_an_order_too() -> None:
    X, y = np.zeros((10, 1)), np.array(["1"] * 5 + ["01"] * 5)
    model = CertifiedNeighborsClassifier(5, classes=["1", "01"])
    there, back = (model.fit(X[::step], y[::step]).predict(X[:1]) for step in (1, -1))
    assert there == back
