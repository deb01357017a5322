"""What there is to run: one cell for each data set, method, number of submodels and trial."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from poisonproof.datasets import source
from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["METHODS", "OURS", "OVERLAPPING", "Cell", "Formula", "Method", "Plan", "cells_of", "split_of"]

Method = Literal[
    "baseline",
    "PCR",
    "W-PCR",
    "OCR",
    "W-OCR",
    "kNN-CR",
    "ours low",
    "ours high",
    "ours low deleted",
    "ours high deleted",
]
Formula = Literal["proved", "paper"]

METHODS: Final[tuple[Method, ...]] = get_args(Method)
OURS: Final[tuple[Method, ...]] = ("ours low", "ours high", "ours low deleted", "ours high deleted")
OVERLAPPING: Final[tuple[Method, ...]] = ("OCR", "W-OCR")
_BLOCKS: Final[tuple[Method, ...]] = ("PCR", "W-PCR", "OCR", "W-OCR")
_WITH_THRESHOLDS: Final[tuple[Method, ...]] = ("W-OCR", "kNN-CR")
_SHARES: Final = (0.05, 0.10, 0.15, 0.20, 0.25)
_DISTANCES: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0)
_SEED: Final = 20_261_000  # splits that no setting was chosen on


@dataclass(frozen=True)
class Cell:
    """One model to be trained and certified once.

    Parameters
    ----------
    dataset : str
        The data set.
    method : str
        One of :data:`METHODS`.
    n_partitions : int
        Into how many parts the rows are cut; 1 where they are not.
    trial : int
        Which split into training and test rows.
    n_rows : int
        How many test rows are certified.
    thresholds : tuple of float
        Further distances from the target within which predictions count as right.
    formula : {"proved", "paper"}
        Whether radii of overlapping ensembles are the proved ones, or at unit cost the published ones, which can be
        one too high.
    synthetic_rows : int
        How many rows to make up in place of the real ones; 0 for real rows.
    """

    dataset: str
    method: Method
    n_partitions: int
    trial: int
    n_rows: int = 100
    thresholds: tuple[float, ...] = ()
    formula: Formula = "proved"
    synthetic_rows: int = 0

    @property
    def series(self) -> tuple[str, Method, int]:
        """What the cells of all trials have in common."""
        return self.dataset, self.method, self.n_partitions

    def __str__(self) -> str:
        submodels = f", {self.n_partitions:,} partitions" if self.method in _BLOCKS else ""
        return f"{self.dataset}: {self.method}{submodels}, trial {self.trial + 1}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self) | {"thresholds": list(self.thresholds)}


@dataclass(frozen=True)
class Plan:
    """What was asked for.

    Parameters
    ----------
    datasets : sequence of str
        Data sets.
    methods : sequence of str
        Methods of :data:`METHODS`.
    n_partitions : sequence of int or None
        Numbers of submodels; None: those of the paper for each data set.
    trials, n_rows : int
        How many splits, and how many test rows of each.
    overlap_trials : int or None
        How many splits the overlapping ensembles are run on, which take longest; None: all.
    thresholds : bool
        Whether other distances from the target are certified too.
    formula, synthetic_rows
        See :class:`Cell`; synthetic rows stand in for the weather alone.
    """

    datasets: Sequence[str]
    methods: Sequence[Method] = METHODS
    n_partitions: Sequence[int] | None = None
    trials: int = 10
    n_rows: int = 100
    overlap_trials: int | None = None
    thresholds: bool = True
    formula: Formula = "proved"
    synthetic_rows: int = 0

    def __post_init__(self) -> None:
        for name in self.datasets:
            source(name)
        if unknown := [method for method in self.methods if method not in METHODS]:
            raise ParameterError(f"there is no method {unknown[0]!r}; there are {', '.join(map(repr, METHODS))}")
        for name, least in (("trials", 1), ("n_rows", 1), ("synthetic_rows", 0)):
            if getattr(self, name) < least:
                raise ParameterError(f"{name}={getattr(self, name)} must be at least {least}")
        if even := [q for q in self.n_partitions or () if q < 1 or q % 2 == 0]:
            raise ParameterError(f"n_partitions={even[0]} must be odd and at least 1, so that a median exists")


def cells_of(plan: Plan) -> list[Cell]:
    """Every cell, a whole trial of everything before the next one.

    Examples
    --------
    >>> from pprint import pprint
    >>> pprint([str(cell) for cell in cells_of(Plan(["life"], ["kNN-CR", "PCR"], trials=1))])
    ['life: kNN-CR, trial 1',
     'life: PCR, 25 partitions, trial 1',
     'life: PCR, 101 partitions, trial 1',
     'life: PCR, 201 partitions, trial 1']
    """
    return [cell for trial in range(plan.trials) for name in plan.datasets for cell in _of_trial(plan, name, trial)]


def _of_trial(plan: Plan, name: str, trial: int) -> Iterator[Cell]:
    parts = source(name).published.n_partitions if plan.n_partitions is None else tuple(plan.n_partitions)
    for method in plan.methods:
        if method in OVERLAPPING and plan.overlap_trials is not None and trial >= plan.overlap_trials:
            continue
        if method in OURS and name == "weather":
            continue  # nothing was fixed on rows that are not at hand
        for n_partitions in parts if method in _BLOCKS else (1,):
            yield Cell(
                name,
                method,
                n_partitions,
                trial,
                plan.n_rows,
                _thresholds(plan, name, method, is_least=len(parts) > 2 and n_partitions == min(parts)),
                plan.formula if method == "OCR" else "proved",
                plan.synthetic_rows if name == "weather" else 0,
            )


def _thresholds(plan: Plan, name: str, method: Method, *, is_least: bool) -> tuple[float, ...]:
    """Other distances, as in the paper for neighbours and for the two largest numbers of weighed submodels."""
    wanted = source(name)
    if not plan.thresholds or method not in _WITH_THRESHOLDS or is_least or wanted.within == 0:
        return ()
    return tuple(each for each in (_SHARES if wanted.relative else _DISTANCES) if each != wanted.within)


def split_of(n_total: int, trial: int, n_rows: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Nine tenths of the rows to train on, and up to ``n_rows`` of the others to certify.

    Examples
    --------
    >>> train, test = split_of(1000, 0, 60)
    >>> len(train), len(test), len(np.intersect1d(train, test))
    (900, 60, 0)
    """
    shuffled = np.random.default_rng(_SEED + trial).permutation(n_total)
    held_out = max(1, n_total // 10)
    return np.sort(shuffled[held_out:]), shuffled[:held_out][:n_rows]
