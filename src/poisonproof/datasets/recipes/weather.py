"""Weather: temperatures at weather stations by three forecasts. Every tenth row of the canonical training partition."""

from __future__ import annotations

import csv
import io
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.errors import DataError
from poisonproof.schema import Category, Numeric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["CLIMATES", "COLUMNS", "NUMBERS", "RANGES", "RECIPE", "WEATHER_CLASSES"]

CLIMATES: Final = ("tropical", "dry", "mild temperate", "snow", "polar")
WEATHER_CLASSES: Final = ("0", "10", "11", "12", "13", "20", "21", "22", "23")
_TARGET: Final = "fact_temperature"
# fmt: off
_NAMES: Final = """
fact_time fact_latitude fact_longitude fact_temperature fact_cwsm_class climate topography_bathymetry sun_elevation
climate_temperature climate_pressure cmc_0_0_0_1000 cmc_0_0_0_2_grad cmc_0_0_0_2_interpolated cmc_0_0_0_2_next
cmc_0_0_0_2 cmc_0_0_0_500 cmc_0_0_0_700 cmc_0_0_0_850 cmc_0_0_0_925 cmc_0_0_6_2 cmc_0_0_7_1000 cmc_0_0_7_2
cmc_0_0_7_500 cmc_0_0_7_700 cmc_0_0_7_850 cmc_0_0_7_925 cmc_0_1_0_0 cmc_0_1_11_0 cmc_0_1_65_0 cmc_0_1_66_0
cmc_0_1_67_0 cmc_0_1_68_0 cmc_0_1_7_0 cmc_0_2_2_10 cmc_0_2_2_1000 cmc_0_2_2_500 cmc_0_2_2_700 cmc_0_2_2_850
cmc_0_2_2_925 cmc_0_2_3_10 cmc_0_2_3_1000 cmc_0_2_3_500 cmc_0_2_3_700 cmc_0_2_3_850 cmc_0_2_3_925 cmc_0_3_0_0
cmc_0_3_0_0_next cmc_0_3_1_0 cmc_0_3_5_1000 cmc_0_3_5_500 cmc_0_3_5_700 cmc_0_3_5_850 cmc_0_3_5_925 cmc_0_6_1_0
cmc_available cmc_horizon_h cmc_precipitations cmc_timedelta_s gfs_2m_dewpoint gfs_a_vorticity gfs_available
gfs_cloudness gfs_clouds_sea gfs_horizon_h gfs_humidity gfs_precipitable_water gfs_precipitations gfs_pressure
gfs_r_velocity gfs_soil_temperature gfs_soil_temperature_available gfs_temperature_10000 gfs_temperature_15000
gfs_temperature_20000 gfs_temperature_25000 gfs_temperature_30000 gfs_temperature_35000 gfs_temperature_40000
gfs_temperature_45000 gfs_temperature_5000 gfs_temperature_50000 gfs_temperature_55000 gfs_temperature_60000
gfs_temperature_65000 gfs_temperature_7000 gfs_temperature_70000 gfs_temperature_75000 gfs_temperature_80000
gfs_temperature_85000 gfs_temperature_90000 gfs_temperature_92500 gfs_temperature_95000 gfs_temperature_97500
gfs_temperature_sea gfs_temperature_sea_grad gfs_temperature_sea_interpolated gfs_temperature_sea_next gfs_timedelta_s
gfs_total_clouds_cover_high gfs_total_clouds_cover_low gfs_total_clouds_cover_middle gfs_u_wind gfs_v_wind
gfs_wind_speed wrf_available wrf_t2 wrf_t2_next wrf_psfc wrf_rh2 wrf_wind_u wrf_wind_v wrf_rain wrf_snow wrf_graupel
wrf_hail wrf_t2_interpolated wrf_t2_grad cmc_0_1_65_0_grad cmc_0_1_65_0_next cmc_0_1_66_0_grad cmc_0_1_66_0_next
cmc_0_1_67_0_grad cmc_0_1_67_0_next cmc_0_1_68_0_grad cmc_0_1_68_0_next gfs_2m_dewpoint_grad gfs_2m_dewpoint_next
gfs_total_clouds_cover_low_grad gfs_total_clouds_cover_low_next
"""
COLUMNS: Final = tuple(_NAMES.split())
# The first beginning (and ending) that fits a column declares its ends and what stands for a missing value.
_FAMILIES: Final[tuple[tuple[str, str, float, float, float], ...]] = (
    ("fact_time", "", 1.535e9, 1.57e9, 1.55e9), ("fact_latitude", "", -90, 90, 0), ("fact_longitude", "", -180, 180, 0),
    ("topography_bathymetry", "", -3000, 5000, 0), ("sun_elevation", "", -90, 90, 0),
    ("climate_temperature", "", -60, 60, 15), ("climate_pressure", "", 400, 850, 750),
    ("cmc_0_1_6", "_grad", -100, 100, 0), ("gfs_2m_dewpoint", "_grad", -60, 60, 0),
    ("gfs_total_clouds", "_grad", -100, 100, 0), ("", "_grad", -30, 30, 0),
    ("cmc_0_0_7", "", 0, 40, 5), ("cmc_0_0_", "", 200, 330, 285), ("cmc_0_1_0_0", "", 0, 0.1, 0),
    ("cmc_0_1_11_0", "", 0, 15, 0), ("cmc_0_1_65_0", "", 0, 800, 0), ("cmc_0_1_66_0", "", 0, 150, 0),
    ("cmc_0_1_6", "", 0, 50, 0), ("cmc_0_1_7_0", "", 0, 0.1, 0), ("cmc_0_2_", "", -80, 80, 0),
    ("cmc_0_3_0_0", "", 50_000, 106_000, 100_000), ("cmc_0_3_1_0", "", 95_000, 107_000, 101_300),
    ("cmc_0_3_5_1000", "", -500, 500, 120), ("cmc_0_3_5_500", "", 4500, 6100, 5700),
    ("cmc_0_3_5_700", "", 2200, 3400, 3100), ("cmc_0_3_5_850", "", 900, 1800, 1500),
    ("cmc_0_3_5_925", "", 300, 1200, 780), ("cmc_0_6_1_0", "", 0, 110, 50), ("cmc_precipitations", "", 0, 40, 0),
    ("gfs_2m_dewpoint", "", -80, 35, 8), ("gfs_a_vorticity", "", -0.003, 0.003, 0), ("gfs_cloudness", "", 0, 3, 1),
    ("gfs_clouds_sea", "", 0, 0.001, 0), ("gfs_humidity", "", 0, 100, 65), ("gfs_precipitable_water", "", 0, 100, 20),
    ("gfs_precipitations", "", 0, 100, 0), ("gfs_pressure", "", 350, 810, 750), ("gfs_r_velocity", "", -10, 10, 0),
    ("gfs_soil_temperature_available", "", 0, 1, 0), ("gfs_soil_temperature", "", -60, 60, 14),
    ("gfs_temperature_sea", "", -60, 60, 15), ("gfs_temperature_", "", -100, 60, -20),
    ("gfs_total_clouds", "", 0, 100, 30), ("gfs_u_wind", "", -60, 60, 0), ("gfs_v_wind", "", -60, 60, 0),
    ("gfs_wind_speed", "", 0, 60, 4), ("wrf_t2", "", 200, 330, 285), ("wrf_psfc", "", 50_000, 106_000, 100_000),
    ("wrf_rh2", "", 0, 1, 0.6), ("wrf_wind", "", -60, 60, 0), ("wrf_", "_available", 0, 1, 0),
    ("wrf_rain", "", 0, 100, 0), ("wrf_", "", 0, 10, 0), ("", "_available", 0, 1, 0), ("", "_horizon_h", 0, 110, 12),
    ("", "_timedelta_s", 0, 7200, 0),
)
# fmt: on
NUMBERS: Final = tuple(name for name in COLUMNS if name not in (_TARGET, "fact_cwsm_class", "climate"))
_OFFSET: Final = "gfs_temperature_sea_interpolated"


