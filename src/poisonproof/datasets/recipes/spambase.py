"""Spambase: mail that is spam or not, by frequencies of words and signs and by runs of capitals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RECIPE"]

_WORDS: Final = (
    "make", "address", "all", "3d", "our", "over", "remove", "internet", "order", "mail", "receive", "will", "people",
    "report", "addresses", "free", "business", "email", "you", "credit", "your", "font", "000", "money", "hp", "hpl",
    "george", "650", "lab", "labs", "telnet", "857", "data", "415", "85", "technology", "1999", "parts", "pm",
    "direct", "cs", "meeting", "original", "project", "re", "edu", "table", "conference",
)  # fmt: skip
_SIGNS: Final = (";", "(", "[", "!", "$", "#")
_FREQUENCIES: Final = (*(f"word_freq_{word}" for word in _WORDS), *(f"char_freq_{sign}" for sign in _SIGNS))
_RUNS: Final = {
    "capital_run_length_average": (100, 1200),
    "capital_run_length_longest": (1_000, 10_000),
    "capital_run_length_total": (10_000, 16_000),
}
# Highest percentages that count, in the order of the frequencies: one word is rarely a third of a mail.
_TOPS: Final = (
    5, 15, 6, 45, 10, 6, 8, 12, 6, 20, 3, 10, 6, 10, 5, 20, 8, 10, 20, 20, 12, 18, 6, 15, 21, 18, 35, 10, 15, 6, 15, 5,
    20, 5, 20, 8, 7, 10, 12, 5, 8, 15, 4, 20, 25, 25, 3, 10, 5, 10, 5, 35, 7, 20,
)  # fmt: skip


def _derived(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Ten times each frequency, and whether there is any."""
    tenfold = {f"10 {name}": 10 * columns[name] for name in _FREQUENCIES}
    return columns | tenfold | {f"any {name}": (columns[name] > 0).astype(np.float64) for name in _FREQUENCIES}


def _plain() -> Encoding:
    frequencies = [Numeric(name, 0, top, scale=False) for name, top in zip(_FREQUENCIES, _TOPS, strict=True)]
    return Encoding((*frequencies, *(Numeric(name, 1, top, scale=False) for name, (_, top) in _RUNS.items())))


def _ours() -> Encoding:
    columns = [Numeric(f"10 {name}", 0, 30, "log1p") for name in _FREQUENCIES]
    columns += [Numeric(f"any {name}", 0, 1) for name in _FREQUENCIES]
    columns += [Numeric(name, 1, top, "log") for name, (top, _) in _RUNS.items()]
    return Encoding(tuple(columns), {f"any {name}": 0.5 for name in _FREQUENCIES})


RECIPE: Final = Recipe(
    "spambase",
    (*_FREQUENCIES, *_RUNS),
    _plain(),
    _ours(),
    derive=_derived,
    header=(*_FREQUENCIES, *_RUNS, "spam"),
)
