"""Ames: house prices. Categories are those of the data's own documentation (De Cock, 2011), seen in the rows or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.datasets.recipes.recipe import Encoding, Recipe
from poisonproof.schema import Category, Numeric, Ordinal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.schema import Column

__all__ = ["RECIPE"]

_RANGES: Final[dict[str, tuple[float, float]]] = {
    "Lot Frontage": (0, 350), "Lot Area": (1000, 250_000), "Overall Qual": (1, 10), "Overall Cond": (1, 10),
    "Year Built": (1850, 2010), "Year Remod/Add": (1950, 2010), "Mas Vnr Area": (0, 2000), "BsmtFin SF 1": (0, 6000),
    "BsmtFin SF 2": (0, 2000), "Bsmt Unf SF": (0, 3000), "Total Bsmt SF": (0, 6500), "1st Flr SF": (300, 6000),
    "2nd Flr SF": (0, 2500), "Low Qual Fin SF": (0, 1500), "Gr Liv Area": (300, 6000), "Bsmt Full Bath": (0, 4),
    "Bsmt Half Bath": (0, 3), "Full Bath": (0, 5), "Half Bath": (0, 3), "Bedroom AbvGr": (0, 10),
    "Kitchen AbvGr": (0, 4), "TotRms AbvGrd": (1, 16), "Fireplaces": (0, 5), "Garage Yr Blt": (1850, 2010),
    "Garage Cars": (0, 6), "Garage Area": (0, 1600), "Wood Deck SF": (0, 1500), "Open Porch SF": (0, 800),
    "Enclosed Porch": (0, 1200), "3Ssn Porch": (0, 600), "Screen Porch": (0, 600), "Pool Area": (0, 800),
    "Misc Val": (0, 20_000), "Mo Sold": (1, 12), "Yr Sold": (2006, 2010),
}  # fmt: skip
_QUALITY: Final = ("NA", "Po", "Fa", "TA", "Gd", "Ex")
_PLACES: Final = ("Artery", "Feedr", "Norm", "RRNn", "RRAn", "PosN", "PosA", "RRNe", "RRAe")
_WALLS: Final = (
    "AsbShng", "AsphShn", "BrkComm", "BrkFace", "CBlock", "CemntBd", "HdBoard", "ImStucc", "MetalSd", "Other",
    "Plywood", "PreCast", "Stone", "Stucco", "VinylSd", "Wd Sdng", "WdShing",
)  # fmt: skip
_FINISH: Final = ("GLQ", "ALQ", "BLQ", "Rec", "LwQ", "Unf", "NA")
_CATEGORIES: Final[dict[str, tuple[str, ...]]] = {
    "MS SubClass": (
        "020", "030", "040", "045", "050", "060", "070", "075", "080", "085", "090", "120", "150", "160", "180", "190",
    ),
    "MS Zoning": ("A (agr)", "C (all)", "FV", "I (all)", "RH", "RL", "RP", "RM"),
    "Street": ("Grvl", "Pave"),
    "Alley": ("Grvl", "Pave", "NA"),
    "Lot Shape": ("Reg", "IR1", "IR2", "IR3"),
    "Land Contour": ("Lvl", "Bnk", "HLS", "Low"),
    "Utilities": ("AllPub", "NoSewr", "NoSeWa", "ELO"),
    "Lot Config": ("Inside", "Corner", "CulDSac", "FR2", "FR3"),
    "Land Slope": ("Gtl", "Mod", "Sev"),
    "Neighborhood": (
        "Blmngtn", "Blueste", "BrDale", "BrkSide", "ClearCr", "CollgCr", "Crawfor", "Edwards", "Gilbert", "Greens",
        "GrnHill", "IDOTRR", "Landmrk", "MeadowV", "Mitchel", "NAmes", "NoRidge", "NPkVill", "NridgHt", "NWAmes",
        "OldTown", "SWISU", "Sawyer", "SawyerW", "Somerst", "StoneBr", "Timber", "Veenker",
    ),
    "Condition 1": _PLACES,
    "Condition 2": _PLACES,
    "Bldg Type": ("1Fam", "2fmCon", "Duplex", "TwnhsE", "Twnhs"),
    "House Style": ("1Story", "1.5Fin", "1.5Unf", "2Story", "2.5Fin", "2.5Unf", "SFoyer", "SLvl"),
    "Roof Style": ("Flat", "Gable", "Gambrel", "Hip", "Mansard", "Shed"),
    "Roof Matl": ("ClyTile", "CompShg", "Membran", "Metal", "Roll", "Tar&Grv", "WdShake", "WdShngl"),
    "Exterior 1st": _WALLS,
    "Exterior 2nd": (
        *(wall for wall in _WALLS if wall not in ("BrkComm", "CemntBd", "WdShing")), "Brk Cmn", "CmentBd", "Wd Shng",
    ),
    "Mas Vnr Type": ("BrkCmn", "BrkFace", "CBlock", "None", "Stone"),
    "Exter Qual": _QUALITY[1:],
    "Exter Cond": _QUALITY[1:],
    "Foundation": ("BrkTil", "CBlock", "PConc", "Slab", "Stone", "Wood"),
    "Bsmt Qual": _QUALITY,
    "Bsmt Cond": _QUALITY,
    "Bsmt Exposure": ("Gd", "Av", "Mn", "No", "NA"),
    "BsmtFin Type 1": _FINISH,
    "BsmtFin Type 2": _FINISH,
    "Heating": ("Floor", "GasA", "GasW", "Grav", "OthW", "Wall"),
    "Heating QC": _QUALITY[1:],
    "Central Air": ("N", "Y"),
    "Electrical": ("SBrkr", "FuseA", "FuseF", "FuseP", "Mix"),
    "Kitchen Qual": _QUALITY[1:],
    "Functional": ("Typ", "Min1", "Min2", "Mod", "Maj1", "Maj2", "Sev", "Sal"),
    "Fireplace Qu": _QUALITY,
    "Garage Type": ("2Types", "Attchd", "Basment", "BuiltIn", "CarPort", "Detchd", "NA"),
    "Garage Finish": ("Fin", "RFn", "Unf", "NA"),
    "Garage Qual": _QUALITY,
    "Garage Cond": _QUALITY,
    "Paved Drive": ("Y", "P", "N"),
    "Pool QC": (*_QUALITY[2:], "NA"),
    "Fence": ("GdPrv", "MnPrv", "GdWo", "MnWw", "NA"),
    "Misc Feature": ("Elev", "Gar2", "Othr", "Shed", "TenC", "NA"),
    "Sale Type": ("WD", "CWD", "VWD", "New", "COD", "Con", "ConLw", "ConLI", "ConLD", "Oth"),
    "Sale Condition": ("Normal", "Abnorml", "AdjLand", "Alloca", "Family", "Partial"),
}  # fmt: skip
# Column, declared ends, weight; what is missing counts as none.
_NUMBERS: Final[tuple[tuple[str, float, float, float], ...]] = (
    ("Overall Qual", 2, 10, 2.0), ("Overall Cond", 1, 9, 0.7), ("Garage Cars", 0, 4, 0.8),
    ("Garage Area", 0, 1250, 0.6), ("Fireplaces", 0, 3, 0.5), ("BsmtFin SF 1", 0, 2200, 0.5),
    ("Total Bsmt SF", 0, 2900, 0.5), ("1st Flr SF", 450, 2750, 0.5), ("2nd Flr SF", 0, 1800, 0.3),
    ("Mas Vnr Area", 0, 1150, 0.3), ("Bedroom AbvGr", 0, 6, 0.3), ("TotRms AbvGrd", 3, 12, 0.3),
    ("Wood Deck SF", 0, 700, 0.2), ("Open Porch SF", 0, 450, 0.2), ("Kitchen AbvGr", 1, 2, 0.3),
    ("age", 0, 130, 0.5), ("baths", 1, 5, 0.8),
)  # fmt: skip
# Column, declared ends, weight; their logarithm is taken. The first may not end where the rows do: it is the offset.
_LOGARITHMS: Final[tuple[tuple[str, float, float, float], ...]] = (
    ("total area", 300, 12_000, 3.6),
    ("Gr Liv Area", 500, 3700, 2.0),
    ("Lot Area", 1500, 60_000, 0.7),
    ("years since built", 1, 131, 1.0),
    ("years since remodelled", 1, 61, 0.6),
)
_GRADES: Final = {"Exter Qual": 1.0, "Kitchen Qual": 1.0, "Bsmt Qual": 0.7, "Heating QC": 0.4, "Fireplace Qu": 0.3}
_LIGHT: Final = 0.03
_CATEGORY_WEIGHTS: Final = {
    "Neighborhood": 0.15, "MS Zoning": 0.15, "Bldg Type": 0.15, "House Style": 0.1, "Sale Condition": 0.15,
    "Sale Type": 0.1, "Exterior 1st": 0.05, "Foundation": 0.1, "Functional": 0.1, "Condition 1": 0.1,
    "Bsmt Exposure": 0.1, "Garage Type": 0.1, "Central Air": 0.2,
}  # fmt: skip


def _derived(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Areas, baths and ages; a garage without a year counts as old as the house."""
    at = {name: np.nan_to_num(columns[name], nan=0.0) for name in _RANGES}
    built, sold = at["Year Built"], at["Yr Sold"]
    age = np.clip(sold - built, 0, 130)
    garage = columns["Garage Yr Blt"]
    return columns | at | {
        "Garage Yr Blt": np.where(np.isnan(garage), built, garage),
        "house age": age,
        "age": age,
        "years since built": age + 1,
        "years since remodelled": np.clip(sold - at["Year Remod/Add"], 0, 60) + 1,
        "total area": at["Total Bsmt SF"] + at["1st Flr SF"] + at["2nd Flr SF"],
        "baths": at["Full Bath"] + 0.5 * at["Half Bath"] + at["Bsmt Full Bath"] + 0.5 * at["Bsmt Half Bath"],
    }  # fmt: skip


