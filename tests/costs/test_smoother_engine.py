from __future__ import annotations

import pickle
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, PolynomialFeatures, StandardScaler

from poisonproof import CertifiedRegressor
from poisonproof.costs import engine_for
from poisonproof.costs.refit import RefitCosts
from poisonproof.costs.smoother import SmootherCosts, recipe_of
from poisonproof.costs.trees import TreeCosts
from poisonproof.errors import ThreatError
from poisonproof.learners import KernelRidge
from poisonproof.learners.boosted_trees import BoostedTreesRegressor
from poisonproof.threat import Threat
from poisonproof.votes import fit_submodel

DELETE = Threat("delete")

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.costs import Reach

    Array = NDArray[np.float64]


class SubclassedRidge(Ridge):
    pass


def fitter(estimator: Any, constant: float = 0.0) -> Any:
    return lambda X, y: fit_submodel(estimator, constant, X, y).vote


def reach_of(  # noqa: PLR0917  a table and what is asked of it
    estimator: Any, X: Array, y: Array, rows: Array, max_cost: int = 3, threat: Threat = DELETE, constant: float = 0.0
) -> tuple[Array, Reach]:
    fit = fitter(estimator, constant)
    engine: Any = engine_for(estimator, threat, max_cost)
    assert isinstance(engine, SmootherCosts)
    votes = fit(X, y)(rows)
    return votes, engine.reach(engine.prepare(fit, X, y), votes, rows)


def hull_of_refits(  # noqa: PLR0917  as above
    estimator: Any, X: Array, y: Array, rows: Array, size: int, constant: float = 0.0
) -> tuple[Array, Array]:
    fit = fitter(estimator, constant)
    sets = [gone for k in range(size + 1) for gone in combinations(range(len(y)), min(k, len(y)))]
    votes = np.array([fit(np.delete(X, gone, axis=0), np.delete(y, gone))(rows) for gone in sets])
    return votes.min(axis=0), votes.max(axis=0)


WRAPPED = {
    "log target": TransformedTargetRegressor(Ridge(alpha=0.1), func=np.log, inverse_func=np.exp),
    "arcsinh target": TransformedTargetRegressor(KernelRidge(), func=np.arcsinh, inverse_func=np.sinh),
    "no transform": TransformedTargetRegressor(Ridge(), check_inverse=False),
    "steps": make_pipeline(Normalizer(), "passthrough", PolynomialFeatures(2), Ridge(alpha=0.5)),
    "steps around a transform": make_pipeline(
        Normalizer(), TransformedTargetRegressor(KernelRidge(), func=np.log1p, inverse_func=np.expm1)
    ),
    "transform around steps": TransformedTargetRegressor(
        make_pipeline(FunctionTransformer(np.sqrt), KernelRidge(target_transform="log")),
        func=np.log1p,
        inverse_func=np.expm1,
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_steps_and_increasing_transforms_are_passed_through(name: str) -> None:
    rng = np.random.default_rng(len(name))
    X, y, rows = rng.random((7, 3)), 1 + rng.random(7), rng.random((5, 3))
    votes, reach = reach_of(WRAPPED[name], X, y, rows)
    for k in (1, 2):
        low, high = hull_of_refits(WRAPPED[name], X, y, rows, k)
        assert np.all((reach.low[k] <= low) & (reach.high[k] >= high))
        np.testing.assert_allclose(reach.low[k], low, rtol=1e-5)
        np.testing.assert_allclose(reach.high[k], high, rtol=1e-5)
    assert np.array_equal(reach.low[0], votes)


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (make_pipeline(StandardScaler(), Ridge()), "step 'standardscaler' (StandardScaler) learns"),
        (TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), "StandardScaler"),
        (TransformedTargetRegressor(Ridge(), func=np.negative, inverse_func=np.negative), "not known to increase"),
        (TransformedTargetRegressor(SubclassedRidge()), "SubclassedRidge is no linear smoother"),
        (make_pipeline(Normalizer(), Ridge(solver="sag")), "stops at a tolerance"),
        (make_pipeline(FrozenEstimator(make_pipeline(FunctionTransformer(np.cumsum))), Ridge()), "FrozenEstimator"),
        (Ridge(solver="svd"), "drops small singular values"),
        (Ridge(positive=True), "positive=True"),
        (Ridge(alpha=np.array([1.0, 2.0])), "several penalties"),
        (TransformedTargetRegressor(), "NoneType is no linear smoother"),
    ],
)
def test_what_is_no_smoother_is_refitted_and_says_why(estimator: Any, why: str) -> None:
    assert why in str(recipe_of(estimator))
    engine: Any = engine_for(estimator, DELETE, 2)
    assert isinstance(engine, RefitCosts)
    assert why in engine.method
    with pytest.raises(ThreatError, match="KernelRidge with declared ranges"):
        engine_for(estimator, Threat("relabel"), 2)


