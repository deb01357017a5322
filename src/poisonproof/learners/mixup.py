"""Mixtures of pairs of rows, decided pair by pair, so that deleting a row takes away its own mixtures and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numba
import numpy as np

from poisonproof.compiled import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Mixed", "mix"]

# Constants of the SplitMix64 generator (Steele, Lea and Flood, 2014).
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11))
_ONE: Final = 2.0**-53


class Mixed(NamedTuple):
    """Rows and their mixtures.

    Parameters
    ----------
    X : float64 array (n_rows + n_mixtures, n_features)
        The rows, then the mixtures, by pair.
    y : float64 array (n_rows + n_mixtures,)
        Their targets.
    parents : int64 array (n_mixtures, 2)
        The two rows of each mixture.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    parents: NDArray[np.int64]

    def without(self, gone: NDArray[np.int64]) -> NDArray[np.int64]:
        """What is missing once each set of rows is gone: the set and its mixtures, filled up by repeating a row."""
        n_rows = len(self.y) - len(self.parents)
        first, second = self.parents.T
        missing = [
            np.concatenate([rows, n_rows + np.flatnonzero(np.isin(first, rows) | np.isin(second, rows))])
            for rows in gone
        ]
        most = max(map(len, missing))
        return np.array([np.pad(each, (0, most - len(each)), mode="edge") for each in missing])


def mix(X: NDArray[np.float64], y: NDArray[np.float64], per_pair: float) -> Mixed:
    """Rows with mixtures of them: so many of each pair on average, in shares that are uniformly distributed.

    Parameters
    ----------
    X : float64 array (n_rows, n_features)
        The rows.
    y : float64 array (n_rows,)
        Their targets, mixed in the same share.
    per_pair : float
        How many mixtures of each pair: the whole number below or the one above.

    Notes
    -----
    Mixup as Zhang et al. (2018) propose it, with shares from the uniform distribution. Which pairs are mixed, and how,
    follows from the content of the two rows.

    Examples
    --------
    >>> X, y = np.array([[0.0, 7.0], [4.0, 7.0], [8.0, 7.0]]), np.array([0.0, 1.0, 2.0])
    >>> both, two = mix(X, y, 1.0), mix(X[:2], y[:2], 1.0)
    >>> both.parents.tolist(), bool(both.X[3, 0] == 4 * both.y[3]), both.X[3, 1]
    ([[0, 1], [0, 2], [1, 2]], True, np.float64(7.0))
    >>> np.array_equal(both.X[3], two.X[2])
    True
    """
    # Sound because a mixture depends on its two rows and the declared number alone: without a row, those of the others
    # are the same, in the same order.
    if per_pair == 0:
        return Mixed(X, y, np.empty((0, 2), dtype=np.int64))
    content = np.ascontiguousarray(np.column_stack([X, y])).view(np.uint64)
    parents, shares = _pairs(_keys(content), per_pair)
    return Mixed(np.concatenate([X, _mixtures(X, parents, shares)]),
                 np.concatenate([y, _mixtures(y[:, None], parents, shares)[:, 0]]), parents)  # fmt: skip


@numba.njit(inline="always")
def _scrambled(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> _SHIFTS[0])) * _FIRST
    word = (word ^ (word >> _SHIFTS[1])) * _SECOND
    return word ^ (word >> _SHIFTS[2])


@numba.njit(inline="always")
def _uniform(word: np.uint64) -> float:
    return np.float64(word >> _SHIFTS[3]) * _ONE


@njit
def _keys(content: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A word for the content of each row."""
    keys = np.empty(len(content), np.uint64)
    for i in range(len(content)):
        key = _GOLDEN
        for word in content[i]:
            key = _scrambled(key ^ word) + _GOLDEN
        keys[i] = key
    return keys


@njit
def _pairs(keys: NDArray[np.uint64], per_pair: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows of each mixture, and the share of the first of them."""
    n_mixtures = 0
    for i in range(len(keys)):
        for j in range(i + 1, len(keys)):
            n_mixtures += int(per_pair + _uniform(_scrambled(keys[i] + keys[j])))
    parents, shares = np.empty((n_mixtures, 2), np.int64), np.empty(n_mixtures)
    place = 0
    for i in range(len(keys)):
        for j in range(i + 1, len(keys)):
            word = _scrambled(keys[i] + keys[j])
            for _ in range(int(per_pair + _uniform(word))):
                word = _scrambled(word + _GOLDEN)
                parents[place, 0], parents[place, 1] = i, j
                # The same row has this share in whichever order the two come.
                shares[place] = _uniform(word) if keys[i] <= keys[j] else 1.0 - _uniform(word)
                place += 1
    return parents, shares


@njit
def _mixtures(X: NDArray[np.float64], parents: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    mixtures = np.empty((len(parents), X.shape[1]))
    for place in range(len(parents)):
        share = shares[place]
        for column in range(X.shape[1]):
            a, b = X[parents[place, 0], column], X[parents[place, 1], column]
            # What both agree in stays what it is to the bit, so that it is no new value to split at.
            mixtures[place, column] = a if a == b else share * a + (1.0 - share) * b
    return mixtures
