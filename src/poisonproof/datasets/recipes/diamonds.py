"""Diamonds: prices by weight, size and grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.schema import Category, Numeric, Ordinal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.schema import Column

__all__ = ["RECIPE"]

# Wide enough for sizes with a misplaced decimal point, which the table has: nothing is clipped before it is learnt.
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "carat": (0.2, 5.1), "depth": (43, 79), "table": (43, 95), "x": (0, 11), "y": (0, 59), "z": (0, 32),
}  # fmt: skip
_GRADES: Final = {
    "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
    "color": ("J", "I", "H", "G", "F", "E", "D"),
    "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
}
_WEIGHTS: Final = {
    "carat": 2.7, "volume": 2.0, "depth": 0.3, "table": 0.3, "cut grade": 0.4, "color grade": 1.0, "clarity grade": 1.0,
} | dict.fromkeys(_GRADES, 0.1)  # fmt: skip


def _derived(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The volume of the box around a stone, and each grade a second time, for its order."""
    again = {f"{name} grade": columns[name] for name in _GRADES}
    return columns | again | {"volume": columns["x"] * columns["y"] * columns["z"]}


def _plain() -> Encoding:
    numbers = [Numeric(name, low, high, scale=False) for name, (low, high) in _RANGES.items()]
    return Encoding((*numbers, *(Category(name, grades) for name, grades in _GRADES.items())))


def _ours() -> Encoding:
    columns: list[Column] = [Numeric("carat", 0.2, 5, "log"), Numeric("volume", 37, 410, "log")]
    columns += [Numeric("depth", 56.5, 67.5), Numeric("table", 53, 66)]
    columns += [Ordinal(f"{name} grade", grades) for name, grades in _GRADES.items()]
    columns += [Category(name, grades) for name, grades in _GRADES.items()]
    return Encoding(tuple(columns), _WEIGHTS, offset=("carat", 5 / 3, 0.0))


RECIPE: Final = Recipe("diamonds", tuple(_RANGES), _plain(), _ours(), derive=_derived)
