"""What ``fit`` can train: kinds of model and learners for each task, each an entry of a table."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "CLASS_ESTIMATORS",
    "CLASS_MODELS",
    "ESTIMATORS",
    "LAYOUTS",
    "MODELS",
    "OPTIONS",
    "ModelKind",
    "Task",
    "unfitted",
]

Task = Literal["regression", "classification"]
Entry = TypeVar("Entry")


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


# As poisonproof.layout has them, which a fast --help does not import.
LAYOUTS: Final = ("triples", "paired", "fano", "plane", "random")
_ENSEMBLE: Final = ("n_partitions", "spread", "layout", "empty_value")

MODELS: Final[dict[str, ModelKind]] = {
    "ensemble": ModelKind(
        "poisonproof.ensemble:CertifiedRegressor",
        takes=(*_ENSEMBLE, "threat", "max_cost", "partition_by", "key", "n_jobs"),
        defaults={"n_partitions": 151},
    ),
    "neighbors": ModelKind("poisonproof.neighbors:CertifiedNeighborsRegressor", takes=("threat", "key", "n_jobs")),
    "radius": ModelKind("poisonproof.neighbors:CertifiedRadiusRegressor", takes=("empty_value", "threat", "n_jobs")),
    "kernel": ModelKind("poisonproof.neighbors:CertifiedKernelRegressor", takes=("empty_value", "threat", "n_jobs")),
    "forest": ModelKind("poisonproof.forest:CertifiedForestRegressor", takes=("empty_value", "threat", "key")),
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


CLASS_MODELS: Final[dict[str, ModelKind]] = {
    "ensemble": ModelKind(
        "poisonproof.ensemble:CertifiedClassifier",
        takes=(*_ENSEMBLE, "threat", "max_cost", "partition_by", "key", "n_jobs", "classes", "rule"),
        defaults={"n_partitions": 151},
    ),
    "neighbors": ModelKind(
        "poisonproof.neighbors:CertifiedNeighborsClassifier", takes=("threat", "key", "n_jobs", "classes")
    ),
    "radius": ModelKind(
        "poisonproof.neighbors:CertifiedRadiusClassifier", takes=("empty_value", "threat", "n_jobs", "classes")
    ),
    "kernel": ModelKind(
        "poisonproof.neighbors:CertifiedKernelClassifier", takes=("empty_value", "threat", "n_jobs", "classes")
    ),
}

CLASS_ESTIMATORS: Final[dict[str, str]] = {
    "ridge": "sklearn.linear_model:RidgeClassifier",
    "logistic": "sklearn.linear_model:LogisticRegression",
    "naive-bayes": "sklearn.naive_bayes:GaussianNB",
    "knn": "sklearn.neighbors:KNeighborsClassifier",
    "tree": "sklearn.tree:DecisionTreeClassifier",
}


# A search tree is built by compiled code that trusts what stands in a file; without one there is nothing to trust.
_SETTINGS: Final[dict[str, dict[str, Any]]] = {"knn": {"algorithm": "brute"}}
# What the command calls the parameters of a model.
OPTIONS: Final = {
    "n_partitions": "--partitions",
    "spread": "--spread",
    "layout": "--layout",
    "empty_value": "--empty-value",
    "threat": "--threat",
    "max_cost": "--max-cost",
    "partition_by": "--partition-by",
    "key": "--key",
    "n_jobs": "--jobs",
    "classes": "--classes",
    "rule": "--rule",
}
_USUAL: Final = {"regression": "kernel-ridge", "classification": "ridge"}  # what the package's ensembles train


def unfitted(
    kind: str,
    given: Mapping[str, Any],
    estimator: str | None,
    settings: Iterable[str],
    task: Task = "regression",
) -> Any:  # noqa: ANN401  one of the package's estimators
    """An unfitted model.

    Parameters
    ----------
    kind : str
        A name in :data:`MODELS`, or in :data:`CLASS_MODELS` for classification.
    given : mapping
        Its parameters; one for which this kind has no use is an error.
    estimator : str or None
        A name in :data:`ESTIMATORS`, or in :data:`CLASS_ESTIMATORS`; None: the usual one, where there are
        submodels.
    settings : iterable of str
        Settings of the estimator, or of the model where it has no submodels, such as ``alpha=0.1``.
    task : {"regression", "classification"}
        What the model predicts.
    """
    models, learners = (MODELS, ESTIMATORS) if task == "regression" else (CLASS_MODELS, CLASS_ESTIMATORS)
    chosen = _entry(models, "--model", kind, task)
    if stray := next((name for name in given if name not in chosen.takes), None):
        others = "" if task == "regression" else " for classification"
        if task == "regression" and stray in ("classes", "rule"):
            raise ParameterError(f"{OPTIONS[stray]} is about classes; give --task classification too")
        known = ", ".join(OPTIONS.get(name, name) for name in chosen.takes)
        raise ParameterError(f"--model {kind}{others} has no use for {OPTIONS[stray]}; it takes {known}")
    model = _named(chosen.where)(**{**chosen.defaults, **given})
    if "estimator" in model.get_params(deep=False):
        name = estimator or _USUAL[task]
        learner = _named(_entry(learners, "--estimator", name, task))(**_SETTINGS.get(name, {}))
        return model.set_params(estimator=_configured(name, learner, settings))
    if estimator is not None:
        raise ParameterError(f"--model {kind} has no submodels; leave --estimator {estimator} out")
    return _configured(kind, model, settings)


def _entry(entries: Mapping[str, Entry], option: str, name: str, task: Task) -> Entry:
    if name not in entries:
        raise ParameterError(f"{option} {name} is not for {task}; use one of {', '.join(entries)}")
    return entries[name]


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
