"""Tables of text that look like the files of the data sets, so that recipes can be tested without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from poisonproof.schema import Category, Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.datasets.recipes import Recipe

    Columns = dict[str, NDArray[Any]]


def table_like(recipe: Recipe, n_rows: int, seed: int = 0) -> Columns:
    """Cells as text: numbers in and out of their ranges, categories declared and not, and here and there nothing."""
    random = np.random.default_rng(seed)
    columns: Columns = {}
    for column in recipe.plain.columns:
        if isinstance(column, Numeric) and column.name in recipe.numbers:
            width = column.high - column.low
            numbers = random.uniform(column.low - 0.1 * width, column.high + 0.1 * width, n_rows)
            columns[column.name] = np.array([f"{number:.6g}" for number in numbers], dtype=object)
        elif isinstance(column, Category):
            columns[column.name] = random.choice(np.array([*column.categories, "elsewhere"], dtype=object), n_rows)
    for name in recipe.numbers if recipe.name in ("ames", "life") else ():
        columns[name][random.random(n_rows) < 0.1] = random.choice(["", "NA"])
    for column in recipe.plain.columns[6:] if recipe.name == "diamonds" else ():  # every stone has a declared grade
        labels = [feature.removeprefix(f"{column.name}=") for feature in column.features]
        columns[column.name] = random.choice(np.array(labels, dtype=object), n_rows)
    for name in recipe.groups[1:] if recipe.name == "austin" else ():
        columns[name] = random.choice(np.array(["TRUE", "False"], dtype=object), n_rows)
    if recipe.name == "austin":
        columns["homeType"] = random.choice(np.array(["Single Family", "Condo"], dtype=object), n_rows)
    columns[recipe.source.target] = random.choice(np.array(_targets(recipe, random), dtype=object), n_rows)
    return columns


def _targets(recipe: Recipe, random: np.random.Generator) -> list[str]:
    if recipe.source.transform == "log":
        return [f"{price:.0f}" for price in random.uniform(60_000, 3e6, 100)]
    return {"spambase": ["0", "1"], "life": ["", "71.5", "50"], "weather": ["15.1", "-3.0"]}[recipe.name]


def csv_of(columns: Columns, *, header: bool = True) -> bytes:
    """The table as a CSV file."""
    rows = [list(columns)] if header else []
    rows += [list(row) for row in zip(*columns.values(), strict=True)]
    return "".join(",".join(f'"{cell}"' if "," in cell else cell for cell in row) + "\r\n" for row in rows).encode()
