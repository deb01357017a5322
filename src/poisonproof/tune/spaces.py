"""What is worth searching of each model, and what was searched in the literature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from poisonproof.datasets import sources
from poisonproof.errors import ParameterError
from poisonproof.tune.space import Choice, Range, Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poisonproof.tune.space import Dimension

__all__ = ["published_space", "usual_space"]

_WIDEST: Final = 64  # voters for each modification, beyond which more of them gain nothing


def usual_space(model: Any, *, radius: int, n_rows: int, light: Sequence[bool] = ()) -> dict[str, Dimension]:  # noqa: ANN401
    """What is worth searching of a model.

    Parameters
    ----------
    model : estimator
        A certified model.
    radius : int
        The radius that predictions should withstand.
    n_rows : int
        How many training rows there will be.
    light : sequence of bool (n_features,), optional
        Features whose common weight is searched, where the model takes weights.

    Examples
    --------
    >>> from poisonproof.neighbors import CertifiedNeighborsRegressor
    >>> usual_space(CertifiedNeighborsRegressor(), radius=10, n_rows=900)["n_neighbors"]
    Range(low=21, high=449, start=101, kind='odd')
    """
    own = model.get_params(deep=False)
    learner = own.get("estimator")
    space: dict[str, Dimension] = {name: _MODELS[name] for name in _MODELS if name in own}
    least = -(-(2 * radius + 1) // int(own.get("max_cost", 1)))
    for name, times in _VOTERS.items():
        if name in own:
            space[name] = _voters(least, times * radius, n_rows, radius)
    if learner is not None:
        searched = _LEARNERS.get(type(learner).__name__, {}) | _mixtures(learner, n_rows / space["n_partitions"].start)
        space |= {f"estimator__{name}": dimension for name, dimension in searched.items()}
    if any(light) and "weights" in own:
        space["weights"] = Weights(tuple(light))
    if any(light) and learner is not None and "weights" in learner.get_params():
        space["estimator__weights"] = Weights(tuple(light))
    return space


def published_space(model: Any, *, radius: int, n_rows: int) -> dict[str, Dimension]:  # noqa: ANN401
    """What Hammoudeh and Lowd (2023) searched of a model, and the numbers of submodels that they used.

    Only those numbers that can reach the radius, if there are any. Their neighbours are half of the rows. Settings that
    exact solvers do not have (tolerances, iterations, what ends boosting early) are left out.

    Examples
    --------
    >>> from poisonproof.neighbors import CertifiedNeighborsRegressor
    >>> published_space(CertifiedNeighborsRegressor(), radius=10, n_rows=900)
    {'n_neighbors': Choice(values=(451,))}
    """
    own = model.get_params(deep=False)
    if "n_neighbors" in own:
        return {"n_neighbors": Choice((2 * (n_rows // 4) + 1,))}
    learner = own.get("estimator", model)
    name = type(learner).__name__
    if "n_partitions" not in own or name not in _PUBLISHED:
        raise ParameterError(f"no ranges were published for {name}; use one of {', '.join(_PUBLISHED)}")
    counts = sorted({count for each in sources() for count in each.published.n_partitions if count <= n_rows})
    least = (2 * radius + 1) / int(own["max_cost"])
    able = [count for count in counts if count >= least] or counts[-1:] or [_odd_below(n_rows)]
    space: dict[str, Dimension] = {"n_partitions": Choice(tuple(able))}
    searched = _PUBLISHED[name] | _mixtures(learner, n_rows / able[0])
    return space | {f"estimator__{name}": dimension for name, dimension in searched.items()}


_MIXTURES_OF_A_ROW: Final = 8
_MIXTURES_OF_A_BLOCK: Final = 200
_VOTERS: Final = {"n_partitions": 6, "n_neighbors": 10}  # how many of them for each modification is a good start

_MODELS: Final[dict[str, Dimension]] = {
    "metric": Choice(("euclidean", "manhattan")),
    "radius": Range(0.01, 3, 0.3),
    "bandwidth": Range(0.01, 3, 0.3),
    "depth": Range(2, 20, 8, "whole"),
}

_FEW: Final[dict[str, Dimension]] = {"n_neighbors": Range(1, 9, 3, "odd")}
_SHALLOW: Final[dict[str, Dimension]] = {
    "max_depth": Range(1, 12, 4, "whole"),
    "min_samples_leaf": Range(1, 16, 2, "whole"),
}

_LEARNERS: Final[dict[str, dict[str, Dimension]]] = {
    "KernelRidge": {"alpha": Range(1e-4, 10, 0.03), "gamma": Range(0.01, 3, 0.3)},
    "Ridge": {"alpha": Range(1e-6, 1e3, 1)},
    "RidgeClassifier": {"alpha": Range(1e-6, 1e3, 1)},
    "HuberRegressor": {"alpha": Range(1e-6, 1, 1e-4), "epsilon": Range(1.05, 3, 1.35)},
    "LogisticRegression": {"C": Range(1e-3, 1e3, 1)},
    "GaussianNB": {"var_smoothing": Range(1e-12, 0.1, 1e-9)},
    "KNeighborsRegressor": _FEW,
    "KNeighborsClassifier": _FEW,
    "DecisionTreeRegressor": _SHALLOW,
    "DecisionTreeClassifier": _SHALLOW,
    "BoostedTreesRegressor": {
        "n_estimators": Range(20, 300, 100, "whole"),
        "max_depth": Range(1, 4, 2, "whole"),
        "learning_rate": Range(0.03, 1, 0.3),
        "reg_lambda": Range(0.01, 100, 1),
    },
}

_PUBLISHED: Final[dict[str, dict[str, Dimension]]] = {
    "Ridge": {"alpha": Range(1e-8, 1e4, 1)},
    "RidgeClassifier": {"alpha": Range(1e-8, 1e4, 1)},
    "BoostedTreesRegressor": {
        "n_estimators": Choice((50, 100, 250, 500, 1000)),
        "max_depth": Choice((1, 2, 3, 4)),
        "learning_rate": Choice((0.3, 0.01, 0.1, 1.0)),
        "reg_lambda": Range(1e-3, 1e5, 1),
        "min_split_loss": Choice((0.005, 0.01, 0.05, 0.1, 0.3, 0.5, 1.0)),
    },
}


def _voters(least: int, start: int, n_rows: int, radius: int) -> Range:
    """Odd numbers of voters: no fewer than the radius takes, no more than half of the rows."""
    low = _odd_below(min(least + 1 - least % 2, n_rows))
    high = max(low, _odd_below(min(_WIDEST * (radius + 1), n_rows // 2)))
    return Range(low, high, _odd_below(min(max(start + 1, low), high)), "odd")


def _mixtures(learner: Any, n_rows: float) -> dict[str, Dimension]:  # noqa: ANN401  any scikit-learn estimator
    """Whether to learn from mixtures of rows, for a learner that can: a few of each row in blocks of so many."""
    if "mixup" not in learner.get_params():
        return {}
    of_a_pair = min(_MIXTURES_OF_A_ROW * n_rows, _MIXTURES_OF_A_BLOCK) / (n_rows * max(n_rows - 1, 1) / 2)
    return {"mixup": Choice((0.0, float(f"{of_a_pair:.3g}")))}


def _odd_below(count: int) -> int:
    """The largest odd number that is no larger; 1 at least."""
    return max(1, count - 1 + count % 2)
