"""A forest whose splits are drawn without a look at the data, so that only the values in its leaves can be poisoned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from sklearn.base import RegressorMixin

from poisonproof.certificate import Certificate, Interval
from poisonproof.errors import ParameterError, ParameterTypeError
from poisonproof.median import median
from poisonproof.neighborhood import INSERT, MOVES, NEVER, Withstood
from poisonproof.neighbors.declared import check_budget, offset_in_training, offset_of, refuse_groups
from poisonproof.neighbors.weighing import bounds_by_window, check_finite
from poisonproof.partition import canonical, check_key, content_digests
from poisonproof.regions import descend, find_leaves, move_votes, vote, withstand
from poisonproof.settled import Settled
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from poisonproof.neighbors.declared import Offset
    from poisonproof.threat import Moves

__all__ = ["CertifiedForestRegressor"]

_DEEPEST: Final = 62  # the path to a leaf is a bit for each split, in one signed word
_MOST_TREES: Final = 10_000_000  # far more than anyone can wait for, and few enough to count
_WIDEST: Final = float(np.finfo(np.float64).max) / 4  # half the width of declared ranges, at most
_CHUNK_VOTES: Final = 1 << 20  # so that memory stays bounded


class Leaves(NamedTuple):
    """What the leaves of all trees hold, each tree's rows in the order of their leaf and then of their value.

    Parameters
    ----------
    codes : int64 array (n_trees, n_values)
        The leaf of each row, ascending.
    values : float64 array (n_trees, n_values)
        The values, ascending within a leaf.
    """

    codes: NDArray[np.int64]
    values: NDArray[np.float64]


class _Part(NamedTuple):
    """What was found for one chunk of rows."""

    prediction: NDArray[np.float64]
    radius: NDArray[np.int64]
    attack: NDArray[np.int64]
    unbreakable: NDArray[np.bool_]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class CertifiedForestRegressor(RegressorMixin, Settled):
    """The median of fully random trees, with a proof of how many poisoned rows each prediction withstands.

    Certifies the declared ``threat``: exactly for "insert" and "insert+delete", safely for "delete" and "relabel".

    Parameters
    ----------
    n_trees : int, default=31
        Odd, so that the median is the vote of a tree.
    depth : int, default=8
        Splits on the way to each leaf, at most 62.
    ranges : array (n_features, 2) or (2,), default=(0, 1)
        Declared ends of each feature (two numbers: of every feature), between which splits are drawn.
    weights : array (n_features,), optional
        How often each feature is split, relative to the others. None: equally often.
    key : int, default=0
        What the splits are drawn from.
    offset : callable, optional
        A function of one block of rows ``(n_rows, n_features) -> (n_rows,)`` whose values for a row depend on that
        row alone; leaves hold what it leaves of the target.
    empty_value : float, default=0
        Declared vote of an empty leaf (of what the offset leaves).
    threat : {"insert+delete", "delete", "insert", "relabel"}
        What the attacker may do.

    Attributes
    ----------
    leaves_ : Leaves
        What the leaves hold.
    threat_ : Threat
        What is certified.

    Notes
    -----
    A tree halves its region at a feature and a place that are hashed from the key and the path so far; the place lies
    within the declared ranges and the splits before it. A modification touches at most one leaf of each tree, so half
    of the trees must each be moved by themselves: the radius is the median of what the leaves withstand. A row
    inserted at the test row is in all its leaves at once, which makes this exact.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0, 1, 400).reshape(-1, 1)
    >>> model = CertifiedForestRegressor(n_trees=11, depth=3).fit(X, 2 * X[:, 0])
    >>> cert = model.certify([[0.5]], lower=0.6, upper=1.4)
    >>> bool(cert.radius[0] > 0)
    True
    """

    _read_with: ClassVar[tuple[str, ...]] = ("n_trees", "depth", "offset", "empty_value", "threat", "key")

    def __init__(
        self,
        n_trees: int = 31,
        depth: int = 8,
        *,
        ranges: ArrayLike = (0.0, 1.0),
        weights: ArrayLike | None = None,
        key: int = 0,
        offset: Offset | None = None,
        empty_value: float = 0.0,
        threat: Moves = "insert+delete",
    ) -> None:
        self.n_trees = n_trees
        self.depth = depth
        self.ranges = ranges
        self.weights = weights
        self.key = key
        self.offset = offset
        self.empty_value = empty_value
        self.threat = threat

    def fit(self, X: ArrayLike, y: ArrayLike, groups: None = None) -> Self:
        """Put the rows into the leaves.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Training rows; encode mixed tables with a declared :class:`poisonproof.Schema` first.
        y : array (n_rows,)
            Targets.
        groups : None
            Sources cannot be counted here; giving them is an error that says who can.
        """
        refuse_groups(groups, self)
        threat = self._checked_parameters()
        self._unsettle()
        rows, targets = self._checked_table(X, y, numeric=True)
        self._ends, self._shares = (
            _checked_ranges(self.ranges, rows.shape[1]),
            _checked_shares(self.weights, rows.shape[1]),
        )
        trees = np.arange(self.n_trees, dtype=np.float64)[:, None]
        self._roots = content_digests(trees, self.key)[:, 0].copy()
        values = targets - offset_in_training(self.offset, rows)
        by_value = np.argsort(values)
        codes = self._codes(rows[by_value])
        # Stable, so that values stay ascending within a leaf.
        order = np.argsort(codes, axis=1, kind="stable")
        self.leaves_ = Leaves(np.take_along_axis(codes, order, axis=1), values[by_value][order])
        self.threat_ = threat
        self._settle()
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The median vote on each row, ``(n_rows,)``."""
        return median(self.votes(X))

    def votes(self, X: ArrayLike) -> NDArray[np.float64]:
        """Every tree's vote on each row, ``(n_trees, n_rows)``."""
        rows = self._checked_rows(X)
        return self._votes(self._spans(rows), offset_of(self.offset, rows))

    def certify(
        self,
        X: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        within: float | None = None,
        relative: bool = True,
    ) -> Certificate:
        """How many modifications of the training data each prediction withstands.

        Parameters
        ----------
        X : array or frame (n_rows, n_features)
            Rows to predict.
        lower, upper : float or array (n_rows,), optional
            Bounds, both inclusive; leave one out for a one-sided certificate.
        within : float, optional
            Bounds around the prediction instead, at this distance.
        relative : bool, default=True
            Whether ``within`` is a share of the prediction's absolute value.
        """
        rows = self._checked_rows(X)
        bounds = bounds_by_window(len(rows), lower, upper, within, relative=relative)
        parts = []
        for window in self._windows(len(rows)):
            spans, offsets = self._spans(rows[window]), offset_of(self.offset, rows[window])
            prediction = median(self._votes(spans, offsets))
            low, high = bounds(prediction, window)
            parts.append(_Part(prediction, *self._radii(spans, offsets, low, high), low, high))
        prediction, radius, attack, unbreakable, low, high = map(np.concatenate, zip(*parts, strict=True))
        return Certificate(
            prediction=prediction,
            radius=radius,
            attack=attack,
            unbreakable=unbreakable,
            threat=self.threat_,
            method=self._method(),
            lower=low,
            upper=high,
        )

    def interval(self, X: ArrayLike, budget: int) -> Interval:
        """Where ``budget`` modifications of the training data can move each prediction.

        Both ends are reached where rows can be inserted; otherwise they may lie too far out.
        """
        spent = check_budget(budget)
        rows = self._checked_rows(X)
        # More modifications than there are rows move every leaf as far as it goes.
        capped = min(spent, self.leaves_.values.shape[1] + 1)
        parts = []
        for window in self._windows(len(rows)):
            spans, offsets = self._spans(rows[window]), offset_of(self.offset, rows[window])
            ends = np.empty((2, *spans[0].shape))
            move_votes(self.leaves_.values, *spans, capped, MOVES[self.threat_.moves], float(self.empty_value), ends)
            parts.append((median(ends[0]) + offsets, median(ends[1]) + offsets, median(self._votes(spans, offsets))))
        lower, upper, prediction = map(np.concatenate, zip(*parts, strict=True))
        return Interval(lower, upper, prediction, spent, self.threat_, self._method())

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn's type
        tags = super().__sklearn_tags__()
        # Splits that may not look at the data fit it only as well as the declared ranges do.
        tags.regressor_tags.poor_score = True
        return tags

    def _checked_parameters(self) -> Threat:
        for name in ("n_trees", "depth"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ParameterTypeError(f"{name}={value!r} must be an integer")
        if not 1 <= self.n_trees <= _MOST_TREES:
            raise ParameterError(f"n_trees={self.n_trees} must be from 1 to {_MOST_TREES:,}, and odd; use 31, say")
        if self.n_trees % 2 == 0:
            near = f"{self.n_trees - 1} or {self.n_trees + 1}"
            raise ParameterError(f"n_trees={self.n_trees} must be odd so that the median is a vote; use {near}")
        if not 0 <= self.depth <= _DEEPEST:
            raise ParameterError(f"depth={self.depth} must be from 0 to {_DEEPEST}")
        check_finite(self.empty_value, "empty_value")
        check_key(self.key)
        return Threat.of(self.threat)

    def _windows(self, n_rows: int) -> list[slice]:
        size = max(1, _CHUNK_VOTES // self.n_trees)
        return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]

    def _codes(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaf of each row in each tree, ``(n_trees, n_rows)``."""
        codes = np.empty((len(self._roots), len(rows)), dtype=np.int64)
        descend(rows, self._roots, self.depth, self._ends[:, 0].copy(), self._ends[:, 1].copy(), self._shares, codes)
        return codes

    def _spans(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the leaf of each row starts and stops among each tree's values, both ``(n_trees, n_rows)``."""
        codes = self._codes(rows)
        starts, stops = np.empty_like(codes), np.empty_like(codes)
        find_leaves(self.leaves_.codes, codes, starts, stops)
        return starts, stops

    def _votes(
        self, spans: tuple[NDArray[np.int64], NDArray[np.int64]], offsets: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        votes = np.empty(spans[0].shape)
        vote(self.leaves_.values, *spans, float(self.empty_value), votes)
        return votes + offsets

    def _radii(
        self,
        spans: tuple[NDArray[np.int64], NDArray[np.int64]],
        offsets: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Radius, attack, and where no attack succeeds."""
        n_units, move = self.leaves_.values.shape[1], MOVES[self.threat_.moves]
        held = np.empty((2, *spans[0].shape), dtype=np.int64)
        withstand(self.leaves_.values, *spans, offsets, lower, upper, move, float(self.empty_value), held)
        held.sort(axis=1)
        middle = held.shape[1] // 2
        radius, unbreakable = Withstood(held[1, middle], held[0, middle]).radius(n_units)
        if move == INSERT:
            return radius, radius + 1, unbreakable
        # Taking or turning values inside moves the leaves of one tree without helping those of another.
        attacks = np.full(held.shape[::2], n_units + 1)
        for side in range(2):
            open_rows = held[side, middle] != NEVER
            costs = (held[side, : middle + 1, open_rows] + 1).sum(axis=1)
            attacks[side, open_rows] = np.minimum(costs, n_units)
        return radius, attacks.min(axis=0), unbreakable

    def _method(self) -> str:
        return f"{self.n_trees} random trees, order statistic of their leaves"


def _checked_ranges(ranges: Any, n_features: int) -> NDArray[np.float64]:  # noqa: ANN401  whatever the user gave
    try:
        ends = canonical(ranges)
    except (TypeError, ValueError):
        raise ParameterTypeError(f"ranges must be an array of numbers; got {ranges!r}") from None
    if ends.shape not in ((2,), (n_features, 2)):
        raise ParameterError(
            f"ranges of shape {ends.shape} must be (2,) or {(n_features, 2)}, a lower and an upper end for each feature"
        )
    ends = np.broadcast_to(ends, (n_features, 2)).copy()
    # Halved, so that the width of the widest ranges is a number too.
    fits = np.isfinite(ends).all(axis=1) & (ends[:, 0] < ends[:, 1]) & (ends[:, 1] / 2 - ends[:, 0] / 2 < _WIDEST)
    if not fits.all():
        worst = int(np.argmin(fits))
        raise ParameterError(
            f"ranges[{worst}]={tuple(ends[worst].tolist())} must be finite, the lower end below the upper end"
        )
    return ends


def _checked_shares(weights: Any, n_features: int) -> NDArray[np.float64]:  # noqa: ANN401  as above
    """Up to which fraction of the draws each feature is split, ascending to 1."""
    try:
        shares = np.ones(n_features) if weights is None else canonical(weights)
    except (TypeError, ValueError):
        raise ParameterTypeError(f"weights must be an array of numbers; got {weights!r}") from None
    if shares.shape != (n_features,):
        raise ParameterError(f"weights of shape {shares.shape} must be {(n_features,)}, one for each feature")
    if not np.isfinite(shares).all() or np.any(shares < 0) or not 0 < shares.sum() < np.inf:
        raise ParameterError("weights must be finite, at least 0, and not all 0")
    return np.cumsum(shares) / np.sum(shares)