def test_engines_are_picked_by_estimator() -> None:
    assert engine_for(Ridge(), DELETE, 1) is None
    assert isinstance(engine_for(BoostedTreesRegressor(), DELETE, 2), TreeCosts)
    engine: Any = engine_for(KernelRidge(), DELETE, 2)
    assert engine.method == "smoother formulas"


@pytest.mark.parametrize("moves", ["delete", "insert+delete"])
def test_sources_cost_one(moves: Any) -> None:
    with pytest.raises(ThreatError, match="counts sources"):
        engine_for(Ridge(), Threat(moves, "source"), 2)


@pytest.mark.parametrize(
    ("estimator", "moves", "message"),
    [
        (Ridge(), "relabel", "target_range"),
        (KernelRidge(), "relabel", "target_range"),
        (KernelRidge(target_range=(0, 1)), "insert", "ranges=..., target_range"),
        (KernelRidge(ranges=(0, 1)), "insert+delete", "ranges=..., target_range"),
    ],
)
def test_threats_need_declared_ranges(estimator: Any, moves: Any, message: str) -> None:
    with pytest.raises(ThreatError, match=message):
        engine_for(estimator, Threat(moves), 2)


BOXED = KernelRidge(ranges=(0, 1), target_range=(0.1, 1))


@pytest.mark.parametrize(
    ("estimator", "moves", "message"),
    [
        (TransformedTargetRegressor(BOXED, func=np.log, inverse_func=np.exp), "relabel", "target transform around"),
        (TransformedTargetRegressor(BOXED, func=np.log1p, inverse_func=np.expm1), "insert", "target transform around"),
        (make_pipeline(FunctionTransformer(np.log), BOXED), "insert+delete", "may refuse some; encode the rows before"),
    ],
)
def test_what_could_refuse_a_row_before_it_is_clipped_is_not_served(estimator: Any, moves: Any, message: str) -> None:
    with pytest.raises(ThreatError, match=message):
        engine_for(estimator, Threat(moves), 2)


def test_what_takes_any_label_and_any_row_is_served() -> None:
    rng = np.random.default_rng(0)
    X, y, rows = rng.random((9, 2)), rng.normal(size=9), rng.random((3, 2))
    estimator = make_pipeline(
        FunctionTransformer(np.log),
        TransformedTargetRegressor(KernelRidge(target_range=(-1, 1)), func=np.arcsinh, inverse_func=np.sinh),
    )
    _, reach = reach_of(estimator, X, y, rows, 2, Threat("relabel"), constant=-50.0)
    fit = fitter(estimator, -50.0)
    for label in (-1e308, 1e308):
        for row in range(9):
            vote = fit(X, np.where(np.arange(9) == row, label, y))(rows)
            assert np.all((reach.low[1] <= vote) & (vote <= reach.high[1]))


