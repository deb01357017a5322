"""Which number of neighbours (or radius, or depth) certifies most at a wanted radius, judged by trusted rows alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier

from poisonproof.errors import ParameterError
from poisonproof.holdout import HoldOut
from poisonproof.neighbors.remembered import check_neighbors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["Choice", "choose_parameter"]


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate that certified the most trusted rows, and how every candidate fared.

    Parameters
    ----------
    value : int or float
        The chosen candidate.
    candidates : array (n_candidates,)
        All of them.
    certified : float array (n_candidates,)
        Share of trusted rows certified at the wanted radius, for each candidate.
    """

    value: Any
    candidates: NDArray[Any]
    certified: NDArray[np.float64]


def choose_parameter(
    model: Any,  # noqa: ANN401  any certified estimator
    X: ArrayLike,
    y: ArrayLike,
    candidates: Sequence[float],
    *,
    radius: int,
    n_rows: int,
    parameter: str = "n_neighbors",
    within: float | None = None,
    relative: bool = True,
    n_folds: int = 5,
) -> Choice:
    """The candidate that certifies the most trusted rows at a wanted radius.

    Parameters
    ----------
    model : estimator
        A certified model with all its other parameters set; it is not fitted.
    X : array or frame (n_trusted, n_features)
        Rows that the attacker cannot touch.
    y : array (n_trusted,)
        Their targets or labels.
    candidates : sequence of numbers
        Values to try; of equally good ones the first is taken.
    radius : int
        The radius that predictions should withstand.
    n_rows : int
        Roughly how many training rows the final model will have. A declared number: not counted from rows that the
        attacker can insert.
    parameter : str, default="n_neighbors"
        The parameter to choose; "radius" or "depth" for models that have those.
    within, relative
        Regression: how far from its true target a prediction may be, as for ``certify``.
    n_folds : int, default=5
        Trusted rows are cut into so many folds; each is certified by a model of the others.

    Notes
    -----
    Certificates hold for a value that is fixed before the untrusted rows are seen: choosing it by models that were
    trained on them would let the attacker choose it. So trusted rows stand in for all rows, and what grows with their
    number (the wanted radius, and a number of neighbours) is scaled down with it. Models of at most
    ``n_rows / (2 * radius + 1)`` trusted rows are asked for radius 0: too few for the radius to have a say.

    Examples
    --------
    >>> from poisonproof.neighbors import CertifiedNeighborsRegressor
    >>> X = np.linspace(0, 1, 500).reshape(-1, 1)
    >>> choice = choose_parameter(
    ...     CertifiedNeighborsRegressor(), X, X[:, 0], [5, 51, 351], radius=20, n_rows=1000, within=0.1, relative=False)
    >>> choice.value
    51
    """
    if len(candidates) == 0:
        raise ParameterError("candidates is empty; give at least one value to try")
    distance = None if is_classifier(model) else within
    trusted = HoldOut.folded(X, y, radius=radius, n_rows=n_rows, within=distance, relative=relative, n_folds=n_folds)
    if parameter == "n_neighbors":
        # They are tried scaled down to few trusted rows, where an even number would pass for an odd one.
        for count in candidates:
            _check_candidate(count, n_rows)
    models = (clone(model).set_params(**{parameter: candidate}) for candidate in candidates)
    shares = np.array([np.mean(trusted.withstood(model) >= 1) for model in models])
    return Choice(candidates[int(np.argmax(shares))], np.asarray(candidates), shares)


def _check_candidate(count: Any, n_rows: int) -> None:  # noqa: ANN401  whatever the user gave
    check_neighbors(count)
    if count > n_rows:
        raise ParameterError(
            f"candidates contains n_neighbors={count}, but there will be n_rows={n_rows} rows; try fewer"
        )
