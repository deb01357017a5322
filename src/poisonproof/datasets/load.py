"""Data sets, from the checked file to prepared rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from poisonproof.datasets.fetch import data_file, opened
from poisonproof.datasets.registry import source

if TYPE_CHECKING:
    import os

    from poisonproof.datasets.recipes import Prepared, Recipe
    from poisonproof.datasets.recipes.recipe import EncodingName

__all__ = ["load_dataset", "recipe"]


def load_dataset(
    name: str, encoding: EncodingName = "plain", data_dir: str | os.PathLike[str] | None = None
) -> Prepared:
    """The rows of a data set as numbers, with targets and bounds on the scale that is certified.

    Parameters
    ----------
    name : {"ames", "austin", "diamonds", "weather", "life", "spambase"}
        The data set. Diamonds are part of the package; the others are read from the data folder.
    encoding : {"plain", "ours"}
        The literature's features, or declared ones that certify more.
    data_dir : path, optional
        The data folder. None: the one POISONPROOF_DATA names, else the user's cache.

    Examples
    --------
    >>> load_dataset("diamonds")
    <Prepared 'diamonds', plain encoding: 53,940 rows, 26 features>
    """
    wanted = recipe(name)
    wanted.encoding(encoding)  # a wrong name before a long read
    if wanted.source.bundled:
        from poisonproof.datasets.bundled import load_diamonds  # noqa: PLC0415  5 megabytes only where asked for

        return wanted.prepared(wanted.checked(dict(load_diamonds().columns)), encoding)
    with opened(data_file(name, data_dir)) as file:
        columns = wanted.read(file)
    return wanted.prepared(columns, encoding)


def recipe(name: str) -> Recipe:
    """How the rows of a data set become numbers."""
    found: Recipe = import_module(f"poisonproof.datasets.recipes.{source(name).name}").RECIPE
    return found
