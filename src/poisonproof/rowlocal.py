"""Which steps of a pipeline learn from rows: outside the certified submodels, those void a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from poisonproof.errors import ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Finding", "check_pipeline", "is_row_local", "learning_steps"]

_LEARNS: Final = "learns from all rows at once; move it into the certified model's own estimator, or declare a Schema"
_SELECTS: Final = "chooses its columns by looking at the table; list the columns instead"
_TUNES: Final = "tunes on the rows that are certified; tune on other rows and give the certified model what was found"
_OPAQUE: Final = "applies a function that may look at all rows at once; only numpy's own ufuncs are known not to"
_UNCERTIFIED: Final = "learns from all rows and is no certified model"

# They remember the number of columns and nothing else; a subclass may learn.
_STATELESS: Final = (PolynomialFeatures,)

# Once fitted they still transform all rows of a table together, up to a tolerance.
_JOINT: Final = ("NMF", "MiniBatchNMF")


@dataclass(frozen=True)
class Finding:
    """A step that learns from rows where it must not.

    Parameters
    ----------
    step : str
        The step's name, nested names joined by ``__`` as in ``get_params``.
    estimator : str
        The name of the step's class.
    why : str
        What is wrong with it, and the way out.
    """

    step: str
    estimator: str
    why: str

    def __str__(self) -> str:
        return f"{self.step} ({self.estimator}) {self.why}"


def check_pipeline(pipe: object) -> list[Finding]:
    """The steps outside the certified submodels that learn from rows, each of which voids the certificate.

    Steps inside a certified model's own ``estimator`` are trained on each submodel's rows alone and are fine, and so
    are steps that learn nothing. Functions (of a ``FunctionTransformer``, a target transform, an offset) cannot be
    looked into and count as row-local: they must treat each row by itself.

    Parameters
    ----------
    pipe : scikit-learn estimator
        A certified model, or pipelines, column transformers, unions, target transforms and searches around one.

    Returns
    -------
    list of Finding
        In the order of the steps; empty where nothing was found.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> for finding in check_pipeline(make_pipeline(Normalizer(), StandardScaler(), Ridge())):
    ...     print(finding.step, "-", finding.estimator)
    standardscaler - StandardScaler
    ridge - Ridge
    """
    if not hasattr(pipe, "fit") or isinstance(pipe, type):
        raise ParameterTypeError(
            f"pipe={pipe!r} must be a scikit-learn estimator: a certified model, or a pipeline around one"
        )
    return list(_around(pipe, ""))


def learning_steps(estimator: object) -> list[Finding]:
    """The steps in front of a predictor, and around its target, that learn from its training rows.

    Empty where the predictor sees every row as the row alone decides, so that formulas for the predictor hold for the
    whole pipeline. Functions that cannot be looked into count as learning here: only numpy's ufuncs are known not to.
    The predictor itself is not asked.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
    >>> learning_steps(make_pipeline(PolynomialFeatures(), Ridge()))
    []
    """
    return list(_before(estimator, ""))


def is_row_local(transformer: object) -> bool:
    """Whether a transformer's output for a row depends on that row and its parameters alone.

    False where nothing is known: a transformer says so by the scikit-learn tag ``requires_fit=False`` or by being
    frozen, and a function, in whatever step it hides, by being one of numpy's ufuncs.

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> is_row_local(Normalizer()), is_row_local(StandardScaler()), is_row_local("passthrough")
    (True, False, True)
    """
    return not list(_within(transformer, "", trusting=False))


def _around(estimator: Any, path: str) -> Iterator[Finding]:  # noqa: ANN401  any scikit-learn estimator
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps[:-1]:
            yield from _within(step, _joined(path, name), trusting=True)
        for name, step in estimator.steps[-1:]:
            yield from _around(step, _joined(path, name))
    elif isinstance(estimator, TransformedTargetRegressor):
        yield from _within(estimator.transformer, _joined(path, "transformer"), trusting=True)
        regressor = LinearRegression() if estimator.regressor is None else estimator.regressor
        yield from _around(regressor, _joined(path, "regressor"))
    elif _is_search(estimator):
        yield _finding(estimator, path, _TUNES)
        yield from _around(estimator.estimator, _joined(path, "estimator"))
    elif not hasattr(estimator, "certify"):
        yield from (
            [_finding(estimator, path, _UNCERTIFIED)]
            if hasattr(estimator, "predict")
            else _within(estimator, path, trusting=True)
        )


def _before(estimator: Any, path: str) -> Iterator[Finding]:  # noqa: ANN401  any scikit-learn estimator
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps[:-1]:
            yield from _within(step, _joined(path, name), trusting=False)
        for name, step in estimator.steps[-1:]:
            yield from _before(step, _joined(path, name))
    elif isinstance(estimator, TransformedTargetRegressor):
        yield from _within(estimator.transformer, _joined(path, "transformer"), trusting=False)
        yield from _before(estimator.regressor, _joined(path, "regressor"))
    elif _is_search(estimator):
        yield _finding(estimator, path, "tunes on its training rows")


def _within(step: Any, path: str, *, trusting: bool) -> Iterator[Finding]:  # noqa: ANN401  any scikit-learn transformer
    # Exact types: what a subclass does with its steps is unknown.
    if type(step) is Pipeline:
        for name, inner in step.steps:
            yield from _within(inner, _joined(path, name), trusting=trusting)
    elif type(step) is FeatureUnion:
        for name, inner in step.transformer_list:
            yield from _within(inner, _joined(path, name), trusting=trusting)
    elif type(step) is ColumnTransformer:
        for name, inner, columns in step.transformers:
            if callable(columns) and inner != "drop":
                yield _finding(step, _joined(path, name), _SELECTS)
            yield from _within(inner, _joined(path, name), trusting=trusting)
        yield from _within(step.remainder, _joined(path, "remainder"), trusting=trusting)
    elif not _is_stateless(step):
        yield _finding(step, path, _LEARNS)
    elif not trusting and _is_opaque(step):
        yield _finding(step, path, _OPAQUE)


def _is_stateless(step: Any) -> bool:  # noqa: ANN401  any scikit-learn transformer
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return True
    # A frozen estimator was fitted before, on rows its owner answers for; nothing fitted here can change it.
    if isinstance(step, FrozenEstimator) or type(step) in _STATELESS:
        return True
    # Some predictors can predict before they are fitted, and still learn once they are.
    return hasattr(step, "transform") and not hasattr(step, "predict") and not _requires_fit(step)


def _is_opaque(step: Any) -> bool:  # noqa: ANN401  any scikit-learn transformer
    if isinstance(step, FrozenEstimator):
        # Sound because what was fitted before learns no more, but the functions inside it still see all rows.
        return type(step) is not FrozenEstimator or any(map(_is_opaque, _parts(step.estimator)))
    if not isinstance(step, FunctionTransformer):
        return any(kind.__name__ in _JOINT for kind in type(step).__mro__)
    if type(step) is not FunctionTransformer:  # a subclass may compute anything, and says nothing of its own
        return True
    # Sound because numpy's ufuncs work element by element; any other function may look at all rows at once, and so may
    # the generalised ones, which have a signature.
    element_wise = isinstance(step.func, np.ufunc) and step.func.signature is None
    return step.func is not None and (not element_wise or bool(step.kw_args))


def _parts(step: Any) -> Iterator[Any]:  # noqa: ANN401  any scikit-learn estimator
    """A step and all that its parameters name, the steps of pipelines, unions and column transformers included."""
    yield step
    if hasattr(step, "get_params"):
        yield from step.get_params(deep=True).values()


def _requires_fit(step: Any) -> bool:  # noqa: ANN401  any scikit-learn transformer
    try:
        return bool(step.__sklearn_tags__().requires_fit)
    except (AttributeError, TypeError):  # it does not say, so it may learn
        return True


def _is_search(estimator: object) -> bool:
    # Every search over parameters, in scikit-learn and around it, carries these three.
    return all(hasattr(estimator, name) for name in ("estimator", "cv", "refit"))


def _finding(step: object, path: str, why: str) -> Finding:
    kind = type(step).__name__
    return Finding(path or kind.lower(), kind, why)


def _joined(path: str, name: str) -> str:
    return f"{path}__{name}" if path else name
