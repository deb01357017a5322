"""Tables with everything about them declared: which columns, which constants, which weights. No row has a say."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from poisonproof.datasets import load_diamonds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["HOME", "PLAIN", "PREPARED", "Declared"]

HOME: Final = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[2] / "shared" / "data"))

Column = tuple["NDArray[np.float64]", float, float, float]


@dataclass(frozen=True, eq=False)
class Declared:
    """Rows, the target and how far from it a prediction may be, and the declared ends and weight of each feature."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    ranges: NDArray[np.float64]
    weights: NDArray[np.float64]


def ames_plain() -> Declared:
    """Numbers in their units, and one feature for each category."""
    frame, price = _ames()
    areas = frame["1st Flr SF"] + frame["2nd Flr SF"]
    baths = frame["Full Bath"] + 0.5 * frame["Half Bath"]
    made = [_column(areas, 330, 5700), _column(baths, 0, 5), _column(frame["Yr Sold"] - frame["Year Built"], 0, 140)]
    numbers = [_column(frame[name], *ends) for name, ends in AMES_RANGES.items()]
    return _declared([*made, *numbers, *_categories(frame, dict.fromkeys(_texts(frame), 1.0))], *_prices(price))


def ames_prepared() -> Declared:
    """Logarithms of areas first, ordinal grades, and light categories."""
    frame, price = _ames()
    total = frame["Total Bsmt SF"] + frame["1st Flr SF"] + frame["2nd Flr SF"]
    baths = frame["Full Bath"] + frame["Bsmt Full Bath"] + 0.5 * (frame["Half Bath"] + frame["Bsmt Half Bath"])
    age = (frame["Yr Sold"] - frame["Year Built"]).clip(0, 130)
    renewed = (frame["Yr Sold"] - frame["Year Remod/Add"]).clip(0, 60)
    made = [
        _column(np.log(total), np.log(700), np.log(5700), 2),
        _column(np.log(frame["Gr Liv Area"]), np.log(500), np.log(3700), 2),
        _column(np.log1p(age), 0, np.log1p(130)),
        _column(age, 0, 130, 0.5),
        _column(np.log1p(renewed), 0, np.log1p(60), 0.6),
        _column(np.log(frame["Lot Area"]), np.log(1500), np.log(60_000), 0.7),
        _column(baths, 1, 5, 0.8),
        _column((frame["Central Air"] == "Y").astype(float), 0, 1, 0.4),
    ]
    grades = {"Ex": 5, "Gd": 4, "TA": 3, "Fa": 2, "Po": 1, "NA": 0}
    made += [_column(frame[name].map(grades).fillna(0), 0, 5, weight) for name, weight in AMES_GRADES.items()]
    made += [_column(frame[name], low, high, weight) for name, (low, high, weight) in AMES_NUMBERS.items()]
    light = {name: AMES_CATEGORIES.get(name, 0.03) for name in _texts(frame)}
    return _declared([*made, *_categories(frame, light)], *_prices(price))


def diamonds_plain() -> Declared:
    """Numbers in their units, and one feature for each grade."""
    data = load_diamonds()
    ends = {"carat": (0.2, 5.1), "depth": (43, 79), "table": (43, 95), "x": (0, 11), "y": (0, 59), "z": (0, 32)}
    numbers = [_column(data.columns[name], *pair) for name, pair in ends.items()]
    grades = [
        _column(data.columns[name] == grade, 0, 1) for name, grades in data.categories.items() for grade in grades
    ]
    return _declared([*numbers, *grades], *_prices(data.y))


