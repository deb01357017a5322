"""How much of a panel a kernel median certifies when it may use what everybody knows: which rows are of one country.

Declared constants only: no scale, no range and no category is read from the table. Three splits of 200 test rows; a row
counts at radius R where no R insertions and deletions move its prediction more than three years from the truth.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from poisonproof.neighbors.kernel import CertifiedKernelRegressor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.neighbors.similarity import PairFunction

HOME: Final = Path(os.environ.get("POISONPROOF_DATA", Path(__file__).parents[2] / "shared" / "data"))
RADII: Final = (1, 5, 10, 15, 20, 30, 40, 60, 90, 120)
TARGET: Final = "Life expectancy"

# Column, whether its logarithm is taken, declared ends, weight.
DECLARED: Final[list[tuple[str, bool, float, float, float]]] = [
    ("Year", False, 2000, 2015, 0.7),
    ("Adult Mortality", False, 0, 700, 1.0),
    ("HIV/AIDS", True, 0.1, 45, 2.5),
    ("Income composition of resources", False, 0.25, 0.95, 2.5),
    ("Schooling", False, 2.5, 20.5, 1.2),
    ("GDP", True, 10, 100_000, 0.5),
    ("percentage expenditure", True, 1, 16_000, 0.2),
    ("Alcohol", False, 0, 16, 0.3),
    ("under-five deaths", True, 1, 2_000, 0.5),
    ("infant deaths", True, 1, 1_500, 0.3),
    ("BMI", False, 2, 76, 0.3),
    ("Polio", False, 3, 99, 0.3),
    ("Diphtheria", False, 3, 99, 0.3),
    ("Hepatitis B", False, 3, 99, 0.1),
    ("thinness  1-19 years", True, 1, 28, 0.5),
    ("thinness 5-9 years", True, 1, 28, 0.3),
    ("Total expenditure", False, 1, 17, 0.2),
    ("Measles", True, 1, 125_000, 0.2),
    ("Population", True, 100, 600_000_000, 0.1),
]
COUNTRY, YEAR = 0, 1


def country_number(name: str) -> float:
    """A number for a name, the same wherever it is met."""
    return float(int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "little"))


def encoded(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Country, year, and the declared features of each row; what is missing lies in the middle."""
    columns = [frame["Country"].map(country_number).to_numpy(), frame["Year"].to_numpy(dtype=np.float64)]
    for name, logarithm, low, high, weight in DECLARED:
        values = frame[name].to_numpy(dtype=np.float64)
        # A count may be none; a share has a smallest one that is reported.
        shift = 0.0 if low < 1 else 1.0
        ends = np.log([low, high]) if logarithm else np.array([low, high])
        values = np.log(values + shift) if logarithm else values
        columns.append(weight * np.nan_to_num(np.clip((values - ends[0]) / (ends[1] - ends[0]), 0, 1), nan=0.5))
    columns.append(0.5 * frame["Income composition of resources"].isna().to_numpy(dtype=np.float64))
    return np.stack(columns, axis=1)


def same_country(reach: float) -> PairFunction:
    """Similarity of two rows of one country, which fades over ``reach`` years."""

    def similarity(queries: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
        years = np.abs(queries[:, YEAR, None] - rows[None, :, YEAR])
        return np.where(queries[:, COUNTRY, None] == rows[None, :, COUNTRY], np.maximum(0, 1 - years / reach), 0.0)

    return similarity


def warming(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Lives grow longer by about 0.3 years a year, everywhere."""
    return 0.3 * (rows[:, YEAR] - 2007)


def main() -> None:
    """Print one JSON line for each preset."""
    path = HOME / "life.csv.gz"
    if not path.exists():
        print(
            json.dumps({"case": "life", "skipped": f"{path} is absent; point POISONPROOF_DATA at a folder that has it"})
        )
        return
    frame = pd.read_csv(path).rename(columns=str.strip).dropna(subset=[TARGET]).reset_index(drop=True)
    zeros = {"Income composition of resources": 0, "Schooling": 0}
    frame = frame.replace(zeros, np.nan)
    X, y = encoded(frame), frame[TARGET].to_numpy(dtype=np.float64)
    weights = np.ones(X.shape[1])
    weights[[COUNTRY, YEAR]] = 0.0
    for reach, scale, bandwidth in ((8, 0.2, 1.05), (1e9, 0.5, 1.05)):
        model = CertifiedKernelRegressor(
            [(1.0, same_country(reach)), (scale, "tricube")],
            bandwidth,
            metric="manhattan",
            weights=weights,
            offset=warming,
            empty_value=70.0,
        )
        certified = []
        for split in range(3):
            order = np.random.default_rng(1000 + split).permutation(len(X))
            test, train = order[:200], order[len(X) // 10 :]
            cert = model.fit(X[train], y[train]).certify(X[test], y[test] - 3, y[test] + 3)
            certified.append([float(np.mean(cert.radius >= radius)) for radius in RADII])
        shares = np.mean(certified, axis=0)
        line = {"case": "life kernel median", "country_reach_years": reach, "scale": scale, "bandwidth": bandwidth}
        print(
            json.dumps(
                line | {f"R{radius}": round(100 * share, 1) for radius, share in zip(RADII, shares, strict=True)}
            )
        )


if __name__ == "__main__":
    main()
