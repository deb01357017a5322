"""Life: life expectancy of countries over sixteen years, by epidemiological and other national statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.schema import Category, Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.schema import Column

__all__ = ["RECIPE", "SameCountry"]

_FIRST_YEAR, _LAST_YEAR = 2000, 2015
# Declared ends, and what stands for a missing value.
_RANGES: Final[dict[str, tuple[float, float, float]]] = {
    "Year": (_FIRST_YEAR, _LAST_YEAR, 2008), "Adult Mortality": (1, 750, 150), "infant deaths": (0, 2000, 3),
    "Alcohol": (0, 20, 4), "percentage expenditure": (0, 20_000, 65), "Hepatitis B": (0, 100, 90),
    "Measles": (0, 250_000, 20), "BMI": (0, 90, 40), "under-five deaths": (0, 2500, 4), "Polio": (0, 100, 90),
    "Total expenditure": (0, 20, 6), "Diphtheria": (0, 100, 90), "HIV/AIDS": (0, 55, 0.1), "GDP": (0, 120_000, 1800),
    "Population": (0, 1_500_000_000, 1_400_000), "thinness  1-19 years": (0, 30, 3.3),
    "thinness 5-9 years": (0, 30, 3.3), "Income composition of resources": (0, 1, 0.7), "Schooling": (0, 21, 12),
}  # fmt: skip
_COUNTRIES: Final = (
    "Afghanistan", "Albania", "Algeria", "Angola", "Antigua and Barbuda", "Argentina", "Armenia", "Australia",
    "Austria", "Azerbaijan", "Bahamas", "Bahrain", "Bangladesh", "Barbados", "Belarus", "Belgium", "Belize", "Benin",
    "Bhutan", "Bolivia (Plurinational State of)", "Bosnia and Herzegovina", "Botswana", "Brazil", "Brunei Darussalam",
    "Bulgaria", "Burkina Faso", "Burundi", "Cabo Verde", "Cambodia", "Cameroon", "Canada", "Central African Republic",
    "Chad", "Chile", "China", "Colombia", "Comoros", "Congo", "Costa Rica", "Croatia", "Cuba", "Cyprus", "Czechia",
    "Côte d'Ivoire", "Democratic People's Republic of Korea", "Democratic Republic of the Congo", "Denmark",
    "Djibouti", "Dominican Republic", "Ecuador", "Egypt", "El Salvador", "Equatorial Guinea", "Eritrea", "Estonia",
    "Ethiopia", "Fiji", "Finland", "France", "Gabon", "Gambia", "Georgia", "Germany", "Ghana", "Greece", "Grenada",
    "Guatemala", "Guinea", "Guinea-Bissau", "Guyana", "Haiti", "Honduras", "Hungary", "Iceland", "India", "Indonesia",
    "Iran (Islamic Republic of)", "Iraq", "Ireland", "Israel", "Italy", "Jamaica", "Japan", "Jordan", "Kazakhstan",
    "Kenya", "Kiribati", "Kuwait", "Kyrgyzstan", "Lao People's Democratic Republic", "Latvia", "Lebanon", "Lesotho",
    "Liberia", "Libya", "Lithuania", "Luxembourg", "Madagascar", "Malawi", "Malaysia", "Maldives", "Mali", "Malta",
    "Mauritania", "Mauritius", "Mexico", "Micronesia (Federated States of)", "Mongolia", "Montenegro", "Morocco",
    "Mozambique", "Myanmar", "Namibia", "Nepal", "Netherlands", "New Zealand", "Nicaragua", "Niger", "Nigeria",
    "Norway", "Oman", "Pakistan", "Panama", "Papua New Guinea", "Paraguay", "Peru", "Philippines", "Poland",
    "Portugal", "Qatar", "Republic of Korea", "Republic of Moldova", "Romania", "Russian Federation", "Rwanda",
    "Saint Lucia", "Saint Vincent and the Grenadines", "Samoa", "Sao Tome and Principe", "Saudi Arabia", "Senegal",
    "Serbia", "Seychelles", "Sierra Leone", "Singapore", "Slovakia", "Slovenia", "Solomon Islands", "Somalia",
    "South Africa", "South Sudan", "Spain", "Sri Lanka", "Sudan", "Suriname", "Swaziland", "Sweden", "Switzerland",
    "Syrian Arab Republic", "Tajikistan", "Thailand", "The former Yugoslav republic of Macedonia", "Timor-Leste",
    "Togo", "Tonga", "Trinidad and Tobago", "Tunisia", "Turkey", "Turkmenistan", "Uganda", "Ukraine",
    "United Arab Emirates", "United Kingdom of Great Britain and Northern Ireland", "United Republic of Tanzania",
    "United States of America", "Uruguay", "Uzbekistan", "Vanuatu", "Venezuela (Bolivarian Republic of)", "Viet Nam",
    "Yemen", "Zambia", "Zimbabwe",
)  # fmt: skip
_STATUS: Final = ("Developing", "Developed")
_INCOME, _SCHOOL = "Income composition of resources", "Schooling"
# Column, declared ends, weight; what is missing lies in the middle.
_NUMBERS: Final[tuple[tuple[str, float, float, float], ...]] = (
    ("Year", _FIRST_YEAR, _LAST_YEAR, 0.7), ("Adult Mortality", 0, 700, 1.0), (_INCOME, 0.25, 0.95, 2.5),
    (_SCHOOL, 2.5, 20.5, 1.2), ("Alcohol", 0, 16, 0.3), ("BMI", 2, 76, 0.3), ("Polio", 3, 99, 0.3),
    ("Diphtheria", 3, 99, 0.3), ("Hepatitis B", 3, 99, 0.1), ("Total expenditure", 1, 17, 0.2),
)  # fmt: skip
_LOGARITHMS: Final[tuple[tuple[str, float, float, float], ...]] = (("HIV/AIDS", 0.1, 45, 2.5),)
# As above, for one more than the column, because none is a possible number.
_COUNTS: Final[tuple[tuple[str, float, float, float], ...]] = (
    ("GDP", 10, 100_000, 0.5), ("percentage expenditure", 0, 16_000, 0.2), ("under-five deaths", 0, 2000, 0.5),
    ("infant deaths", 0, 1500, 0.3), ("thinness  1-19 years", 0, 28, 0.5), ("thinness 5-9 years", 0, 28, 0.3),
    ("Measles", 0, 125_000, 0.2), ("Population", 100, 600_000_000, 0.1),
)  # fmt: skip
_NO_INCOME: Final = "no income known"


@dataclass(frozen=True)
class SameCountry:
    """A similarity of encoded rows: 1 for one country, less by one ``reach``-th for each year between them.

    Parameters
    ----------
    reach : float, optional
        After how many years nothing is left. None: all years of a country are alike.
    """

    reach: float | None = None

    def __call__(self, queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The similarity of each query to each row, ``(n_queries, n_rows)``."""
        first = len(_NUMBERS) + len(_LOGARITHMS) + len(_COUNTS) + 1
        countries = slice(first, first + len(_COUNTRIES))
        # Sound because features that are 0 or 1 have an exact product, whatever the other rows are.
        same = queries[:, countries] @ rows[:, countries].T
        if self.reach is None:
            return np.asarray(same)
        apart = np.abs(queries[:, 0][:, None] - rows[:, 0][None, :]) * (_LAST_YEAR - _FIRST_YEAR)
        return np.asarray(same * np.maximum(0.0, 1.0 - apart / self.reach))