def test_a_row_that_a_step_refuses_costs_one_and_no_other_does() -> None:
    encoder = FrozenEstimator(OneHotEncoder(sparse_output=False).fit([[0.0], [1.0], [2.0]]))
    rng = np.random.default_rng(1)
    X, y, rows = rng.integers(0, 3, (20, 1)).astype(float), rng.random(20), np.array([[1.0], [7.0], [2.0]])
    votes, reach = reach_of(make_pipeline(encoder, Ridge()), X, y, rows, 3, constant=-50.0)
    assert votes[1] == -50
    assert np.isfinite(reach.high[1]).tolist() == [True, False, True]
    assert np.isfinite(reach.low[1]).tolist() == [True, False, True]


@pytest.mark.parametrize("away", [1e4, 1e8, 1e10])
@pytest.mark.parametrize("estimator", [Ridge(alpha=1e-3), Ridge(alpha=1.0, solver="cholesky"), KernelRidge(gamma=None)])
def test_features_far_from_zero_round_within_the_margin(estimator: Any, away: float) -> None:
    rng = np.random.default_rng(2)
    for n in (3, 12, 40):
        X = rng.normal(size=(n, 3)) + away
        y, rows = X[:, 0] - away + 0.01 * rng.normal(size=n), rng.normal(size=(3, 3)) + away
        _, reach = reach_of(estimator, X, y, rows, 2)
        low, high = hull_of_refits(estimator, X, y, rows, 1)
        assert np.all((reach.low[1] <= low) & (reach.high[1] >= high))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("estimator", [Ridge(), KernelRidge()])
def test_deleting_the_whole_block_gives_the_constant(n: int, estimator: Any) -> None:
    rng = np.random.default_rng(n)
    X, y, rows = rng.random((n, 2)), rng.random(n), rng.random((2, 2))
    _, reach = reach_of(estimator, X, y, rows, 5, constant=50.0)
    assert np.all(reach.high[n:] == 50)
    assert np.all(reach.high[:n] < 50)


@pytest.mark.parametrize("moves", ["delete", "relabel", "insert", "insert+delete"])
def test_an_empty_block_can_only_be_inserted_into(moves: Any) -> None:
    estimator = KernelRidge(ranges=(0, 1), target_range=(0, 1))
    votes, reach = reach_of(estimator, np.empty((0, 2)), np.empty(0), np.ones((3, 2)), 3, Threat(moves), constant=0.5)
    if moves in ("delete", "relabel"):
        assert np.all(reach.low == votes)
        assert np.all(reach.high == votes)
    else:
        assert np.all(np.isinf(reach.high[1:]))
        assert np.all(np.isinf(reach.low[1:]))


def test_emptying_and_filling_a_block_is_unbounded() -> None:
    rng = np.random.default_rng(0)
    estimator = KernelRidge(ranges=(0, 1), target_range=(0, 1))
    _, reach = reach_of(estimator, rng.random((2, 2)), rng.random(2), rng.random((3, 2)), 5, Threat("insert+delete"))
    assert np.all(np.isfinite(reach.high[1]))
    assert np.all(np.isinf(reach.high[3:]))