def _plain() -> Encoding:
    made = [Numeric("house age", 0, 160, scale=False), Numeric("total area", 300, 12_000, scale=False)]
    made.append(Numeric("baths", 0, 8, scale=False))
    numbers = [Numeric(name, low, high, scale=False) for name, (low, high) in _RANGES.items()]
    # What a house does not have is no category of its own here.
    had = {name: tuple(label for label in labels if label != "NA") for name, labels in _CATEGORIES.items()}
    return Encoding((*numbers, *made, *(Category(name, labels) for name, labels in had.items())))


def _ours() -> Encoding:
    columns: list[Column] = [Numeric(name, low, high, "log") for name, low, high, _ in _LOGARITHMS]
    columns += [Numeric(name, low, high) for name, low, high, _ in _NUMBERS]
    columns += [Ordinal(name, _QUALITY, "missing", fill="NA") for name in _GRADES]
    columns += [Category(name, labels) for name, labels in _CATEGORIES.items() if name not in _GRADES]
    weights = {name: weight for name, _, _, weight in (*_LOGARITHMS, *_NUMBERS)}
    light = dict.fromkeys(_CATEGORIES, _LIGHT)
    return Encoding(tuple(columns), light | _CATEGORY_WEIGHTS | _GRADES | weights, offset=("total area", 0.75, 0.0))


RECIPE: Final = Recipe("ames", tuple(_RANGES), _plain(), _ours(), derive=_derived)