def diamonds_prepared() -> Declared:
    """The logarithm of the carats first, volume, and ordinal grades."""
    data = load_diamonds()
    table = data.columns
    volume = np.clip(table["x"] * table["y"] * table["z"], 30, 900)
    made = [
        _column(np.log(table["carat"]), np.log(0.23), np.log(2.5), 1),
        _column(np.log(volume), np.log(37), np.log(410), 1),
        _column(table["depth"], 56.5, 67.5, 0.3),
        _column(table["table"], 53, 66, 0.3),
    ]
    for name, ordinal in (("cut", 0.4), ("color", 1.0), ("clarity", 1.0)):
        order = list(data.categories[name])
        made.append(_column([order.index(grade) for grade in table[name]], 0, len(order) - 1, ordinal))
        made += [_column(table[name] == grade, 0, 1, 0.1) for grade in order]
    return _declared(made, *_prices(data.y))


def life_plain() -> Declared:
    """Numbers in their units, what is missing in the middle, and one feature for each country."""
    frame, years = _life()
    numbers = [_column(frame[name], *ends) for name, ends in LIFE_RANGES.items()]
    countries = _categories(frame, {"Country": 1.0, "Status": 1.0})
    return _declared([*numbers, *countries], years, years - 3, years + 3)


def life_prepared() -> Declared:
    """Another country is 1 away; years and what is known of a country count for less."""
    frame, years = _life()
    made = [_column(frame["Year"], 2000, 2015, 0.1)]
    for name, logarithm, low, high, weight in LIFE_NUMBERS:
        values = frame[name].replace(0, np.nan) if name in ("Schooling", LIFE_INCOME) else frame[name]
        offset = 0.0 if low > 0 else 1.0
        if logarithm:
            values, low, high = np.log(values + offset), np.log(low + offset), np.log(high + offset)  # noqa: PLW2901  same column
        made.append(_column(values, low, high, weight / 2))
    made.append(_column(frame[LIFE_INCOME].replace(0, np.nan).isna().astype(float), 0, 1, 0.25))
    return _declared([*made, *_categories(frame, {"Country": 0.5})], years, years - 3, years + 3)


def spambase_plain() -> Declared:
    """Frequencies and run lengths as they are; labels of -1 and 1, whose sign must be kept."""
    values, sign = _spambase()
    return _declared([_column(values[:, place], 0, top) for place, top in enumerate(SPAM_TOPS)], *_signs(sign))


def spambase_prepared() -> Declared:
    """Logarithms of frequencies and whether there is any; logarithms of run lengths."""
    values, sign = _spambase()
    made = []
    for place in range(54):
        made.append(_column(np.log1p(10 * values[:, place]), 0, np.log1p(30)))
        made.append(_column(values[:, place] > 0, 0, 1, 0.5))
    tops = (100, 1_000, 10_000)
    made += [_column(np.log(np.maximum(values[:, 54 + i], 1)), 0, np.log(top)) for i, top in enumerate(tops)]
    return _declared(made, *_signs(sign))


def _column(values: object, low: float, high: float, weight: float = 1.0) -> Column:
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.isnan(numbers), (low + high) / 2, numbers), low, high, weight


def _categories(frame: pd.DataFrame, weights: dict[str, float]) -> list[Column]:
    # The categories in the table stand for a declared list of them.
    made: list[Column] = []
    for name, weight in weights.items():
        texts = frame[name].astype(str).to_numpy()
        made += [_column(texts == text, 0, 1, weight) for text in sorted(set(texts))]
    return made


