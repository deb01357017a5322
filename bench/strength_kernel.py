"""How much of a panel a kernel median certifies when it may use what everybody knows: which rows are of one country.

Three splits of 200 test rows; a row counts at radius R where no R insertions and deletions move its prediction more
than three years from the truth.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np

from poisonproof.datasets import load_dataset, preset
from poisonproof.datasets.recipes.life import SameCountry
from poisonproof.errors import PoisonproofError

if TYPE_CHECKING:
    from poisonproof.datasets.recipes import Prepared

RADII: Final = (1, 5, 10, 15, 20, 30, 40, 60, 90, 120)
# After how many years two rows of one country have nothing in common, and how much other countries count.
CASES: Final[tuple[tuple[float | None, float], ...]] = ((8.0, 0.2), (None, 0.5))


def certified(rows: Prepared, reach: float | None, scale: float) -> dict[str, float]:
    """Percentages certified at each radius."""
    model = preset("life", "low").build()
    model.set_params(similarity=[(1.0, SameCountry(reach)), (scale, "tricube")])
    radii = []
    for seed in range(3):
        shuffled = np.random.default_rng(1000 + seed).permutation(len(rows))
        test, train = shuffled[:200], shuffled[len(rows) // 10 :]
        model.fit(rows.X[train], rows.y[train])
        radii.append(model.certify(rows.X[test], rows.lower[test], rows.upper[test]).radius)
    return {f"R{radius}": round(100 * float((np.concatenate(radii) >= radius).mean()), 1) for radius in RADII}


def main() -> None:
    """Print one JSON line for each case."""
    try:
        rows = load_dataset("life", "ours")
    except PoisonproofError as absent:
        print(json.dumps({"case": "life kernel median", "skipped": str(absent)}))
        return
    for reach, scale in CASES:
        line = {"case": "life kernel median", "country_reach_years": reach, "scale": scale}
        print(json.dumps(line | certified(rows, reach, scale)), flush=True)


if __name__ == "__main__":
    main()
