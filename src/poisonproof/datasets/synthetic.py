"""Made-up weather: rows of the real schema where the real rows are not at hand, for tests of scale and of loaders."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import ndtr

from poisonproof.datasets.fetch import data_folder
from poisonproof.datasets.recipes.weather import CLIMATES, NUMBERS, RANGES, RECIPE, WEATHER_CLASSES
from poisonproof.errors import FileError, ParameterError

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from numpy.typing import NDArray

    from poisonproof.datasets.recipes import Prepared
    from poisonproof.datasets.recipes.recipe import EncodingName

__all__ = ["synthetic_weather", "synthetic_weather_columns"]

_CHUNK: Final = 20_000
_SHARED: Final = 0.6  # part of the spread that all columns have in common where no correlations are known
_KNOWN_CLIMATES: Final = 3  # the training partition holds rows of the first ones only
_ERROR: Final = 2.0  # degrees by which forecasts miss


def synthetic_weather(
    n_rows: int, seed: int = 0, encoding: EncodingName = "plain", data_dir: str | os.PathLike[str] | None = None
) -> Prepared:
    """Prepared rows that look like the weather data and are none.

    Where the folder ``weather`` in the data folder holds statistics of the real columns, their marginals and
    correlations are used; otherwise simple ones. Name and representation say that the rows are synthetic.

    Examples
    --------
    >>> synthetic_weather(100, data_dir="nowhere")
    <Prepared 'synthetic weather', plain encoding: 100 rows, 140 features, SYNTHETIC rows>
    """
    return RECIPE.prepared(synthetic_weather_columns(n_rows, seed, data_dir), encoding, synthetic=True)


def synthetic_weather_columns(
    n_rows: int, seed: int = 0, data_dir: str | os.PathLike[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Columns of made-up weather, named and typed like those of the real file."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise ParameterError(f"n_rows={n_rows!r} must be a whole number of at least 1")
    random = np.random.default_rng(seed)
    quantiles, mixing = _statistics(data_folder(data_dir) / "weather")
    table = np.empty((n_rows, len(NUMBERS)))
    for start in range(0, n_rows, _CHUNK):
        rows = table[start : start + _CHUNK]
        levels = ndtr(random.standard_normal((len(rows), mixing.shape[0])) @ mixing)
        for place, values in enumerate(quantiles):
            rows[:, place] = np.interp(levels[:, place], np.linspace(0, 1, len(values)), values)
    columns: dict[str, NDArray[Any]] = {name: table[:, place] for place, name in enumerate(NUMBERS)}
    forecast = np.clip(columns["gfs_temperature_sea_interpolated"], -60, 60)
    columns["fact_temperature"] = np.round(forecast + _ERROR * random.standard_normal(n_rows), 1)
    columns["climate"] = random.choice(np.array(CLIMATES[:_KNOWN_CLIMATES], dtype=object), n_rows)
    columns["fact_cwsm_class"] = random.choice(np.array(WEATHER_CLASSES, dtype=object), n_rows)
    return columns


def _statistics(folder: Path) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Quantiles of each column, and the matrix that turns independent normal numbers into correlated ones."""
    marginals, ranks = folder / "shifts_weather_train_marginals.json", folder / "shifts_weather_train_rankcorr.npz"
    quantiles = {name: _around(*RANGES[name]) for name in NUMBERS}
    correlation = np.full((len(NUMBERS), len(NUMBERS)), _SHARED)
    np.fill_diagonal(correlation, 1.0)
    if marginals.is_file() and ranks.is_file():
        try:
            entries = json.loads(marginals.read_bytes())["features"]
            found = {entry["name"]: entry.get("bin_edges") or [entry["min"], entry["max"]] for entry in entries}
            with np.load(ranks, allow_pickle=False) as arrays:
                names, known = arrays["names"].tolist(), arrays["corr"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileError(f"the statistics in {folder} cannot be read ({error}); remove them to go without") from None
        quantiles |= {name: np.asarray(found[name], dtype=np.float64) for name in NUMBERS if name in found}
        places = [NUMBERS.index(name) for name in names]
        correlation = np.eye(len(NUMBERS))
        correlation[np.ix_(places, places)] = known
    values, vectors = np.linalg.eigh(correlation)
    mixing = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return [quantiles[name] for name in NUMBERS], mixing


def _around(low: float, high: float, usual: float) -> NDArray[np.float64]:
    """Quantiles that crowd around what is usual and thin out towards both ends."""
    steps = np.linspace(-1, 1, 65) ** 5
    return np.where(steps < 0, usual + steps * (usual - low), usual + steps * (high - usual))
