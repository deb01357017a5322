"""Certified accuracies as the literature reports them.

The figures are those of Z. Hammoudeh and D. Lowd, "Reducing Certified Regression to Certified Classification for
General Poisoning Attacks", IEEE Conference on Secure and Trustworthy Machine Learning (SaTML), 2023.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PublishedAccuracy", "PublishedSetup", "published_accuracy", "published_setup"]

Record = TypeVar("Record")


@dataclass(frozen=True)
class PublishedAccuracy:
    """One published figure.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    n_partitions : int
        How many submodels; 1 is a single model that certifies nothing.
    radius : int
        The number of modifications withstood.
    method : str
        The paper's name of the method.
    mean, sd : float
        Mean and standard deviation of the certified accuracy over the paper's trials, as shares.
    """

    dataset: str
    n_partitions: int
    radius: int
    method: str
    mean: float
    sd: float


@dataclass(frozen=True)
class PublishedSetup:
    """How the paper ran its experiments on one data set.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    n_train : str
        How many training rows, as rounded there.
    n_features : int
        How many features after encoding.
    spread : int
        How many submodels share a block where blocks overlap.
    error_threshold : str
        How far a prediction may be off.
    submodel : str
        The learner.
    n_partitions : tuple of int
        The numbers of submodels.
    baseline_mean, baseline_sd : float
        Accuracy of a single uncertified model, as shares.
    """

    dataset: str
    n_train: str
    n_features: int
    spread: int
    error_threshold: str
    submodel: str
    n_partitions: tuple[int, ...]
    baseline_mean: float
    baseline_sd: float


def published_accuracy(
    dataset: str, method: str | None = None, n_partitions: int | None = None
) -> list[PublishedAccuracy]:
    """The published certified accuracies of a data set, of one method and one number of submodels if asked.

    Examples
    --------
    >>> for figure in published_accuracy("diamonds", "PCR", 151)[:3]:
    ...     print(figure.radius, figure.mean)
    1 0.746
    35 0.644
    70 0.386
    """
    found = _of("data set", dataset, [(figure.dataset, figure) for figure in _accuracies()])
    if method is not None:
        found = _of("method", method, [(figure.method, figure) for figure in found])
    if n_partitions is not None:
        found = _of("n_partitions", n_partitions, [(figure.n_partitions, figure) for figure in found])
    return found


def published_setup(dataset: str) -> PublishedSetup:
    """How the paper ran its experiments on a data set.

    Examples
    --------
    >>> published_setup("diamonds").n_partitions
    (151, 501, 1001)
    """
    return _of("data set", dataset, [(setup.dataset, setup) for setup in _setups()])[0]


def _of(what: str, name: str | int, records: Sequence[tuple[str | int, Record]]) -> list[Record]:
    found = [record for known, record in records if known == name]
    if not found:
        known = ", ".join(map(repr, dict(records)))
        raise ParameterError(f"no figures are published for {what} {name!r}; there are {known}")
    return found


@cache
def _accuracies() -> tuple[PublishedAccuracy, ...]:
    return tuple(
        PublishedAccuracy(
            dataset=row["dataset"],
            n_partitions=int(row["q"]),
            radius=int(row["robustness"]),
            method=row["method"],
            mean=_share(row["certified_accuracy_mean_pct"]),
            sd=_share(row["certified_accuracy_std_pct"]),
        )
        for row in _rows("certified_accuracy.csv")
    )


@cache
def _setups() -> tuple[PublishedSetup, ...]:
    return tuple(
        PublishedSetup(
            dataset=row["dataset"],
            n_train=row["n_train"],
            n_features=int(row["dimensions"]),
            spread=int(row["spread_degree"]),
            error_threshold=row["error_threshold"],
            submodel=row["submodel"],
            n_partitions=tuple(map(int, row["q_values"].split(";"))),
            baseline_mean=_share(row["baseline_accuracy_mean_pct"]),
            baseline_sd=_share(row["baseline_accuracy_std_pct"]),
        )
        for row in _rows("datasets.csv")
    )


def _rows(name: str) -> list[dict[str, str]]:
    text = files("poisonproof.datasets").joinpath("hammoudeh2023", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _share(percent: str) -> float:
    return round(float(percent) / 100, 6)  # 64.4 % is 0.644, not 0.6440000000000001
