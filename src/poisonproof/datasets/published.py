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

__all__ = [
    "PublishedAccuracy",
    "PublishedMedian",
    "PublishedSeconds",
    "PublishedSetup",
    "published_accuracy",
    "published_median",
    "published_seconds",
    "published_settings",
    "published_setup",
]

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


@dataclass(frozen=True)
class PublishedSeconds:
    """How long the paper trained: all submodels once, and all leave-one-out submodels as well.

    Parameters
    ----------
    dataset, n_partitions
        Name of the data set, and how many submodels.
    unit, weighted : float
        Seconds on one core without and with leave-one-out submodels.
    """

    dataset: str
    n_partitions: int
    unit: float
    weighted: float


@dataclass(frozen=True)
class PublishedMedian:
    """The accuracy, as a share, of the median and of the mean of the votes.

    Parameters
    ----------
    dataset, n_partitions
        Name of the data set, and how many submodels; 1 for neighbours.
    median, median_sd, mean, mean_sd : float
        Mean and standard deviation over the paper's trials.
    """

    dataset: str
    n_partitions: int
    median: float
    median_sd: float
    mean: float
    mean_sd: float


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


def published_seconds(dataset: str) -> list[PublishedSeconds]:
    """How long the paper trained for a data set.

    Examples
    --------
    >>> [round(seconds.weighted / seconds.unit) for seconds in published_seconds("diamonds")]
    [460, 154, 71]
    """
    records = [
        PublishedSeconds(row["dataset"], int(row["q"]), float(row["pcr_total"]), float(row["wpcr_total"]))
        for row in _rows("training_seconds.csv")
    ]
    return _of("data set", dataset, [(record.dataset, record) for record in records])


def published_median(dataset: str) -> list[PublishedMedian]:
    """The accuracy of median and mean for a data set; none for classes.

    Examples
    --------
    >>> published_median("ames")[1].median, published_median("ames")[1].mean
    (0.838, 0.846)
    """
    shares = ("median_mean", "median_std", "mean_mean", "mean_std")
    return [
        PublishedMedian(row["dataset"], int(row["q"]), *(_share(row[name]) for name in shares))
        for row in _rows("median_vs_mean.csv")
        if row["dataset"] == dataset
    ]


def published_settings(dataset: str, n_partitions: int) -> dict[str, float]:
    """The settings of one submodel; those for the next larger number of submodels where none are printed.

    Examples
    --------
    >>> published_settings("diamonds", 151)["weight_decay"]
    0.0601
    >>> published_settings("life", 25)["trees"]
    250.0
    """
    learner = published_setup(dataset).submodel
    known = {
        int(row["q"]): {name: float(cell) for name, cell in row.items() if name not in {"dataset", "q", "metric"}}
        for row in _rows(f"hyperparameters_{learner}.csv")
        if row["dataset"] == dataset
    }
    return known[min((q for q in known if q >= n_partitions), default=max(known))]


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
