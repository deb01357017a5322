"""The worst that can be done to a model in which every training row has a weight, and what it predicts afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FAR = 1e9


def weights_of(model: Any, row: NDArray[np.float64], X: NDArray[np.float64]) -> NDArray[np.int64]:
    weighing = model.weighing_
    weights: NDArray[np.int64] = weighing.weigh(weighing.encode(row), weighing.encode(X))[0].astype(np.int64)
    return weights


def worst_tables(  # noqa: PLR0917  a model, its table and an attack
    model: Any,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    row: NDArray[np.float64],
    spent: int,
    bounds: tuple[float, float],
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The training tables after the worst attack of ``spent`` modifications on either side."""
    weights = weights_of(model, row, X)
    offset = model.offset or (lambda rows: np.zeros(len(rows)))
    values, moved = y - offset(X), offset(row)[0]
    for sign, bound in ((1, bounds[1]), (-1, bounds[0])):
        inside = np.flatnonzero((sign * (values + moved) <= sign * bound) & (weights > 0))
        heaviest_first = inside[np.lexsort((sign * values[inside], -weights[inside]))]
        if model.threat == "delete":
            kept = np.setdiff1d(np.arange(len(X)), heaviest_first[:spent])
            yield X[kept], y[kept]
        elif model.threat == "relabel":
            turned = y.copy()
            turned[heaviest_first[:spent]] = sign * FAR
            yield X, turned
        else:
            yield np.concatenate([X, np.repeat(row, spent, axis=0)]), np.append(y, [sign * FAR] * spent)


def prediction_after(model: Any, attacked: tuple[Any, Any], row: NDArray[np.float64]) -> float:
    if len(attacked[1]) == 0:
        offset = model.offset or (lambda rows: np.zeros(len(rows)))
        return float(model.empty_value + offset(row)[0])
    return float(clone(model).fit(*attacked).predict(row)[0])


def worst_labellings(  # noqa: PLR0917  a model, its table and an attack
    model: Any, X: NDArray[Any], y: NDArray[Any], row: NDArray[Any], spent: int, rivals: list[int], target: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    weights = weights_of(model, row, X)
    for rival in rivals:
        if model.threat == "delete":
            gains = weights * (y == target)
        else:
            gains = weights * np.where(y == target, 2, np.where(y == rival, 0, 1))
        chosen = np.lexsort((-gains,))[:spent]
        if model.threat == "delete":
            kept = np.setdiff1d(np.arange(len(X)), chosen[gains[chosen] > 0])
            yield X[kept], y[kept]
        elif model.threat == "relabel":
            turned = y.copy()
            turned[chosen] = rival
            yield X, turned
        else:
            yield np.concatenate([X, np.repeat(row, spent, axis=0)]), np.append(y, [rival] * spent)
    if model.threat == "insert+delete" and spent >= np.count_nonzero(weights):
        yield X[weights == 0], y[weights == 0]


def class_after(model: Any, attacked: tuple[Any, Any], row: NDArray[np.float64]) -> int:
    if len(attacked[1]) == 0:
        return int(model.empty_class_)
    return int(clone(model).fit(*attacked).predict(row)[0])
