"""What is searched, and what became of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from poisonproof.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from poisonproof.tune.space import Dimension

__all__ = ["Family", "Tried", "Tuned"]


@dataclass(frozen=True, eq=False)
class Family:
    """A model, and which of its parameters are searched.

    Parameters
    ----------
    model : estimator
        A certified model with all its other parameters set; it is neither fitted nor changed.
    space : mapping of str to Range, Choice or Weights
        By the parameters' names, as ``set_params`` takes them.
    """

    model: Any
    space: Mapping[str, Dimension]

    def build(self, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401  a model like this one
        """The model with these settings, not fitted."""
        return clone(self.model).set_params(**settings)


@dataclass(frozen=True)
class Tried:
    """What became of one trial.

    Parameters
    ----------
    family : str
        Which model.
    settings : dict
        The parameters that were tried.
    certified : float or None
        The share of trusted rows that withstand the wanted radius; None where the trial failed.
    withstood : float or None
        The share of the wanted radius that they withstand in the mean.
    seconds : float
        How long it took.
    reason : str or None
        Why it failed.
    """

    family: str
    settings: dict[str, Any]
    certified: float | None
    withstood: float | None
    seconds: float
    reason: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the settings could not be tried."""
        return self.certified is None

    @property
    def order(self) -> tuple[float, float]:
        """Better trials have a larger one."""
        return (-1.0, -1.0) if self.certified is None or self.withstood is None else (self.certified, self.withstood)


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found.

    Parameters
    ----------
    families : mapping of str to Family
        What was searched.
    trials : sequence of Tried
        All trials, in their order.
    """

    families: Mapping[str, Family]
    trials: Sequence[Tried]

    @property
    def ranked(self) -> list[Tried]:
        """The trials that did not fail, the best first, and the same settings only once."""
        found: dict[str, Tried] = {}
        for tried in sorted(self.trials, key=lambda each: each.order, reverse=True):
            if not tried.failed:
                found.setdefault(json.dumps([tried.family, tried.settings]), tried)
        return list(found.values())

    @property
    def failures(self) -> list[Tried]:
        """The trials that failed."""
        return [tried for tried in self.trials if tried.failed]

    @property
    def best(self) -> Tried:
        """The trial that certified most; of equally good ones that which withstands more in the mean."""
        if not self.trials:
            raise DataError("no trial was finished; give more time")
        if not self.ranked:
            raise DataError(f"all {len(self.trials)} trials failed; the first: {self.trials[0].reason}")
        return self.ranked[0]

    @property
    def model(self) -> Any:  # noqa: ANN401  one of the families' models
        """The model of the best trial, not fitted."""
        return self.families[self.best.family].build(self.best.settings)
