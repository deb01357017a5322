"""What ``fit`` can train: kinds of model and learners, each an entry of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["ESTIMATORS", "MODELS", "ModelKind", "unfitted"]


@dataclass(frozen=True)
class ModelKind:
    """A kind of model.

    Parameters
    ----------
    where : str
        ``module:class``, imported when it is asked for.
    takes : tuple of str
        The parameters for which ``fit`` has options; all others can be given with ``--set`` unless the kind has
        submodels, whose settings those are.
    defaults : mapping
        Parameters that differ from the class's own defaults.
    """

    where: str
    takes: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)


MODELS: Final[dict[str, ModelKind]] = {
    "ensemble": ModelKind(
        "poisonproof.ensemble:CertifiedRegressor",
        takes=("n_partitions", "threat", "max_cost", "partition_by", "key", "n_jobs"),
        defaults={"n_partitions": 151},
    ),
    "neighbors": ModelKind("poisonproof.neighbors:CertifiedNeighborsRegressor", takes=("threat", "key", "n_jobs")),
    "radius": ModelKind("poisonproof.neighbors:CertifiedRadiusRegressor", takes=("threat", "n_jobs")),
    "kernel": ModelKind("poisonproof.neighbors:CertifiedKernelRegressor", takes=("threat", "n_jobs")),
    "forest": ModelKind("poisonproof.forest:CertifiedForestRegressor", takes=("threat", "key")),
}

ESTIMATORS: Final[dict[str, str]] = {
    "ridge": "sklearn.linear_model:Ridge",
    "linear": "sklearn.linear_model:LinearRegression",
    "huber": "sklearn.linear_model:HuberRegressor",
    "knn": "sklearn.neighbors:KNeighborsRegressor",
    "tree": "sklearn.tree:DecisionTreeRegressor",
    "kernel-ridge": "poisonproof.learners:KernelRidge",
    "boosted-trees": "poisonproof.learners:BoostedTreesRegressor",
}


def unfitted(kind: str, given: Mapping[str, Any], estimator: str | None, settings: Iterable[str]) -> Any:  # noqa: ANN401
    """An unfitted model.

    Parameters
    ----------
    kind : str
        A name in :data:`MODELS`.
    given : mapping
        Its parameters; one for which this kind has no use is an error.
    estimator : str or None
        A name in :data:`ESTIMATORS`; None: ridge, where there are submodels.
    settings : iterable of str
        Settings of the estimator, or of the model where it has no submodels, such as ``alpha=0.1``.
    """
    chosen = MODELS[kind]
    if stray := next((name for name in given if name not in chosen.takes), None):
        raise ParameterError(f"--model {kind} has no parameter {stray!r}; it takes {', '.join(chosen.takes)}")
    model = _named(chosen.where)(**{**chosen.defaults, **given})
    if "estimator" in model.get_params(deep=False):
        name = estimator or "ridge"
        return model.set_params(estimator=_configured(name, _named(ESTIMATORS[name])(), settings))
    if estimator is not None:
        raise ParameterError(f"--model {kind} has no submodels; leave --estimator {estimator} out")
    return _configured(kind, model, settings)


def _configured(name: str, estimator: Any, settings: Iterable[str]) -> Any:  # noqa: ANN401  any scikit-learn estimator
    known = estimator.get_params()
    for setting in settings:
        parameter, separator, text = setting.partition("=")
        if not separator:
            raise ParameterError(f"--set {setting} must have the form NAME=VALUE, as in --set alpha=0.1")
        if parameter not in known:
            raise ParameterError(f"--set {setting}: {name} has no setting {parameter!r}; it has {', '.join(known)}")
        estimator.set_params(**{parameter: _value(text)})
    return estimator


def _named(where: str) -> Any:  # noqa: ANN401  a class
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def _value(text: str) -> Any:  # noqa: ANN401  whatever a parameter may be
    """A number, a list, true, false or null as JSON writes them; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
