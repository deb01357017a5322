"""Austin: prices of single-family homes up to about 2.6 million dollars; which the paper took is not published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.schema import Category, Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.schema import Column

__all__ = ["RECIPE"]

_LEAST_PRICE, _MOST_PRICE = 81_000, 2_600_000
_RANGES: Final[dict[str, tuple[float, float]]] = {
    "latitude": (30.0, 30.6), "longitude": (-98.1, -97.5), "propertyTaxRate": (1.9, 2.3), "garageSpaces": (0, 25),
    "parkingSpaces": (0, 25), "yearBuilt": (1900, 2021), "numPriceChanges": (0, 25), "latest_salemonth": (1, 12),
    "latest_saleyear": (2018, 2021), "numOfPhotos": (0, 200), "numOfAccessibilityFeatures": (0, 10),
    "numOfAppliances": (0, 15), "numOfParkingFeatures": (0, 10), "numOfPatioAndPorchFeatures": (0, 10),
    "numOfSecurityFeatures": (0, 10), "numOfWaterfrontFeatures": (0, 5), "numOfWindowFeatures": (0, 5),
    "numOfCommunityFeatures": (0, 10), "lotSizeSqFt": (100, 1_000_000), "livingAreaSqFt": (300, 12_000),
    "numOfPrimarySchools": (0, 3), "numOfElementarySchools": (0, 3), "numOfMiddleSchools": (0, 4),
    "numOfHighSchools": (0, 3), "avgSchoolDistance": (0, 10), "avgSchoolRating": (1, 10), "avgSchoolSize": (200, 2000),
    "MedianStudentsPerTeacher": (8, 20), "numOfBathrooms": (0, 30), "numOfBedrooms": (0, 20), "numOfStories": (1, 5),
}  # fmt: skip
_FLAGS: Final = ("hasAssociation", "hasCooling", "hasGarage", "hasHeating", "hasSpa", "hasView")
_CITIES: Final = (
    "austin", "del valle", "driftwood", "dripping springs", "manchaca", "manor", "pflugerville", "road",
    "west lake hills",
)  # fmt: skip
_ZIP_CODES: Final = (
    "78610", "78613", "78617", "78619", "78620", "78645", "78652", "78653", "78660", "78664", "78669",
    *(str(code) for code in range(78701, 78706)), "78712", "78717", "78719",
    *(str(code) for code in range(78721, 78740)), "78741", "78742", *(str(code) for code in range(78744, 78755)),
    *(str(code) for code in range(78756, 78760)),
)  # fmt: skip
_SOURCES: Final = (
    "Agent Provided", "Broker Provided", "Realty Austin", "Public Record", "Compass RE Texas, LLC", "Central Texas MLS",
    "ABOR", "Keller Williams Realty", "Redfin Corporation", "Moreland Properties",
)  # fmt: skip
# Column, declared ends, weight.
_NUMBERS: Final[tuple[tuple[str, float, float, float], ...]] = (
    ("latitude", 30.13, 30.51, 2.5), ("longitude", -98.0, -97.58, 2.5), ("yearBuilt", 1915, 2020, 1.0),
    ("numOfBathrooms", 0, 7, 0.8), ("numOfBedrooms", 0, 7, 0.4), ("numOfStories", 1, 3, 0.3),
    ("garageSpaces", 0, 8, 0.3), ("avgSchoolRating", 2.3, 9.3, 1.0), ("MedianStudentsPerTeacher", 10, 18, 0.5),
    ("avgSchoolDistance", 0.3, 7.2, 0.3), ("avgSchoolSize", 400, 1900, 0.3), ("propertyTaxRate", 1.98, 2.21, 1.0),
    ("numOfPhotos", 1, 125, 0.3), ("numOfPatioAndPorchFeatures", 0, 5, 0.2), ("numOfWaterfrontFeatures", 0, 1, 0.3),
    ("numOfSecurityFeatures", 0, 4, 0.1), ("numOfAppliances", 0, 9, 0.1), ("numOfCommunityFeatures", 0, 1, 0.2),
    ("numOfWindowFeatures", 0, 3, 0.2), ("time of sale", 2018, 2021.1, 0.6), ("numPriceChanges", 1, 15, 0.1),
)  # fmt: skip
_LOGARITHMS: Final[tuple[tuple[str, float, float, float], ...]] = (
    ("livingAreaSqFt", 300, 12_000, 2.75),
    ("lotSizeSqFt", 800, 270_000, 1.0),
)
_CATEGORY_WEIGHTS: Final = {"city": 0.1, "zipcode": 0.3, "latestPriceSource": 0.03}


def _derived(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The time of the sale in years, and TRUE and FALSE as numbers."""
    flags = {
        name: np.array([cell.casefold() == "true" for cell in columns[name].tolist()], dtype=np.float64)
        for name in _FLAGS
    }
    numbers = {name: np.nan_to_num(columns[name], nan=0.0) for name in _RANGES}
    when = numbers["latest_saleyear"] + (numbers["latest_salemonth"] - 1) / 12
    return columns | numbers | flags | {"time of sale": when}


def _kept(columns: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    price = columns["latestPrice"]
    homes = np.array([kind == "Single Family" for kind in columns["homeType"].tolist()])
    return np.asarray(homes & (price >= _LEAST_PRICE) & (price <= _MOST_PRICE))


def _categories() -> list[Column]:
    return [Category("city", _CITIES), Category("zipcode", _ZIP_CODES), Category("latestPriceSource", _SOURCES)]


def _plain() -> Encoding:
    numbers = [Numeric(name, low, high, scale=False) for name, (low, high) in _RANGES.items()]
    return Encoding((*numbers, *(Numeric(name, 0, 1) for name in _FLAGS), *_categories()))


def _ours() -> Encoding:
    columns: list[Column] = [Numeric(name, low, high, "log") for name, low, high, _ in _LOGARITHMS]
    columns += [Numeric(name, low, high) for name, low, high, _ in _NUMBERS]
    columns += [Numeric(name, 0, 1) for name in _FLAGS]
    weights = {name: weight for name, _, _, weight in (*_LOGARITHMS, *_NUMBERS)}
    flags = dict.fromkeys(_FLAGS, 0.2)
    return Encoding(
        (*columns, *_categories()), weights | flags | _CATEGORY_WEIGHTS, offset=("livingAreaSqFt", 0.8, 0.0)
    )


RECIPE: Final = Recipe(
    "austin", tuple(_RANGES), _plain(), _ours(), derive=_derived, keep=_kept, groups=("homeType", *_FLAGS)
)
