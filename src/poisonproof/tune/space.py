"""What one setting can be, for the search and for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

__all__ = ["Choice", "Dimension", "Range", "Weights"]


@dataclass(frozen=True)
class Range:
    """Numbers to choose from, as evenly on a logarithmic scale as they can be.

    Parameters
    ----------
    low, high : float
        Both ends belong to it, and are above 0.
    start : float
        Where the search begins.
    kind : {"real", "whole", "odd"}
        What numbers they are.
    """

    low: float
    high: float
    start: float
    kind: Literal["real", "whole", "odd"] = "real"

    def ask(self, trial: Any, name: str) -> None:  # noqa: ANN401  optuna is not a dependency: its types have no names
        """Let the search choose."""
        if self.kind == "real":
            trial.suggest_float(name, self.low, self.high, log=True)
        else:
            trial.suggest_int(name, self.coded(self.low), self.coded(self.high), log=True)

    def coded(self, value: float) -> float:
        """What stands for a value in the search: odd numbers are counted."""
        return (int(value) + 1) // 2 if self.kind == "odd" else _plain(value)

    def value(self, code: float) -> float:
        """The value that this stands for."""
        return 2 * int(code) - 1 if self.kind == "odd" else code


@dataclass(frozen=True)
class Choice:
    """A few values to choose from; the search begins with the first.

    Parameters
    ----------
    values : tuple
        Numbers, texts, booleans or None.
    """

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(_plain(value) for value in self.values))

    @property
    def start(self) -> Any:  # noqa: ANN401  whatever the values are
        """Where the search begins."""
        return self.values[0]

    def ask(self, trial: Any, name: str) -> None:  # noqa: ANN401  optuna's
        """Let the search choose."""
        trial.suggest_categorical(name, self.values)

    def coded(self, value: Any) -> Any:  # noqa: ANN401  whatever the values are
        """What stands for a value in the search."""
        return value

    def value(self, code: Any) -> Any:  # noqa: ANN401  whatever the values are
        """The value that this stands for."""
        return code


@dataclass(frozen=True)
class Weights:
    """Weights of all features: 1, but for some that share a smaller one.

    Parameters
    ----------
    light : tuple of bool (n_features,)
        Which they are: those of categories, say, which at 1 drown the numbers.
    low, high, start : float
        The weight that they share.
    """

    light: tuple[bool, ...]
    low: float = 0.03
    high: float = 1.0
    start: float = 0.3

    def ask(self, trial: Any, name: str) -> None:  # noqa: ANN401  optuna's
        """Let the search choose."""
        trial.suggest_float(name, self.low, self.high, log=True)

    def coded(self, value: float) -> float:
        """What stands for a shared weight in the search."""
        return float(value)

    def value(self, code: float) -> list[float]:
        """The weight of each feature; the shared one with three digits, so that it can be read."""
        shared = float(f"{code:.3g}")
        return [shared if light else 1.0 for light in self.light]


Dimension = Range | Choice | Weights


def _plain(value: Any) -> Any:  # noqa: ANN401  whatever a dimension holds
    """The value as Python has it, because optuna's journal keeps no other."""
    return value.item() if isinstance(value, np.generic) else value
