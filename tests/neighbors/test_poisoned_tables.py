"""Real tables, really poisoned with the worst attack there is: radii hold, and one modification more breaks them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.neighbors.poisoners import FAR, class_after, prediction_after, worst_labellings, worst_tables

from poisonproof.forest import CertifiedForestRegressor
from poisonproof.neighbors.kernel import CertifiedKernelClassifier, CertifiedKernelRegressor
from poisonproof.neighbors.within_radius import CertifiedRadiusClassifier, CertifiedRadiusRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.threat import Moves

HOME = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
THREATS: list[Moves] = ["insert+delete", "insert", "delete", "relabel"]

# Declared ends of some columns of each table, its target, and half the width of the bounds around a prediction.
TABLES: dict[str, tuple[dict[str, tuple[float, float]], str, float]] = {
    "ames": (
        {
            "Gr Liv Area": (300, 4000),
            "Overall Qual": (1, 10),
            "Year Built": (1870, 2010),
            "Total Bsmt SF": (0, 3000),
            "Garage Area": (0, 1200),
        },
        "SalePrice",
        20_000.0,
    ),
    "life": (
        {
            "Adult Mortality": (0, 600),
            "Income composition of resources": (0.2, 1),
            "Schooling": (0, 20),
            "Year": (2000, 2015),
        },
        "Life expectancy",
        3.0,
    ),
    "diamonds": ({"carat": (0.2, 3), "depth": (55, 70), "table": (50, 70), "x": (3.5, 9.5)}, "price", 500.0),
}


def read(name: str, **settings: Any) -> pd.DataFrame:
    path = HOME / name
    if not path.exists():
        pytest.skip(f"{path} is absent; point POISONPROOF_DATA at a folder that has it")
    return pd.read_csv(path, **settings)


def table(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """At most 3,000 rows, their targets, and ten more rows."""
    columns, target, _ = TABLES[name]
    frame = read(f"{name}.csv.gz").rename(columns=str.strip)[[*columns, target]].dropna()
    values = frame.sample(min(len(frame), 3010), random_state=1).to_numpy(dtype=np.float64)
    return values[10:, :-1], values[10:, -1], values[:10, :-1]


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("kind", ["radius", "tricube", "laplacian"])
@pytest.mark.parametrize("name", TABLES)
def test_radius_and_kernel_models_on(name: str, kind: str, moves: Moves) -> None:
    X, y, rows = table(name)
    columns, _, width = TABLES[name]
    settings: dict[str, Any] = {"metric": "manhattan", "ranges": list(columns.values()), "threat": moves}
    settings["empty_value"] = float(np.round(y.mean()))
    offset = lambda rows: np.round(rows[:, 0])  # noqa: E731  a declared constant multiple of the first column
    model: Any = (
        CertifiedRadiusRegressor(0.5, offset=offset, **settings)
        if kind == "radius"
        else CertifiedKernelRegressor(kind, 0.4, **settings)  # type: ignore[arg-type]
    ).fit(X, y)
    cert = model.certify(rows, within=width, relative=False)
    assert cert.radius.max() > 5
    for place, radius in enumerate(cert.radius):
        row, ends = rows[place : place + 1], (cert.lower[place], cert.upper[place])
        held = [prediction_after(model, made, row) for made in worst_tables(model, X, y, row, radius, ends)]
        assert all(ends[0] <= value <= ends[1] for value in held)
        broken = [prediction_after(model, made, row) for made in worst_tables(model, X, y, row, radius + 1, ends)]
        assert cert.unbreakable[place] or not all(ends[0] <= value <= ends[1] for value in broken)


@pytest.mark.parametrize("moves", THREATS)
@pytest.mark.parametrize("kind", ["radius", "gaussian"])
def test_classifiers_on_spambase(kind: str, moves: Moves) -> None:
    values = read("spambase.data.gz", header=None).sample(3000, random_state=1).to_numpy(dtype=np.float64)
    encoded = np.log1p(10 * values[:, :-1])
    X, y, rows = encoded[10:], values[10:, -1].astype(int), encoded[:10]
    model: Any = (
        CertifiedRadiusClassifier(9.0, classes=[0, 1], empty_value=1, threat=moves)
        if kind == "radius"
        else CertifiedKernelClassifier("gaussian", 3.0, classes=[0, 1], empty_value=1, threat=moves)
    ).fit(X, y)
    cert = model.certify(rows)
    assert cert.radius.max() > 5
    for place, radius in enumerate(cert.radius):
        row, target = rows[place : place + 1], int(cert.prediction[place])
        held = [
            class_after(model, made, row) for made in worst_labellings(model, X, y, row, radius, [1 - target], target)
        ]
        assert all(label == target for label in held)
        broken = [
            class_after(model, made, row)
            for made in worst_labellings(model, X, y, row, radius + 1, [1 - target], target)
        ]
        assert cert.unbreakable[place] or any(label != target for label in broken)


@pytest.mark.parametrize("name", TABLES)
def test_forests_on(name: str) -> None:
    X, y, rows = table(name)
    columns, _, width = TABLES[name]
    model = CertifiedForestRegressor(15, 6, ranges=list(columns.values()), empty_value=float(np.round(y.mean()))).fit(
        X, y
    )
    cert = model.certify(rows, within=width, relative=False)
    assert cert.lower is not None
    assert cert.upper is not None
    assert cert.radius.max() > 5
    for place, radius in enumerate(cert.radius):
        row = rows[place : place + 1]
        after = {}
        for spent in (radius, radius + 1):
            poisoned = np.concatenate([X, np.repeat(row, spent, axis=0)])
            tables = [(poisoned, np.append(y, [sign * FAR] * spent)) for sign in (1, -1)]
            after[spent] = [clone(model).fit(*made).predict(row)[0] for made in tables]
        assert all(cert.lower[place] <= value <= cert.upper[place] for value in after[radius])
        assert not all(cert.lower[place] <= value <= cert.upper[place] for value in after[radius + 1])
