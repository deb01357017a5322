"""How strong kernel ridge blocks are: certified accuracy on three public tables, and what costs above one add.

Prints one JSON line for each figure. The tables are read from the folder ``POISONPROOF_DATA`` names. Every feature
transform, range, weight, offset and constant is declared below; nothing is taken from the rows. Accuracy is the mean
over three splits of 200 test rows, the rest of 90 % of the table trains.

    python bench/strength_kernel_ridge.py [diamonds] [ames] [spambase] [costs]
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from poisonproof import CertifiedRegressor
from poisonproof.learners import KernelRidge

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DATA = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[2] / "shared" / "data"))
SPLITS, TEST_ROWS = 3, 200


class Table(NamedTuple):
    """Encoded rows, the learned target, and its bounds."""

    rows: Array
    target: Array
    lower: Array
    upper: Array


def scaled(values: Any, low: float, high: float) -> Array:  # noqa: ANN401  a frame's column or an array
    """Clipped into a declared range and scaled to [0, 1], as a column."""
    return np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0, 1)[:, None]


def ranked(values: pd.Series, grades: list[str]) -> Array:
    """The place of each grade in its declared order, from 0 to 1, as a column; 0 for any other."""
    place = {grade: index / (len(grades) - 1) for index, grade in enumerate(grades)}
    return np.array([place.get(value, 0.0) for value in values])[:, None]


def one_hot(values: pd.Series) -> Array:
    """An indicator of each value the column has, in alphabetical order: a declared list by another name."""
    names = np.array(sorted(values.astype(str).unique()))
    return (values.astype(str).to_numpy()[:, None] == names).astype(float)


def prices(price: Array) -> tuple[Array, Array, Array]:
    """Log prices, and the bounds 15 % around them."""
    return np.log(price), np.log(0.85 * price), np.log(1.15 * price)


def diamonds() -> Table:
    """Prices by log weight, log volume and grades."""
    frame = pd.read_csv(DATA / "diamonds.csv.gz")
    volume = np.clip((frame.x * frame.y * frame.z).to_numpy(), 30, 900)
    rows = [
        2 * scaled(np.log(frame.carat), np.log(0.23), np.log(2.6)),
        2 * scaled(np.log(volume), np.log(38), np.log(420)),
        0.4 * ranked(frame.cut, ["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        ranked(frame.color, list("JIHGFED")),
        ranked(frame.clarity, ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]),
        0.3 * scaled(frame.depth, 57, 67),
        0.3 * scaled(frame.table, 52, 66),
    ]
    # The first column is the declared offset's own input, weighted out of the kernel.
    return Table(np.hstack([np.log(frame.carat.to_numpy(float))[:, None], *rows]), *prices(frame.price.to_numpy(float)))


def diamonds_offset(rows: Array) -> Array:
    """Log price grows by five thirds of log weight."""
    return 5 / 3 * rows[:, 0]


QUALITY = ["NA", "Po", "Fa", "TA", "Gd", "Ex"]
CATEGORY_WEIGHTS = {
    "Neighborhood": 0.15, "MS Zoning": 0.15, "Bldg Type": 0.15, "Sale Condition": 0.15, "House Style": 0.1,
    "Sale Type": 0.1, "Foundation": 0.1, "Functional": 0.1, "Condition 1": 0.1, "Bsmt Exposure": 0.1,
    "Garage Type": 0.1, "Exterior 1st": 0.05,
}  # fmt: skip
AMES_GRADES = {"Exter Qual": 1, "Kitchen Qual": 1, "Bsmt Qual": 0.7, "Heating QC": 0.4, "Fireplace Qu": 0.3}
AMES_NUMBERS = [
    ("Overall Qual", 2, 1, 10), ("Overall Cond", 0.7, 1, 10), ("Garage Cars", 0.8, 0, 4), ("Garage Area", 0.6, 0, 1200),
    ("Fireplaces", 0.5, 0, 3), ("BsmtFin SF 1", 0.5, 0, 1800), ("Total Bsmt SF", 0.5, 0, 2500),
    ("1st Flr SF", 0.5, 500, 2600), ("2nd Flr SF", 0.3, 0, 1500), ("Mas Vnr Area", 0.3, 0, 900),
    ("Bedroom AbvGr", 0.3, 0, 6), ("TotRms AbvGrd", 0.3, 3, 12), ("Wood Deck SF", 0.2, 0, 700),
    ("Open Porch SF", 0.2, 0, 350), ("Kitchen AbvGr", 0.3, 0, 2),
]  # fmt: skip


def ames() -> Table:
    """House prices by areas, ages, grades, counts and lightly weighted categories."""
    frame = pd.read_csv(DATA / "ames.csv.gz", keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    price = frame.pop("SalePrice").to_numpy(float)
    for column in list(map(str, frame)):
        numbers = pd.to_numeric(frame[column].replace("NA", np.nan), errors="coerce")
        if column != "MS SubClass" and numbers.notna().mean() > 0.75:
            frame[column] = numbers.fillna(0.0)
    frame["MS SubClass"] = frame["MS SubClass"].astype(str)
    names = [column for column in map(str, frame) if not pd.api.types.is_numeric_dtype(frame[column])]
    frame[names] = frame[names].fillna("NA").astype(str)
    total = (frame["Total Bsmt SF"] + frame["1st Flr SF"] + frame["2nd Flr SF"]).to_numpy(float)
    age = np.clip(frame["Yr Sold"] - frame["Year Built"], 0, 130)
    renewed = np.clip(frame["Yr Sold"] - frame["Year Remod/Add"], 0, 60)
    baths = frame["Full Bath"] + frame["Bsmt Full Bath"] + 0.5 * (frame["Half Bath"] + frame["Bsmt Half Bath"])
    rows = [
        2 * scaled(np.log(total), np.log(700), np.log(5500)),
        2 * scaled(np.log(frame["Gr Liv Area"]), np.log(500), np.log(3500)),
        1.0 * scaled(np.log1p(age), 0, np.log1p(130)),
        0.5 * scaled(age, 0, 130),
        0.6 * scaled(np.log1p(renewed), 0, np.log1p(60)),
        0.7 * scaled(np.log(frame["Lot Area"]), np.log(1500), np.log(60000)),
        0.8 * scaled(baths, 1, 5),
        *(weight * scaled(frame[column], low, high) for column, weight, low, high in AMES_NUMBERS),
        *(weight * ranked(frame[column], QUALITY) for column, weight in AMES_GRADES.items()),
        0.4 * (frame["Central Air"] == "Y").to_numpy(float)[:, None],
        *(CATEGORY_WEIGHTS.get(column, 0.03) * one_hot(frame[column]) for column in names),
    ]
    return Table(np.hstack(rows), *prices(price))


def spambase() -> Table:
    """Mail as -1 or 1 by log frequencies and indicators."""
    with gzip.open(DATA / "spambase.data.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    features, label = table[:, :-1], 2 * table[:, -1] - 1
    words, runs = features[:, :54], features[:, 54:]
    rows = [
        np.clip(np.log1p(10 * words) / np.log1p(30), 0, 1),
        0.5 * (words > 0),
        np.clip(np.log(np.maximum(runs, 1)) / np.log([100.0, 1000.0, 10000.0]), 0, 1),
    ]
    return Table(np.hstack(rows), label, np.where(label > 0, 0.0, -np.inf), np.where(label > 0, np.inf, -1e-9))


def splits(table: Table, n_test: int = TEST_ROWS) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Test and training rows of each split."""
    n = len(table.target)
    orders = [np.random.default_rng(1000 + seed).permutation(n) for seed in range(SPLITS)]
    return [(order[:n_test], order[n // 10 :]) for order in orders]


def accuracy(name: str, table: Table, model: CertifiedRegressor, radii: list[int]) -> None:
    """Print the share of test rows certified at each radius, in percent, mean over the splits."""
    shares, seconds = [], []
    for test, train in splits(table):
        start = time.process_time()
        model.fit(table.rows[train], table.target[train])
        cert = model.certify(table.rows[test], lower=table.lower[test], upper=table.upper[test])
        seconds.append(time.process_time() - start)
        shares.append([100 * np.mean(cert.radius >= radius) for radius in radii])
    line = {
        "bench": "strength kernel ridge", "data": name, "submodels": model.n_partitions,
        "estimator": " ".join(repr(model.estimator).split()), "threat": model.threat,
        "max_cost": model.max_cost, "radii": radii,
        "certified_accuracy": np.mean(shares, axis=0).round(1).tolist(),
        "cpu_seconds": round(float(np.median(seconds)), 2),
    }  # fmt: skip
    print(json.dumps(line), flush=True)


def strength_diamonds() -> None:
    """Unit cost, insertions and deletions; every radius of the published table is among these."""
    table = diamonds()
    learner = KernelRidge(alpha=0.03, gamma=0.3, weights=np.append(0.0, np.ones(table.rows.shape[1] - 1)))
    settings = {
        101: [1, 35],
        501: [1, 35, 70, 75],
        1001: [1, 35, 70, 75, 105, 140, 150, 300],
        2001: [1, 70, 150, 300, 450, 600],
    }
    for n_partitions, radii in settings.items():
        accuracy("diamonds", table, CertifiedRegressor(learner, n_partitions, offset=diamonds_offset), radii)


def strength_ames() -> None:
    """Unit cost, insertions and deletions."""
    table = ames()
    for n_partitions, gamma, radii in ((9, 0.3, [1]), (75, 0.03, [1, 4, 8, 10, 12, 16, 20, 30])):
        accuracy("ames", table, CertifiedRegressor(KernelRidge(alpha=0.01, gamma=gamma), n_partitions), radii)


def strength_spambase() -> None:
    """Unit cost, insertions and deletions."""
    table = spambase()
    accuracy("spambase", table, CertifiedRegressor(KernelRidge(alpha=0.3, gamma=0.3), 75), [1, 5, 10, 15, 20, 25])


def strength_of_costs() -> None:
    """Mean radius of log ridge on 51 blocks of diamonds by the largest cost that is looked for; deletions."""
    table = diamonds_plain()
    test, train = splits(table, 100)[0]
    base = None
    for max_cost in (1, 2, 3, 5, 8, 13):
        model = CertifiedRegressor(Ridge(alpha=0.5), 51, threat="delete", max_cost=max_cost)
        start = time.process_time()
        model.fit(table.rows[train], table.target[train])
        cert = model.certify(table.rows[test], lower=table.lower[test], upper=table.upper[test])
        mean = float(np.mean(np.maximum(cert.radius, 0)))
        base = mean if max_cost == 2 else base
        line = {
            "bench": "strength of costs", "data": "diamonds", "submodels": 51,
            "estimator": "Ridge(alpha=0.5) on log price", "max_cost": max_cost, "mean_radius": round(mean, 1),
            "over_max_cost_2": base and round(mean / base, 2),
            "cpu_seconds": round(time.process_time() - start, 1),
        }  # fmt: skip
        print(json.dumps(line), flush=True)


def diamonds_plain() -> Table:
    """Numbers in declared ranges and one-hot grades, as ridge on plain features sees them."""
    frame = pd.read_csv(DATA / "diamonds.csv.gz")
    ranges = {
        "carat": (0.2, 5.01),
        "depth": (43, 79),
        "table": (43, 95),
        "x": (0, 10.74),
        "y": (0, 58.9),
        "z": (0, 31.8),
    }
    numbers = [scaled(frame[column], *limits) for column, limits in ranges.items()]
    rows = np.hstack([*numbers, *(one_hot(frame[column]) for column in ("cut", "color", "clarity"))])
    return Table(rows, *prices(frame.price.to_numpy(float)))


PARTS: dict[str, Callable[[], None]] = {
    "diamonds": strength_diamonds,
    "ames": strength_ames,
    "spambase": strength_spambase,
    "costs": strength_of_costs,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
