"""Steps outside the certified submodels that learn from rows are found, wherever they hide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, MiniBatchNMF
from sklearn.ensemble import BaggingRegressor, StackingRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.utils import all_estimators

from poisonproof.ensemble import CertifiedRegressor
from poisonproof.errors import ParameterTypeError
from poisonproof.rowlocal import Finding, check_pipeline, is_row_local, learning_steps
from poisonproof.schema import Numeric, Schema


class Certified(RegressorMixin, BaseEstimator):
    """What a certified model looks like from outside: it has ``certify``."""

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Certified:  # noqa: ARG002  scikit-learn's signature
        return self

    def certify(self, X: Any) -> None: ...


class Untagged:
    """A transformer that does not say whether it learns."""

    def fit(self, X: Any) -> Untagged:  # noqa: ARG002  scikit-learn's signature
        return self

    def transform(self, X: Any) -> Any:
        return X


class LearningPolynomial(PolynomialFeatures):  # a subclass may learn
    pass


class Divided(FunctionTransformer):
    """Inherits that it learns nothing, and looks at all rows at once."""

    def transform(self, X: Any) -> Any:
        return X / np.abs(X).max(axis=0)


class Thawed(FrozenEstimator):  # what it does with what it holds is unknown
    pass


class LearningPipeline(Pipeline):  # and so may this
    pass


class PredictsUnfitted(TransformerMixin, GaussianProcessRegressor):
    """Can predict from its prior before it is fitted, and learns all the same."""

    def transform(self, X: Any) -> Any:
        return self.predict(X).reshape(-1, 1)


class Shift(TransformerMixin, BaseEstimator):
    """Stateless, but does not say so."""

    def fit(self, X: Any, y: Any = None) -> Shift:  # noqa: ARG002  scikit-learn's signature
        return self

    def transform(self, X: Any) -> Any:
        return X + 1


SCHEMA = Schema([Numeric("x", 0, 1)])
STATELESS: list[Any] = [
    SCHEMA,
    FunctionTransformer(np.log1p),
    FunctionTransformer(),
    Normalizer(),
    Binarizer(),
    HashingVectorizer(),
    PolynomialFeatures(3),
    FrozenEstimator(StandardScaler()),
    FrozenEstimator(make_pipeline(StandardScaler(), FunctionTransformer(np.tanh), "passthrough")),
    FrozenEstimator(ColumnTransformer([("a", PCA(), make_column_selector())], remainder=FunctionTransformer())),
    "passthrough",
    "drop",
    None,
    make_pipeline(SCHEMA, PolynomialFeatures()),
    FeatureUnion([("a", Normalizer()), ("b", "drop")]),
    ColumnTransformer([("a", Normalizer(), [0]), ("b", "drop", make_column_selector())], remainder="passthrough"),
]
LEARNING: list[Any] = [
    StandardScaler(),
    SimpleImputer(strategy="constant"),
    OneHotEncoder(categories=[["a"]]),
    PCA(),
    SelectKBest(),
    GaussianProcessRegressor(),
    Ridge(),
    PredictsUnfitted(),
    Untagged(),
    Shift(),
    LearningPolynomial(),
    make_pipeline(SCHEMA, MinMaxScaler()),
    FeatureUnion([("a", Normalizer()), ("b", PCA())]),
    ColumnTransformer([("a", Normalizer(), [0])], remainder=StandardScaler()),
    ColumnTransformer([("a", Normalizer(), make_column_selector(dtype_include="number"))]),
    3,
    "pass",
    LearningPipeline([("a", Normalizer())]),
]
CUMULATED: Any = FunctionTransformer(np.cumsum)
OPAQUE: list[Any] = [
    FunctionTransformer(lambda rows: rows - rows.mean(axis=0)),
    FunctionTransformer(np.add, kw_args={"x2": 1}),
    FunctionTransformer(np.matmul),  # a ufunc of whole tables
    Divided(),
    Thawed(StandardScaler()),
    FrozenEstimator(CUMULATED),
    FrozenEstimator(Divided()),
    FrozenEstimator(make_pipeline(StandardScaler(), make_pipeline(CUMULATED))),
    FrozenEstimator(FeatureUnion([("a", FrozenEstimator(CUMULATED))])),
    FrozenEstimator(ColumnTransformer([("a", CUMULATED, [0])])),
    FrozenEstimator(ColumnTransformer([("a", "drop", [0])], remainder=CUMULATED)),
    FrozenEstimator(StackingRegressor([("a", make_pipeline(CUMULATED, Ridge()))])),
    FrozenEstimator(MiniBatchNMF()),
]


def found(estimator: Any) -> list[tuple[str, str]]:
    return [(finding.step, finding.estimator) for finding in check_pipeline(estimator)]


@pytest.mark.parametrize("step", STATELESS)
def test_steps_that_learn_nothing_are_row_local(step: Any) -> None:
    assert is_row_local(step)
    assert found(Pipeline([("step", step), ("model", Certified())])) == []
    assert learning_steps(Pipeline([("step", step), ("model", Ridge())])) == []


@pytest.mark.parametrize("step", LEARNING)
def test_steps_that_learn_are_found(step: Any) -> None:
    assert not is_row_local(step)
    around = check_pipeline(Pipeline([("first", "passthrough"), ("step", step), ("model", Certified(step))]))
    assert len(around) == 1
    assert around[0].step.startswith("step")
    assert around == learning_steps(Pipeline([("first", None), ("step", step), ("model", Ridge())]))


@pytest.mark.parametrize("step", OPAQUE)
def test_functions_are_trusted_around_a_model_but_not_to_carry_its_formulas(step: Any) -> None:
    assert found(make_pipeline(step, Certified())) == []
    assert not is_row_local(step)
    (finding,) = learning_steps(Pipeline([("step", make_pipeline(step)), ("model", Ridge())]))
    assert finding.step.startswith("step__")
    assert "only numpy's own ufuncs" in finding.why


def test_what_is_called_row_local_gives_each_row_alone_what_it_gives_in_a_batch() -> None:
    rows = np.abs(np.random.default_rng(0).normal(size=(40, 3))) + 0.1
    other = rows[::-1] * 7
    seen = []
    for name, kind in all_estimators(type_filter="transformer"):
        try:
            step = kind()
        except TypeError:  # it needs parameters
            continue
        # Text and images are not rows of numbers.
        if not is_row_local(step) or name in ("HashingVectorizer", "FeatureHasher", "PatchExtractor"):
            continue
        one, two = (kind().fit(part).transform(rows) for part in (rows, other))
        assert np.array_equal(one, two), name
        seen.append(name)
    assert {"Normalizer", "Binarizer", "FunctionTransformer", "PolynomialFeatures"} <= set(seen)


def test_a_certified_model_is_its_own_master() -> None:
    inside = make_pipeline(StandardScaler(), PCA(), Ridge())
    assert found(Certified(inside)) == []
    assert found(FrozenEstimator(Certified(inside))) == []
    assert found(make_pipeline(SCHEMA, Certified(GridSearchCV(inside, {})))) == []


def test_the_package_s_own_models_are_certified_ones() -> None:
    inside = make_pipeline(StandardScaler(), Ridge())
    pipe = make_pipeline(SCHEMA, CertifiedRegressor(inside, n_partitions=3))
    assert found(pipe) == []
    assert found(make_pipeline(MinMaxScaler(), pipe)) == [("minmaxscaler", "MinMaxScaler")]
    table = {"x": np.linspace(0, 1, 30)}
    assert np.ptp(pipe.fit(table, table["x"]).predict(table)) > 0


def test_nested_steps_have_nested_names_in_order() -> None:
    columns = ColumnTransformer(
        [
            ("num", make_pipeline(SimpleImputer(), Normalizer(), StandardScaler()), [0, 1]),
            ("cat", OneHotEncoder(), [2]),
            ("auto", PCA(), make_column_selector()),
            ("keep", "passthrough", [3]),
        ],
        remainder=MinMaxScaler(),
    )
    union = FeatureUnion([("poly", PolynomialFeatures()), ("pca", PCA())])
    pipe = Pipeline([("columns", columns), ("union", union), ("inner", make_pipeline(SelectKBest(), Certified()))])
    names = [
        ("columns__num__simpleimputer", "SimpleImputer"),
        ("columns__num__standardscaler", "StandardScaler"),
        ("columns__cat", "OneHotEncoder"),
        ("columns__auto", "ColumnTransformer"),
        ("columns__auto", "PCA"),
        ("columns__remainder", "MinMaxScaler"),
        ("union__pca", "PCA"),
        ("inner__selectkbest", "SelectKBest"),
    ]
    assert found(pipe) == names
    assert [(finding.step, finding.estimator) for finding in learning_steps(pipe)] == names


def test_target_transforms_that_learn_are_found() -> None:
    assert found(TransformedTargetRegressor(Certified(), func=np.log, inverse_func=np.exp)) == []
    learns = TransformedTargetRegressor(make_pipeline(PCA(), Certified()), transformer=QuantileTransformer())
    assert found(learns) == [("transformer", "QuantileTransformer"), ("regressor__pca", "PCA")]
    assert [step.step for step in learning_steps(learns)] == ["transformer", "regressor__pca"]
    assert found(TransformedTargetRegressor()) == [("regressor", "LinearRegression")]
    assert learning_steps(TransformedTargetRegressor()) == []


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_searches_tune_on_what_is_certified(search: Any) -> None:
    (tuned,) = check_pipeline(search(Certified(), {"estimator": [None]}))
    assert tuned.step == search.__name__.lower()
    assert "tune on other rows" in str(tuned)
    inner = Pipeline([("scale", StandardScaler()), ("model", Certified())])
    pipe = Pipeline([("first", SCHEMA), ("search", search(inner, {}))])
    assert found(pipe) == [("search", search.__name__), ("search__estimator__scale", "StandardScaler")]
    assert [step.step for step in learning_steps(pipe)] == ["search"]


def test_models_without_certificates_are_named() -> None:
    assert found(Ridge()) == [("ridge", "Ridge")]
    assert found(StandardScaler()) == [("standardscaler", "StandardScaler")]
    assert found(BaggingRegressor(Certified())) == [("baggingregressor", "BaggingRegressor")]
    assert found(make_pipeline(Normalizer(), Ridge())) == [("ridge", "Ridge")]
    assert found(make_pipeline(Normalizer(), "passthrough")) == []
    assert learning_steps(Ridge()) == []


def test_a_finding_is_a_sentence() -> None:
    (finding,) = check_pipeline(make_pipeline(StandardScaler(), Certified()))
    assert finding == Finding("standardscaler", "StandardScaler", finding.why)
    assert str(finding).startswith("standardscaler (StandardScaler) learns from all rows at once; move it into")


@pytest.mark.parametrize("pipe", [None, "passthrough", 3])
def test_what_is_no_estimator_is_refused(pipe: Any) -> None:
    with pytest.raises(ParameterTypeError, match="must be a scikit-learn estimator"):
        check_pipeline(pipe)