def _derived(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """An income or a schooling of 0 was not measured."""
    measured = {f"{name}, measured": np.where(columns[name] == 0, np.nan, columns[name]) for name in (_INCOME, _SCHOOL)}
    return columns | measured | {_NO_INCOME: np.isnan(measured[f"{_INCOME}, measured"]).astype(np.float64)}


def _kept(columns: dict[str, NDArray[Any]]) -> NDArray[np.bool_]:
    return np.asarray(~np.isnan(columns["Life expectancy"]))


def _plain() -> Encoding:
    numbers = [Numeric(name, low, high, scale=False, fill=fill) for name, (low, high, fill) in _RANGES.items()]
    return Encoding((*numbers, Category("Country", _COUNTRIES), Category("Status", _STATUS)))


def _ours() -> Encoding:
    # The place of the features is what SameCountry goes by.
    columns: list[Column] = [
        Numeric(_measured(name), low, high, fill=(low + high) / 2) for name, low, high, _ in _NUMBERS
    ]
    columns += [Numeric(name, low, high, "log", fill=(low * high) ** 0.5) for name, low, high, _ in _LOGARITHMS]
    columns += [
        Numeric(name, low, high, "log1p", fill=((low + 1) * (high + 1)) ** 0.5 - 1) for name, low, high, _ in _COUNTS
    ]
    columns += [Numeric(_NO_INCOME, 0, 1), Category("Country", _COUNTRIES), Category("Status", _STATUS)]
    weights = {_measured(name): weight for name, _, _, weight in (*_NUMBERS, *_LOGARITHMS, *_COUNTS)}
    return Encoding(tuple(columns), weights | {_NO_INCOME: 0.5, "Status": 0.3}, offset=("Year", 0.3, 2007.0))


def _measured(name: str) -> str:
    return f"{name}, measured" if name in (_INCOME, _SCHOOL) else name


RECIPE: Final = Recipe(
    "life", tuple(_RANGES), _plain(), _ours(), derive=_derived, keep=_kept, groups=("Country", "Year")
)
