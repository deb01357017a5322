from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler

from poisonproof import CertifiedClassifier, CertifiedRegressor
from poisonproof.costs.choices import ClassCosts, RefitClassCosts, class_costs_for
from poisonproof.costs.ridge_classes import RidgeClassCosts, ridge_recipe_of
from poisonproof.ensemble.classifier import _Choice
from poisonproof.ensemble.speaker import CodeSpeaker
from poisonproof.votes import fit_submodel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

N_LABELS = 4  # of which no block has all


class SubclassedRidge(RidgeClassifier):
    pass


def costs_of(  # noqa: PLR0917  a table, and what is asked of it
    engine: ClassCosts, classifier: Any, X: Array, y: Array, rows: Array, shift: int, *, ranks: bool
) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """The choices on the rows, and what it takes to change them."""
    constant = 0.0 if shift == 0 else -1.0
    make = partial(_Choice, N_LABELS + shift, shift, ranks)
    speaker = CodeSpeaker(classifier, N_LABELS, np.arange(N_LABELS))

    def fit(X: Array, y: Array) -> _Choice:
        return make(fit_submodel(speaker, constant, X, y))

    choice, prepared = fit(X, y), engine.prepare(fit, X, y)
    chosen = choice(rows)
    price = engine.reordering if ranks else engine.joining
    return chosen, price(prepared, rows, chosen, choice.scores)


def random_block(rng: np.random.Generator, n: int, n_classes: int) -> tuple[Array, Array]:
    y = rng.choice(rng.permutation(N_LABELS)[:n_classes], n).astype(float)
    X = rng.normal(size=(n, int(rng.integers(1, 4)))) + 0.7 * y[:, None]
    return (X.round(0) if rng.random() < 0.3 else X), y


@pytest.mark.parametrize("ranks", [False, True])
@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("intercept", [False, True])
def test_no_cost_exceeds_what_refits_find(ranks: bool, shift: int, intercept: bool) -> None:
    rng = np.random.default_rng([ranks, shift, intercept])
    compared, met, deeper = 0, 0, 0
    for case in range(100):
        max_cost = int(rng.integers(2, 5))
        n = int(rng.integers(0, 8 if max_cost < 4 else 7))
        X, y = random_block(rng, n, int(rng.integers(1, 4)))
        classifier = RidgeClassifier(alpha=float(rng.choice([1e-8, 1e-2, 1.0, 30.0])), fit_intercept=intercept)
        rows = rng.normal(size=(4, X.shape[1])) + 1
        refits = RefitClassCosts(max_cost, N_LABELS + shift, "")
        formula = class_costs_for(classifier, max_cost, N_LABELS + shift, shift)
        assert isinstance(formula, RidgeClassCosts)
        chosen, exact = costs_of(refits, classifier, X, y, rows, shift, ranks=ranks)
        same, found = costs_of(formula, classifier, X, y, rows, shift, ranks=ranks)
        assert np.array_equal(chosen, same)
        other = np.ones(exact.shape, dtype=bool) if ranks else np.arange(N_LABELS + shift)[:, None] != chosen
        assert found.min(initial=1) >= 1
        assert (found <= exact)[other].all(), (case, X, y, rows)
        compared += other.sum()
        met += (found == exact)[other].sum()
        deeper += (found > 1)[other].sum()
    assert met > 0.85 * compared
    assert deeper > 0.2 * compared


def test_steps_that_learn_nothing_are_seen_through() -> None:
    rng = np.random.default_rng(5)
    classifier = make_pipeline(FunctionTransformer(np.tanh), PolynomialFeatures(2), RidgeClassifier(alpha=0.1))
    met = []
    for _ in range(20):
        X, y = random_block(rng, 7, 3)
        rows = rng.normal(size=(6, X.shape[1]))
        formula = class_costs_for(classifier, 3, N_LABELS, 0)
        assert isinstance(formula, RidgeClassCosts)
        chosen, exact = costs_of(RefitClassCosts(3, N_LABELS, ""), classifier, X, y, rows, 0, ranks=False)
        _, found = costs_of(formula, classifier, X, y, rows, 0, ranks=False)
        other = np.arange(N_LABELS)[:, None] != chosen
        assert (found <= exact)[other].all()
        met.append((found == exact)[other].mean())
    assert np.mean(met) > 0.8


def test_rows_of_one_class_leave_it_only_when_all_are_gone() -> None:
    engine = class_costs_for(RidgeClassifier(), 5, N_LABELS, 0)
    X, rows = np.arange(6.0).reshape(3, 2), np.zeros((1, 2))
    _, costs = costs_of(engine, RidgeClassifier(), X, np.full(3, 2.0), rows, 0, ranks=False)
    assert costs[:, 0].tolist() == [3, 5, 5, 5]  # no rows vote for class 0
    _, costs = costs_of(engine, RidgeClassifier(), X[:0], np.zeros(0), rows, 0, ranks=False)
    assert costs[:, 0].tolist() == [5, 5, 5, 5]
    _, order = costs_of(engine, RidgeClassifier(), X, np.full(3, 2.0), rows, 0, ranks=True)
    assert order.tolist() == [3]


@pytest.mark.parametrize("ranks", [False, True])
def test_nothing_is_claimed_where_numbers_are_not_to_be_trusted(ranks: bool) -> None:
    rng = np.random.default_rng(0)
    classifier = RidgeClassifier(alpha=0.0)
    X, y = rng.normal(size=(12, 2)), np.tile([0.0, 1.0, 2.0], 4)
    engine = class_costs_for(classifier, 3, N_LABELS, 0)
    _, costs = costs_of(engine, classifier, X, y, X, 0, ranks=ranks)
    assert (costs == 1).all()