def _declared(
    columns: Sequence[Column], y: NDArray[np.float64], lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> Declared:
    values, low, high, weights = zip(*columns, strict=True)
    return Declared(np.column_stack(values), y, lower, upper, np.column_stack([low, high]), np.array(weights))


def _prices(price: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Logarithms of prices, within 15 % of the true one."""
    return np.log(price), np.log(0.85 * price), np.log(1.15 * price)


def _signs(sign: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    return sign, np.where(sign > 0, 0.0, -2.0), np.where(sign > 0, 2.0, -1e-9)


def _ames() -> tuple[pd.DataFrame, NDArray[np.float64]]:
    frame = pd.read_csv(HOME / "ames.csv.gz", keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    for name in AMES_RANGES:
        frame[name] = pd.to_numeric(frame[name].replace("NA", np.nan))
    frame["Garage Yr Blt"] = frame["Garage Yr Blt"].fillna(frame["Year Built"])
    frame[[*AMES_RANGES]] = frame[[*AMES_RANGES]].fillna(0)
    price = frame.pop("SalePrice").to_numpy(dtype=np.float64)
    return frame.drop(columns=["Order", "PID"]).fillna("NA"), price


def _texts(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame if name not in AMES_RANGES]


def _life() -> tuple[pd.DataFrame, NDArray[np.float64]]:
    frame = pd.read_csv(HOME / "life.csv.gz").rename(columns=str.strip)
    frame = frame[frame["Life expectancy"].notna()].reset_index(drop=True)
    return frame, frame["Life expectancy"].to_numpy(dtype=np.float64)


def _spambase() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = pd.read_csv(HOME / "spambase.data.gz", header=None).to_numpy(dtype=np.float64)
    return values[:, :-1], 2 * values[:, -1] - 1


AMES_RANGES: Final[dict[str, tuple[float, float]]] = {
    "Lot Frontage": (0, 320),
    "Lot Area": (1300, 220_000),
    "Overall Qual": (1, 10),
    "Overall Cond": (1, 9),
    "Year Built": (1870, 2010),
    "Year Remod/Add": (1950, 2010),
    "Mas Vnr Area": (0, 1600),
    "BsmtFin SF 1": (0, 5700),
    "BsmtFin SF 2": (0, 1600),
    "Bsmt Unf SF": (0, 2400),
    "Total Bsmt SF": (0, 6200),
    "1st Flr SF": (330, 5100),
    "2nd Flr SF": (0, 2100),
    "Low Qual Fin SF": (0, 1100),
    "Gr Liv Area": (330, 5700),
    "Bsmt Full Bath": (0, 3),
    "Bsmt Half Bath": (0, 2),
    "Full Bath": (0, 4),
    "Half Bath": (0, 2),
    "Bedroom AbvGr": (0, 8),
    "Kitchen AbvGr": (0, 3),
    "TotRms AbvGrd": (2, 15),
    "Fireplaces": (0, 4),
    "Garage Yr Blt": (1870, 2010),
    "Garage Cars": (0, 5),
    "Garage Area": (0, 1500),
    "Wood Deck SF": (0, 1500),
    "Open Porch SF": (0, 750),
    "Enclosed Porch": (0, 1100),
    "3Ssn Porch": (0, 510),
    "Screen Porch": (0, 580),
    "Pool Area": (0, 800),
    "Misc Val": (0, 17_000),
    "Mo Sold": (1, 12),
    "Yr Sold": (2006, 2010),
}
AMES_NUMBERS: Final[dict[str, tuple[float, float, float]]] = {
    "Overall Qual": (2, 10, 2),
    "Overall Cond": (1, 9, 0.7),
    "Garage Cars": (0, 4, 0.8),
    "Garage Area": (0, 1250, 0.6),
    "Fireplaces": (0, 3, 0.5),
    "BsmtFin SF 1": (0, 2200, 0.5),
    "Total Bsmt SF": (0, 2900, 0.5),
    "1st Flr SF": (450, 2750, 0.5),
    "2nd Flr SF": (0, 1800, 0.3),
    "Mas Vnr Area": (0, 1150, 0.3),
    "Bedroom AbvGr": (0, 6, 0.3),
    "TotRms AbvGrd": (3, 12, 0.3),
    "Wood Deck SF": (0, 700, 0.2),
    "Open Porch SF": (0, 450, 0.2),
    "Kitchen AbvGr": (1, 2, 0.3),
}
AMES_GRADES: Final = {
    "Exter Qual": 1.0,
    "Kitchen Qual": 1.0,
    "Bsmt Qual": 0.7,
    "Heating QC": 0.4,
    "Fireplace Qu": 0.3,
}
AMES_CATEGORIES: Final = {
    "Neighborhood": 0.15,
    "MS Zoning": 0.15,
    "Bldg Type": 0.15,
    "House Style": 0.1,
    "Sale Condition": 0.15,
    "Sale Type": 0.1,
    "Exterior 1st": 0.05,
    "Foundation": 0.1,
    "Functional": 0.1,
    "Condition 1": 0.1,
    "Bsmt Exposure": 0.1,
    "Garage Type": 0.1,
}
LIFE_RANGES: Final[dict[str, tuple[float, float]]] = {
    "Year": (2000, 2015),
    "Adult Mortality": (1, 725),
    "infant deaths": (0, 1800),
    "Alcohol": (0, 18),
    "percentage expenditure": (0, 20_000),
    "Hepatitis B": (1, 99),
    "Measles": (0, 215_000),
    "BMI": (1, 80),
    "under-five deaths": (0, 2500),
    "Polio": (3, 99),
    "Total expenditure": (0.3, 18),
    "Diphtheria": (2, 99),
    "HIV/AIDS": (0.1, 51),
    "GDP": (1, 120_000),
    "Population": (30, 1_300_000_000),
    "thinness  1-19 years": (0.1, 28),
    "thinness 5-9 years": (0.1, 29),
    "Income composition of resources": (0, 0.95),
    "Schooling": (0, 21),
}
LIFE_INCOME: Final = "Income composition of resources"
# Column, whether its logarithm is taken, declared ends, weight.
LIFE_NUMBERS: Final[list[tuple[str, bool, float, float, float]]] = [
    ("Year", False, 2000, 2015, 0.7),
    ("Adult Mortality", False, 0, 680, 1.0),
    ("HIV/AIDS", True, 0.1, 45, 2.5),
    (LIFE_INCOME, False, 0.27, 0.94, 2.5),
    ("Schooling", False, 3, 20.5, 1.2),
    ("GDP", True, 10, 90_000, 0.5),
    ("percentage expenditure", True, 0, 16_000, 0.2),
    ("Alcohol", False, 0, 15.5, 0.3),
    ("under-five deaths", True, 0, 2_000, 0.5),
    ("infant deaths", True, 0, 1_500, 0.3),
    ("BMI", False, 2, 75, 0.3),
    ("Polio", False, 3, 99, 0.3),
    ("Diphtheria", False, 4, 99, 0.3),
    ("Hepatitis B", False, 3, 99, 0.1),
    ("thinness  1-19 years", True, 0, 27, 0.5),
    ("thinness 5-9 years", True, 0, 28, 0.3),
    ("Total expenditure", False, 1, 16.5, 0.2),
    ("Measles", True, 0, 125_000, 0.2),
    ("Population", True, 130, 500_000_000, 0.1),
]
# fmt: off
SPAM_TOPS: Final[tuple[float, ...]] = (
    4.6, 15, 5.1, 43, 10, 5.9, 7.3, 12, 5.3, 19, 2.7, 9.7, 5.6, 10, 4.5, 20, 7.2, 9.1, 19, 19, 12, 18, 5.5, 13, 21, 17,
    34, 9.1, 15, 5.9, 13, 4.8, 19, 4.8, 20, 7.7, 6.9, 8.4, 12, 4.8, 7.2, 15, 3.6, 20, 22, 23, 2.2, 10, 4.4, 9.8, 4.1,
    33, 6.1, 20, 1200, 10_000, 16_000,
)
# fmt: on
PLAIN: Final = {"ames": ames_plain, "diamonds": diamonds_plain, "life": life_plain, "spambase": spambase_plain}
PREPARED: Final = {
    "ames": ames_prepared,
    "diamonds": diamonds_prepared,
    "life": life_prepared,
    "spambase": spambase_prepared,
}
