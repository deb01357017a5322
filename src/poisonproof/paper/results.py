"""What the cells came to: certified accuracies over trials, beside the published ones."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from poisonproof.datasets import preset_for, published_accuracy, published_median, published_seconds
from poisonproof.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from poisonproof.paper.cells import Cell, Method

__all__ = ["Beaten", "Compared", "Medians", "Results", "Seconds", "Series"]

SCHEMA_VERSION: Final = 1
REPRODUCED: Final[tuple[Method, ...]] = ("PCR", "OCR", "W-PCR", "W-OCR", "kNN-CR")


@dataclass(frozen=True, eq=False)
class Series:
    """The outcomes of one method with one number of submodels on one data set, a trial each.

    Parameters
    ----------
    dataset, method, n_partitions
        What was run.
    trials : sequence of dict
        The outcomes.
    """

    dataset: str
    method: Method
    n_partitions: int
    trials: list[dict[str, Any]]

    @property
    def synthetic(self) -> bool:
        """Whether the rows were made up."""
        return any(trial["synthetic"] for trial in self.trials)

    @property
    def unsound(self) -> bool:
        """Whether the radii are those of the published formula, which can be one too high."""
        return any("NOT SOUND" in trial["certified_by"] for trial in self.trials)

    @property
    def threat(self) -> str:
        """What the attacker may do, or "none" where nothing is certified."""
        return str(self.trials[0]["threat"])

    @property
    def thresholds(self) -> list[str]:
        """Which distances from the target were certified: "usual", and others."""
        return list(self.trials[0]["radii"])

    def radii(self, threshold: str = "usual") -> list[NDArray[np.int64]]:
        """The radii of each trial."""
        return [np.array(trial["radii"][threshold]) for trial in self.trials]

    def accuracy(self, radius: int, threshold: str = "usual") -> tuple[float, float | None]:
        """Certified accuracy at a radius: mean over trials, and sample standard deviation where there are several."""
        shares = [float(np.mean(radii >= radius)) for radii in self.radii(threshold)]
        return float(np.mean(shares)), float(np.std(shares, ddof=1)) if len(shares) > 1 else None

    def mean_of(self, name: str) -> float:
        """The mean of one number over the trials."""
        return float(np.mean([trial[name] for trial in self.trials]))


class Compared(NamedTuple):
    """One figure of the paper and ours."""

    dataset: str
    n_partitions: int
    radius: int
    method: Method
    mean: float
    sd: float | None
    published: float
    published_sd: float
    threat: str

    @property
    def agrees(self) -> bool:
        """Whether ours lies within two published standard deviations, of half a point at least."""
        return abs(self.mean - self.published) <= 2 * max(self.published_sd, 0.005)

    @property
    def above(self) -> bool:
        """Whether ours certifies more."""
        return self.mean > self.published


class Beaten(NamedTuple):
    """The best published figure at one radius, and ours with settings of our own."""

    dataset: str
    n_partitions: int
    radius: int
    preset: str
    mean: float
    sd: float | None
    n_trials: int
    published: float
    published_method: str
    threat: str

    @property
    def gain(self) -> float:
        """By how much ours is better, as a share."""
        return self.mean - self.published


class Seconds(NamedTuple):
    """Processor seconds to train and weigh one ensemble, and those published."""

    dataset: str
    n_partitions: int
    method: Method
    seconds: float
    published: float


class Medians(NamedTuple):
    """How often median and mean of the votes are right, here and as published."""

    dataset: str
    n_partitions: int
    median: float
    mean: float
    published_median: float
    published_mean: float


class Results:
    """All outcomes of a run.

    Parameters
    ----------
    outcomes : iterable of (Cell, dict)
        What :func:`poisonproof.paper.run` gives.
    """

    def __init__(self, outcomes: Iterable[tuple[Cell, dict[str, Any]]] = ()) -> None:
        by_series: dict[tuple[str, Method, int], list[tuple[int, dict[str, Any]]]] = defaultdict(list)
        for cell, outcome in outcomes:
            by_series[cell.series].append((cell.trial, outcome))
        self.series = [
            Series(*name, [outcome for _, outcome in sorted(trials, key=lambda trial: trial[0])])
            for name, trials in sorted(by_series.items())
        ]

    @property
    def datasets(self) -> list[str]:
        """The data sets, in alphabetical order."""
        return sorted({series.dataset for series in self.series})

    def title_of(self, dataset: str) -> str:
        """The data set's name, with a word of warning where its rows were made up."""
        made_up = any(series.synthetic for series in self.series if series.dataset == dataset)
        return f"{dataset} (SYNTHETIC rows)" if made_up else dataset

    def method_of(self, dataset: str, method: str) -> str:
        """The method's name, with a word of warning where its radii can be too high."""
        unsound = any(series.unsound for series in self.series if (series.dataset, series.method) == (dataset, method))
        return f"{method} (NOT SOUND)" if unsound else method

    def find(self, dataset: str, method: Method, n_partitions: int = 1) -> Series | None:
        """The series of this name, if it was run."""
        named = (dataset, method, n_partitions)
        return next((each for each in self.series if (each.dataset, each.method, each.n_partitions) == named), None)

    def compared(self) -> list[Compared]:
        """Every published figure of what was run, with ours."""
        return [row for dataset in self.datasets for row in self._compared(dataset)]

    def _compared(self, dataset: str) -> Iterator[Compared]:
        for figure in published_accuracy(dataset):
            method: Any = figure.method
            if figure.n_partitions == 1:
                if method != "PCR":
                    continue  # a single model is the same whatever it is compared with
                method = "baseline"
            shared = 1 if method == "kNN-CR" else figure.n_partitions
            series = self.find(dataset, method, shared)
            if series is not None:
                mean, sd = series.accuracy(figure.radius)
                where = (dataset, figure.n_partitions, figure.radius)
                yield Compared(*where, method, mean, sd, figure.mean, figure.sd, series.threat)

    def beaten(self, *, deleted: bool = False) -> list[Beaten]:
        """The best published figure at every radius, with what our settings for that radius come to.

        Parameters
        ----------
        deleted : bool, default=False
            Whether ours hold for deletions only.
        """
        return [row for dataset in self.datasets for row in self._beaten(dataset, deleted=deleted)]

    def _beaten(self, dataset: str, *, deleted: bool) -> Iterator[Beaten]:
        figures = [each for each in published_accuracy(dataset) if each.n_partitions > 1]
        for n_partitions, radius in dict.fromkeys((each.n_partitions, each.radius) for each in figures):
            here = [each for each in figures if (each.n_partitions, each.radius) == (n_partitions, radius)]
            best = max(here, key=lambda figure: figure.mean)
            if dataset == "weather":
                continue  # there are no settings of our own for rows that are not at hand
            chosen = preset_for(dataset, radius, deleted=deleted).radii
            method: Any = f"ours {chosen}{' deleted' if deleted else ''}"
            series = self.find(dataset, method)
            if series is not None:
                found = (*series.accuracy(radius), len(series.trials))
                yield Beaten(dataset, n_partitions, radius, chosen, *found, best.mean, best.method, series.threat)

    def seconds(self) -> list[Seconds]:
        """How long training took, with weighing the submodels where that is part of it, and how long as published."""
        found = []
        for dataset in self.datasets:
            for figure in published_seconds(dataset):
                pairs: list[tuple[Method, float]] = [("PCR", figure.unit), ("W-PCR", figure.weighted)]
                for method, published in pairs:
                    series = self.find(dataset, method, figure.n_partitions)
                    if series is not None:
                        # Submodels that are left-one-out are trained while test rows are weighed, so both count.
                        spent = series.mean_of("fit_seconds") + series.mean_of("certify_seconds")
                        found.append(Seconds(dataset, figure.n_partitions, method, spent, published))
        return found

    def medians(self) -> list[Medians]:
        """Median and mean, here and as published."""
        found = []
        for dataset in self.datasets:
            for figure in published_median(dataset):
                series = self.find(dataset, "kNN-CR" if figure.n_partitions == 1 else "PCR", figure.n_partitions)
                if series is not None:
                    ours = (series.mean_of("median_right"), series.mean_of("mean_right"))
                    found.append(Medians(dataset, figure.n_partitions, *ours, figure.median, figure.mean))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; :meth:`read` takes them back."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "paper",
            "series": [vars(series) for series in self.series],
        }

    def to_json(self) -> str:
        """One JSON document, a line for each series."""
        lines = [json.dumps(vars(series), allow_nan=False, separators=(",", ":")) for series in self.series]
        joined = ",\n".join(lines)
        return f'{{"schema_version": {SCHEMA_VERSION}, "kind": "paper", "series": [\n{joined}\n]}}\n'

    @classmethod
    def read(cls, path: Path) -> Results:
        """The results in a file that :meth:`to_json` wrote."""
        try:
            document = json.loads(path.read_bytes())
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise FileError(f"{path} is no JSON document: {error}") from error
        known = isinstance(document, dict) and document.get("kind") == "paper"
        if not known or document.get("schema_version") != SCHEMA_VERSION:
            raise FileError(f"{path} holds no results that this version can read; run the evaluation again")
        results = cls()
        results.series = [Series(**series) for series in document["series"]]
        return results