@pytest.mark.parametrize("settings", [{"dtype": np.float32, "sparse_output": False}, {}])
def test_nothing_is_claimed_where_a_step_changes_how_it_is_solved(settings: dict[str, Any]) -> None:
    X, y = np.tile([[0.0], [1.0], [2.0]], (4, 1)), np.tile([0.0, 1.0, 2.0], 4)
    dense, changed = (
        make_pipeline(FrozenEstimator(OneHotEncoder(**given).fit(X)), RidgeClassifier(alpha=1e-3))
        for given in ({"sparse_output": False}, settings)
    )
    costs = [
        costs_of(class_costs_for(kind, 3, N_LABELS, 0), kind, X, y, X, 0, ranks=False)[1] for kind in (dense, changed)
    ]
    assert costs[0].max() > 1
    assert (np.sort(costs[1], axis=0)[:-1] == 1).all()  # the last is what is chosen already


@pytest.mark.parametrize("ranks", [False, True])
def test_a_block_whose_vote_no_row_accounts_for_is_not_relied_on(ranks: bool) -> None:
    # A solver that a step upsets: the vote is the declared class, which none of the rows has.
    rng = np.random.default_rng(0)
    classifier = make_pipeline(OneHotEncoder(categories=[[0.0, 1.0]], handle_unknown="error"), RidgeClassifier())
    X, y = rng.integers(0, 3, size=(12, 1)).astype(float), np.tile([1.0, 2.0, 3.0], 4)
    recipe = ridge_recipe_of(RidgeClassifier())
    assert not isinstance(recipe, str)
    engine = RidgeClassCosts(recipe, 3, 0)
    chosen, costs = costs_of(engine, classifier, X, y, X, 0, ranks=ranks)
    assert ranks or (chosen == 0).all()
    assert (costs == 1).all()


@pytest.mark.parametrize(
    ("classifier", "why"),
    [
        (RidgeClassifier(class_weight="balanced"), "class_weight='balanced' weighs rows"),
        (RidgeClassifier(solver="lsqr"), "stops at a tolerance"),
        (RidgeClassifier(solver="svd"), "drops small singular values"),
        (RidgeClassifier(positive=True, solver="lbfgs"), "not linear"),
        (SubclassedRidge(), "SubclassedRidge is no ridge classifier"),
        (Ridge(), "Ridge is no ridge classifier"),
        (make_pipeline(StandardScaler(), RidgeClassifier()), "'standardscaler'"),
        (make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()), "LogisticRegression is no ridge"),
    ],
)
def test_all_others_are_refitted_and_say_why(classifier: Any, why: str) -> None:
    engine = class_costs_for(classifier, 2, 3, 0)
    assert isinstance(engine, RefitClassCosts)
    assert engine.method.startswith("leave-out refits (")
    assert why in engine.method


@pytest.mark.parametrize("max_cost", [2, 4])
def test_two_classes_are_a_regression_of_signs(max_cost: int) -> None:
    data, labels = load_breast_cancer(return_X_y=True)
    data = np.log1p(data)
    settings: dict[str, Any] = {"n_partitions": 9, "threat": "delete", "max_cost": max_cost}
    classifier = CertifiedClassifier(RidgeClassifier(0.1), classes=[0, 1], **settings).fit(data[150:], labels[150:])
    regressor = CertifiedRegressor(Ridge(0.1), empty_value=-1.0, **settings).fit(data[150:], 2.0 * labels[150:] - 1)
    cert = classifier.certify(data[:150])
    low, high = np.where(cert.prediction == 1, 0.0, -np.inf), np.where(cert.prediction == 1, np.inf, 0.0)
    same = regressor.certify(data[:150], low, high)
    assert np.array_equal(cert.radius, same.radius)
    assert cert.radius.max() > 4  # more than unit costs can certify
    assert f"costs ≤ {max_cost} by smoother formulas for ridge classes" in cert.method


@pytest.mark.parametrize("rule", ["plurality", "runoff"])
@pytest.mark.parametrize("classes", [None, range(3)])
def test_costs_certify_more_than_counting_votes(rule: Any, classes: Any) -> None:
    data, labels = load_digits(n_class=3, return_X_y=True)
    model = CertifiedClassifier(RidgeClassifier(10.0), 15, rule=rule, classes=classes, threat="delete", max_cost=3)
    model.fit(data[60:], labels[60:])
    unit = clone(model).set_params(max_cost=1).fit(data[60:], labels[60:]).certify(data[:60])
    cert = model.certify(data[:60])
    assert (cert.radius >= unit.radius).all()
    assert cert.radius.mean() > 1.1 * unit.radius.mean()
    assert np.array_equal(pickle.loads(pickle.dumps(model)).certify(data[:5]).radius, cert.radius[:5])  # noqa: S301  its own


def test_a_fitted_classifier_keeps_what_it_was_fitted_with() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y, rows = (X[:, 0] + 0.3 * rng.normal(size=300) > 0.8).astype(int), rng.random((12, 2))
    model = CertifiedClassifier(RidgeClassifier(), 5, threat="delete", max_cost=5).fit(X, y)
    before = model.certify(rows)
    after = model.set_params(estimator__fit_intercept=False).certify(rows)
    assert np.array_equal(after.radius, before.radius)