class _Streamed(Recipe):
    """A recipe for a file that is too large to hold: lines that are not used are passed over unread."""

    def read(self, file: IO[bytes]) -> dict[str, NDArray[Any]]:
        """The columns of a file, numbers as numbers, the rows that are used."""
        lines: Iterator[str] = iter(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
        names = next(csv.reader(islice(lines, 1)), [])
        missing = [name for name in COLUMNS if name not in names]
        if missing:
            raise DataError(f"the file of {self.name} has no column {missing[0]!r}; get it again")
        taken = csv.reader(islice(lines, 0, None, self.source.every))
        is_number = [name not in ("climate", "fact_cwsm_class") for name in names]
        numbers, texts = [], []
        for place, row in enumerate(taken):
            if len(row) != len(names):
                raise DataError(
                    f"used row {place} of {self.name} has {len(row)} cells, but there are {len(names)} columns"
                )
            numbers.append(np.array([float(cell or "nan") for cell, yes in zip(row, is_number, strict=True) if yes]))
            texts.append([cell for cell, yes in zip(row, is_number, strict=True) if not yes])
        if not numbers:
            raise DataError(f"the file of {self.name} has no rows; get it again")
        table = np.stack(numbers)
        kept_numbers = [name for name, yes in zip(names, is_number, strict=True) if yes]
        kept_texts = [name for name, yes in zip(names, is_number, strict=True) if not yes]
        columns: dict[str, NDArray[Any]] = {name: table[:, place] for place, name in enumerate(kept_numbers)}
        for place, name in enumerate(kept_texts):
            columns[name] = np.array([cells[place] for cells in texts], dtype=object)
        return self.checked(columns)


def _derived(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Classes as whole numbers: the file writes 10 as 10.0."""
    classes = [cell.removesuffix(".0") for cell in columns["fact_cwsm_class"].tolist()]
    return columns | {"fact_cwsm_class": np.array(classes, dtype=object)}


def _encoding(*, scale: bool) -> Encoding:
    numbers = [Numeric(name, low, high, scale=scale, fill=fill) for name, (low, high, fill) in RANGES.items()]
    classes = (Category("climate", CLIMATES), Category("fact_cwsm_class", WEATHER_CLASSES))
    return Encoding((*numbers, *classes), offset=(_OFFSET, 1.0, 0.0) if scale else None)


def _fits(name: str, start: str, end: str) -> bool:
    return name.startswith(start) and name.endswith(end)


# Of each number: low end, high end, what stands for a missing value.
RANGES: Final = {
    name: next((low, high, fill) for start, end, low, high, fill in _FAMILIES if _fits(name, start, end))
    for name in NUMBERS
}
RECIPE: Final = _Streamed("weather", NUMBERS, _encoding(scale=False), _encoding(scale=True), derive=_derived)
