from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from poisonproof.errors import ParameterError, ParameterTypeError, ThreatError
from poisonproof.forest import CertifiedForestRegressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from poisonproof.threat import Moves

FAR = 1e9
THREATS: list[Moves] = ["insert+delete", "insert", "delete", "relabel"]
BOUNDS = np.arange(-2.5, 3.0, 0.5)


def table(
    rng: np.random.Generator, n_rows: int, n_features: int = 2
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    X = rng.random((n_rows, n_features))
    return X, rng.integers(-2, 3, n_rows).astype(float)


def reference_vote(
    model: CertifiedForestRegressor, tree: int, X: NDArray[Any], y: NDArray[Any], row: NDArray[Any]
) -> float:
    """The vote of one tree after another training, by asking which rows share the leaf."""
    codes = model._codes(np.concatenate([X, row]))[tree]
    leaf = y[codes[:-1] == codes[-1]]
    return float(np.median(leaf)) if len(leaf) else float(model.empty_value)


def attacked(
    X: NDArray[Any], y: NDArray[Any], row: NDArray[Any], spent: int, moves: Moves
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Every training table after exactly ``spent`` modifications; what is inserted stands at the test row."""
    if moves == "relabel":
        for chosen in combinations(range(len(y)), spent):
            for labels in product((-FAR, FAR), repeat=spent):
                turned = y.copy()
                turned[list(chosen)] = labels
                yield X, turned
        return
    for inserted in {"insert": [spent], "delete": [0], "insert+delete": range(spent + 1)}[moves]:
        if spent - inserted <= len(y):
            for kept in combinations(range(len(y)), len(y) - spent + inserted):
                for new in combinations_with_replacement((-FAR, FAR, 0.0), inserted):
                    rows = np.concatenate([X[list(kept)], np.repeat(row, inserted, axis=0)])
                    yield rows, np.append(y[list(kept)], new)


def forest_after(model: CertifiedForestRegressor, made: tuple[NDArray[Any], NDArray[Any]], row: NDArray[Any]) -> float:
    return float(np.median([reference_vote(model, tree, *made, row) for tree in range(model.n_trees)]))


@pytest.mark.parametrize("moves", THREATS)
def test_radius_and_interval_against_enumeration(moves: Moves) -> None:
    """Equal where rows can be inserted, never too large or too narrow elsewhere."""
    rng = np.random.default_rng(len(moves))
    exact = moves in ("insert", "insert+delete")
    equal = 0
    for case in range(30):
        n_rows = int(rng.integers(1, 7))
        X, y = table(rng, n_rows)
        row = rng.random((1, 2))
        model = CertifiedForestRegressor(
            3, int(rng.integers(0, 3)), key=case, empty_value=float(rng.integers(-2, 3)), threat=moves
        ).fit(X, y)
        limit = min(3, n_rows) if moves in ("delete", "relabel") else 3
        low, high, ends = np.inf, -np.inf, []
        for budget in range(limit + 1):
            found = [forest_after(model, made, row) for made in attacked(X, y, row, budget, moves)]
            low, high = min([low, *found]), max([high, *found])
            ends.append((-np.inf if low < -FAR / 4 else low, np.inf if high > FAR / 4 else high))
            band = model.interval(row, budget)
            assert band.lower[0] <= ends[-1][0]
            assert band.upper[0] >= ends[-1][1]
            if exact:
                assert (band.lower[0], band.upper[0]) == ends[-1]
        for bound in BOUNDS:
            for lower, upper, column in ((-np.inf, bound, 1), (bound, np.inf, 0)):
                held = sum(end[column] <= bound if column else end[column] >= bound for end in ends) - 1
                cert = model.certify(row, lower, upper)
                radius = min(int(cert.radius[0]), limit)
                assert radius <= held
                assert not exact or radius == held
                # The attack that is reported can be carried out.
                assert held == limit or int(cert.attack[0]) > held
                assert (radius == -1) == (held == -1)
                equal += radius == held
    assert equal > 200


def test_splits_are_a_function_of_the_key_and_the_ranges_alone() -> None:
    rng = np.random.default_rng(1)
    X, y = table(rng, 200, 4)
    rows = rng.random((50, 4))
    model = CertifiedForestRegressor(5, 6, key=3).fit(X, y)
    other = clone(model).fit(X[:1] * 9.0, y[:1])
    assert np.array_equal(model._codes(rows), other._codes(rows))
    assert not np.array_equal(model._codes(rows), CertifiedForestRegressor(5, 6, key=4).fit(X, y)._codes(rows))
    scaled = CertifiedForestRegressor(5, 6, key=3, ranges=[(0.0, 4.0)] * 4).fit(X, y)
    assert np.array_equal(scaled._codes(4 * rows), model._codes(rows))
    # Each tree has splits of its own, and a deeper tree refines a shallower one.
    assert len({tuple(codes) for codes in model._codes(rows).tolist()}) == 5
    deeper = CertifiedForestRegressor(5, 9, key=3).fit(X, y)
    assert np.array_equal(deeper._codes(rows) >> 3, model._codes(rows))


def test_every_split_cuts_its_own_region_at_a_place_of_its_own() -> None:
    grid = np.linspace(-2.0, 6.0, 200_001)[:, None]
    model = CertifiedForestRegressor(9, 3, ranges=(-2.0, 6.0)).fit(grid[:1], [0.0])
    for codes in model._codes(grid):
        # Along one feature the leaves come in order, and none of them is cut off.
        assert (np.diff(codes) >= 0).all()
        cuts = grid[np.searchsorted(codes, np.arange(9)) - 1, 0]
        cuts[0] = -2.0
        assert len(np.unique(codes)) == 8
        root, left, right = cuts[4], cuts[2], cuts[6]
        assert abs((left + 2.0) / (root + 2.0) - (right - root) / (6.0 - root)) > 1e-3


def test_weights_choose_the_features_to_split() -> None:
    rng = np.random.default_rng(2)
    X, y = table(rng, 100, 3)
    model = CertifiedForestRegressor(7, 5, weights=[0.0, 1.0, 0.0]).fit(X, y)
    moved = X.copy()
    moved[:, [0, 2]] = rng.random((100, 2))
    assert np.array_equal(model._codes(X), model._codes(moved))
    moved[:, 1] = rng.random(100)
    assert not np.array_equal(model._codes(X), model._codes(moved))


def test_deepest_trees_keep_their_leaves_apart() -> None:
    X = np.array([[0.25], [0.75]])
    model = CertifiedForestRegressor(1, 62, empty_value=5.0).fit(X, [1.0, 2.0])
    assert model.predict(X).tolist() == [1.0, 2.0]
    assert model.predict([[0.5]]).tolist() == [5.0]
    assert (model.leaves_.codes >= 0).all()


def test_a_forest_without_splits_is_the_median_of_the_table() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.random((101, 2)), rng.normal(size=101)
    model = CertifiedForestRegressor(3, 0).fit(X, y)
    assert (model.predict(X) == np.median(y)).all()
    upper = np.sort(y)[60]
    assert (model.certify(X[:3], upper=upper).radius == 2 * 61 - 101 - 1).all()


@pytest.mark.parametrize("moves", THREATS)
def test_the_radius_holds_and_one_more_breaks_it(moves: Moves) -> None:
    """The forest is really refitted; where rows can be inserted the radius is exact."""
    rng = np.random.default_rng([5, len(moves)])
    X, y = rng.random((300, 3)), rng.normal(size=300)
    model = CertifiedForestRegressor(9, 3, threat=moves, offset=lambda rows: rows[:, 0], empty_value=0.1).fit(X, y)
    rows = rng.random((12, 3))
    cert = model.certify(rows, within=0.25, relative=False)
    assert cert.lower is not None
    assert cert.upper is not None
    for place in range(len(rows)):
        row, radius = rows[place : place + 1], int(cert.radius[place])
        lower, upper = cert.lower[place], cert.upper[place]
        for sign, bound in ((1, upper), (-1, lower)):
            inside = np.flatnonzero(sign * (y - X[:, 0] + row[0, 0]) <= sign * bound)
            shared = (model._codes(X[inside]) == model._codes(row)).sum(axis=0)
            worst = inside[np.argsort(-shared, kind="stable")]
            for spent in (radius, radius + 1):
                if moves == "delete":
                    kept = np.setdiff1d(np.arange(300), worst[:spent])
                    made = X[kept], y[kept]
                elif moves == "relabel":
                    made = X, np.where(np.isin(np.arange(300), worst[:spent]), sign * FAR, y)
                else:
                    made = np.concatenate([X, np.repeat(row, spent, axis=0)]), np.append(y, [sign * FAR] * spent)
                after = clone(model).fit(*made).predict(row)[0]
                if spent == radius:
                    assert lower <= after <= upper
                elif moves in ("insert", "insert+delete"):
                    held = model.certify(row, lower if sign < 0 else None, upper if sign > 0 else None).radius[0]
                    assert (lower <= after <= upper) == (held > radius)
    assert (cert.attack > cert.radius).all()
    assert cert.exact.all() == (moves in ("insert", "insert+delete"))


def test_attacks_on_leaves_can_be_carried_out() -> None:
    rng = np.random.default_rng(6)
    X, y = rng.random((200, 2)), rng.normal(size=200)
    model = CertifiedForestRegressor(5, 3, threat="delete").fit(X, y)
    rows = rng.random((20, 2))
    cert = model.certify(rows, upper=model.predict(rows) + 0.2)
    for row, attack, upper in zip(rows, cert.attack, cert.upper if cert.upper is not None else [], strict=True):
        here = model._codes(row[None])
        codes = model._codes(X)
        bad: set[int] = set()
        costs = []
        for tree in range(5):
            leaf = np.flatnonzero(codes[tree] == here[tree])
            inside = leaf[y[leaf] <= upper][np.argsort(y[leaf][y[leaf] <= upper])]
            votes = [
                np.median(np.delete(y[leaf], np.isin(leaf, inside[:count]).nonzero()[0])) > upper
                if count < len(leaf)
                else upper < 0
                for count in range(len(inside) + 1)
            ]
            costs.append((votes.index(True), inside) if any(votes) else (10**6, inside))
        for count, inside in sorted(costs, key=lambda cost: cost[0])[:3]:
            bad |= set(inside[:count].tolist())
        assert len(bad) <= attack
        kept = np.setdiff1d(np.arange(200), list(bad))
        assert clone(model).fit(X[kept], y[kept]).predict(row[None])[0] > upper


def test_the_batch_and_the_order_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    X, y, rows = rng.random((500, 5)), rng.normal(size=500), rng.random((60, 5))
    model = CertifiedForestRegressor(11, 4).fit(X, y)
    cert, band = model.certify(rows, within=0.4, relative=False), model.interval(rows, 2)
    order = rng.permutation(500)
    monkeypatch.setattr("poisonproof.forest._CHUNK_VOTES", 80)
    shuffled = clone(model).fit(X[order], y[order])
    again = shuffled.certify(rows, within=0.4, relative=False)
    assert np.array_equal(again.prediction, cert.prediction)
    assert np.array_equal(again.radius, cert.radius)
    assert np.array_equal(shuffled.interval(rows, 2).upper, band.upper)
    assert np.array_equal(band.lower <= cert.prediction, np.ones(60, dtype=bool))
    assert np.isinf(model.interval(rows, 10**15).upper).all()


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"n_trees": 4}, ParameterError, "use 3 or 5"),
    ({"n_trees": 0}, ParameterError, "n_trees=0 must be from 1 to 10,000,000"),
    ({"n_trees": 10**20 + 1}, ParameterError, "n_trees=100000000000000000001 must be from 1 to 10,000,000"),
    ({"n_trees": 3.0}, ParameterTypeError, "n_trees"),
    ({"depth": True}, ParameterTypeError, "depth"),
    ({"depth": 63}, ParameterError, "from 0 to 62"),
    ({"empty_value": np.inf}, ParameterError, "empty_value"),
    ({"key": -1}, ParameterError, "key"),
    ({"threat": "change"}, ParameterError, "threat"),
    ({"ranges": [[0, 1]] * 3}, ParameterError, "ranges of shape"),
    ({"ranges": [[0, 1], [1, 1]]}, ParameterError, r"ranges\[1\]"),
    ({"ranges": (0, np.inf)}, ParameterError, "finite"),
    ({"ranges": (-1.7e308, 1.7e308)}, ParameterError, "finite"),
    ({"ranges": "wide"}, ParameterTypeError, "ranges"),
    ({"weights": [1.0]}, ParameterError, "weights of shape"),
    ({"weights": [1.0, -1.0]}, ParameterError, "at least 0"),
    ({"weights": [0.0, 0.0]}, ParameterError, "not all 0"),
    ({"weights": "wide"}, ParameterTypeError, "weights"),
]


@pytest.mark.parametrize(("settings", "error", "says"), BAD)
def test_bad_parameters_are_refused_with_a_way_out(settings: dict[str, Any], error: type[Exception], says: str) -> None:
    X, y = table(np.random.default_rng(0), 10)
    with pytest.raises(error, match=says):
        CertifiedForestRegressor(**settings).fit(X, y)


def test_sources_are_refused() -> None:
    X, y = table(np.random.default_rng(0), 10)
    with pytest.raises(ThreatError, match="partition_by='source'"):
        CertifiedForestRegressor().fit(X, y, groups=y)  # type: ignore[arg-type]


@parametrize_with_checks([CertifiedForestRegressor(ranges=(-3.0, 3.0)), CertifiedForestRegressor(3, 2)])
def test_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)