@pytest.mark.parametrize(
    ("estimator", "X", "y"),
    [
        (KernelRidge(), [[1e200], [0.0], [1.0]], [0.0, 1.0, 2.0]),
        (KernelRidge(target_transform="log"), [[0.0], [1.0], [2.0]], [1.0, -1.0, 2.0]),
        (TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp), [[0.0], [1.0]], [0.0, 1.0]),
        (KernelRidge(alpha=0.0), [[1.0], [1.0], [2.0]], [0.0, 1.0, 2.0]),
        (Ridge(alpha=0.0), [[1.0], [1.0], [1.0]], [0.0, 1.0, 2.0]),
        (Ridge(alpha=1e-14), [[1e3], [2e3], [3.5e3]], [0.0, 1.0, 2.0]),
        (Ridge(alpha=1e-320), [[1e-161], [2e-161], [3.5e-161]], [0.0, 1.0, 2.0]),
        (KernelRidge(alpha=0.0, gamma=None), [[1e-155], [2e-155]], [0.0, 1.0]),
        (KernelRidge(), [[0.0], [1.0], [3.0]], [0.0, 1e-250, 2e-250]),
        (
            make_pipeline(FrozenEstimator(OneHotEncoder().fit([[0.0], [1.0], [2.0]])), Ridge()),
            [[1.0], [0.0], [2.0]],
            [0.0, 1.0, 2.0],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_blocks_that_are_not_understood_cost_one(estimator: Any, X: list[Any], y: list[Any]) -> None:
    rows = np.array([[1.0], [2.0]])
    _, reach = reach_of(estimator, np.array(X), np.array(y), rows)
    assert np.all(np.isinf(reach.low[1:]))
    assert np.all(np.isinf(reach.high[1:]))


def test_a_row_that_cannot_be_predicted_costs_one_and_no_other_does() -> None:
    rng = np.random.default_rng(0)
    rows = np.array([[0.5, 0.5], [1e300, 1e300]])
    for estimator in (KernelRidge(), Ridge(), KernelRidge(target_transform="log")):
        X = rng.random((8, 2))
        with np.errstate(all="ignore"):
            _, reach = reach_of(estimator, X, np.exp(30 * X[:, 0]), rows, 4)
        assert np.all(np.isfinite(reach.high[:3, 0]))
        if not isinstance(estimator, Ridge):
            assert np.all(np.isinf(reach.high[1:, 1]))


def test_a_constant_target_stays() -> None:
    rng = np.random.default_rng(1)
    for estimator in (Ridge(), KernelRidge()):
        votes, reach = reach_of(estimator, rng.random((9, 2)), np.full(9, 4.0), rng.random((3, 2)), 4)
        np.testing.assert_allclose(reach.high, np.broadcast_to(votes, reach.high.shape), rtol=1e-9)
        np.testing.assert_allclose(reach.low, np.broadcast_to(votes, reach.low.shape), rtol=1e-9)


def test_a_vote_that_is_not_the_smoothers_widens_the_reach() -> None:
    rng = np.random.default_rng(2)
    X, y, rows = rng.random((9, 2)), rng.random(9), rng.random((3, 2))
    engine: Any = engine_for(Ridge(), DELETE, 2)
    fit = fitter(Ridge())
    votes = fit(X, y)(rows)
    block = pickle.loads(pickle.dumps(engine.prepare(fitter_of_ridge, X, y)))  # noqa: S301  own bytes
    honest, strange = engine.reach(block, votes, rows), engine.reach(block, votes + 0.1, rows)
    assert np.all(strange.high[1] >= honest.high[1] + 0.3)
    assert np.all(strange.low[1] <= honest.low[1] - 0.3)


def fitter_of_ridge(X: Array, y: Array) -> Any:
    return fit_submodel(Ridge(), 0.0, X, y).vote


@pytest.mark.parametrize(
    ("estimator", "threat"),
    [
        (KernelRidge(alpha=0.1), "delete"),
        (TransformedTargetRegressor(Ridge(alpha=0.5), func=np.log, inverse_func=np.exp), "delete"),
        (KernelRidge(alpha=1.0, target_range=(1.0, 4.0)), "relabel"),
        (KernelRidge(alpha=20.0, gamma=None, ranges=(0, 1), target_range=(1.0, 4.0)), "insert+delete"),
    ],
)
def test_poisoned_ensembles_hold_up_to_their_radius(estimator: Any, threat: Any) -> None:
    rng = np.random.default_rng(3)
    within = 0.25 if threat == "delete" else 1.2
    X = rng.random((260, 3))
    y = 1 + X.sum(axis=1) + 0.2 * rng.normal(size=260).clip(-1, 1)
    rows = rng.random((6, 3))
    model = CertifiedRegressor(estimator, 5, threat=threat, max_cost=6).fit(X, y)
    cert: Any = model.certify(rows, within=within, relative=False)
    unit = CertifiedRegressor(estimator, 5, threat=threat).fit(X, y).certify(rows, within=within, relative=False)
    assert np.all(cert.radius >= unit.radius)
    assert cert.radius.sum() > unit.radius.sum()
    assert "smoother formulas" in cert.method
    band = model.interval(rows, budget=2)
    home = model.blocks(X)
    for row in range(6):
        for attempt in range(6):
            sign = 1 if attempt % 2 else -1
            budget = int(cert.radius[row]) if attempt < 4 else 2
            # Rows that pull the prediction the other way go, or get the other label, the nearest first.
            residual = sign * (y - model.predict(X))
            near = residual - 2.0 * np.abs(X - rows[row]).sum(axis=1)
            few = np.isin(home, rng.permutation(5)[: max(1, budget // 2)])
            worst = np.argsort(np.where(few, near if threat == "relabel" else -near, np.inf))[:budget]
            poisoned_X, poisoned_y = X.copy(), y.copy()
            if threat == "relabel":
                poisoned_y[worst] = 4.0 if sign > 0 else 1.0
            else:
                half = budget // 2 if threat == "insert+delete" else 0
                gone = worst[: budget - half]
                poisoned_X, poisoned_y = np.delete(X, gone, axis=0), np.delete(y, gone)
                poisoned_X = np.vstack([poisoned_X, rows[row] + 1e-3 * rng.random((half, 3))])
                poisoned_y = np.append(poisoned_y, np.full(half, 100.0 * sign))
            vote = clone(model).fit(poisoned_X, poisoned_y).predict(rows[[row]])[0]
            if attempt < 4:
                assert cert.lower[row] <= vote <= cert.upper[row]
            else:
                assert band.lower[row] <= vote <= band.upper[row]


def test_a_fitted_model_keeps_what_it_was_fitted_with() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y, rows = X[:, 0] + 0.1 * rng.normal(size=200), rng.random((3, 2))
    model = CertifiedRegressor(KernelRidge(target_range=(-3, 3)), 5, threat="relabel", max_cost=5).fit(X, y)
    before = model.certify(rows, within=0.5, relative=False)
    # A narrower range would make labels look harmless that the votes have not been protected from.
    model.set_params(estimator__target_range=(0.45, 0.55), offset=lambda rows: rows[:, 0])
    after = model.certify(rows, within=0.5, relative=False)
    assert before.radius.max() < 5
    assert np.array_equal(after.radius, before.radius)
    assert np.array_equal(after.prediction, before.prediction)
    assert np.array_equal(model.predict(rows), before.prediction)


@pytest.mark.filterwarnings("ignore:.*vote the declared empty_value")
@pytest.mark.parametrize("threat", ["insert", "insert+delete"])
def test_inserted_rows_cannot_overflow_what_the_offset_leaves(threat: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((600, 2))
    y, rows = X[:, 0] + 0.1 * rng.normal(size=600), rng.random((1, 2))
    model = CertifiedRegressor(
        KernelRidge(alpha=50.0, gamma=None, ranges=(0, 1), target_range=(-3, 3)),
        3,
        threat=threat,
        max_cost=4,
        offset=lambda rows: rows[:, 0],
        empty_value=-1e3,
    ).fit(X, y)
    cert: Any = model.certify(rows, within=1.0, relative=False)
    assert cert.radius[0] > 2
    strange = np.column_stack([-1e300 * (1 + rng.random(60)), rng.random(60)])
    first = [np.argmax(model.blocks(strange) == block) for block in range(2)]
    labels = np.append(y, [np.finfo(float).max] * 2)
    poisoned = clone(model).fit(np.vstack([X, strange[first]]), labels).predict(rows)[0]
    assert cert.lower[0] <= poisoned <= cert.upper[0]
