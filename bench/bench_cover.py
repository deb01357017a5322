"""How fast and how tight the bounds on overlapping ensembles are, on simulated votes: one JSON line for each case.

Run with ``--quick`` for a few cases. Times are CPU milliseconds for one test row with both of its sides.
"""

from __future__ import annotations

import json
import sys
from time import process_time
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import numpy as np

from poisonproof.costs import Reach
from poisonproof.cover.attack import improved_attack
from poisonproof.cover.cascade import minimum_cover
from poisonproof.cover.first_order import relax
from poisonproof.cover.structure import residual_of, structure_of
from poisonproof.layout import make_layout
from poisonproof.median import Ballot, radii

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from poisonproof.layout import Layout

# Numbers of partitions and spreads of the overlapping ensembles in Hammoudeh and Lowd (2023).
RANDOM: Final = [
    *[(q, 17) for q in (25, 125, 251)],
    *[(q, 13) for q in (51, 301, 701)],
    *[(q, 9) for q in (151, 501, 1001)],
    *[(q, 5) for q in (51, 1501, 3001)],
    *[(q, 13) for q in (25, 101, 201)],
    *[(q, 17) for q in (25, 151, 301)],
]
GROUPED: Final = [
    ("triples", 4, 2, 1000),
    ("paired", 5, 2, 1000),
    ("paired", 8, 2, 1000),
    ("fano", 3, 2, 1000),
    ("triples", 4, 4, 700),
    ("paired", 5, 4, 700),
    ("fano", 3, 4, 700),
]
INSIDE: Final = (0.55, 0.7, 0.85, 0.95)


def simulated(layout: Layout, inside: float, dearest: int, n_rows: int, seed: int) -> tuple[Ballot, Any, Any]:
    """Votes that share block effects, and bounds: a share ``inside`` of them is below, half of the others' above.

    One vote in two costs ``dearest`` on a side, the others a number below it, each as likely.
    """
    rng = np.random.default_rng(seed)
    effects = layout.incidence @ rng.standard_normal((layout.n_blocks, n_rows))
    width = np.sqrt(np.diff(layout.incidence.indptr))[:, None]
    votes = 0.5 * effects / width + np.sqrt(0.75) * rng.standard_normal((layout.n_submodels, n_rows))
    ends = [np.repeat(votes[None], dearest, axis=0) for _ in range(2)]
    for end, beyond in zip(ends, (-np.inf, np.inf), strict=True):
        cost = np.where(rng.random(votes.shape) < 0.5, dearest, rng.integers(1, dearest + (dearest == 1), votes.shape))
        for level in range(1, dearest):
            end[level][cost <= level] = beyond
    ordered = np.sort(votes, axis=0)
    place = round(inside * layout.n_submodels)
    upper = ordered[place - 1]
    lower = ordered[round((1 - inside) / 2 * layout.n_submodels)]
    return Ballot(Reach(*ends), layout.incidence, None, 10**6), lower, upper


def milliseconds(
    ballot: Ballot, lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[list[float], list[bool]]:
    """CPU time of each row by itself, and whether its closed forms left anything to do."""
    times, worked = [], []
    for row in range(len(upper)):
        one = slice(row, row + 1)
        alone = Ballot(Reach(ballot.reach.low[..., one], ballot.reach.high[..., one]), ballot.incidence, None, 10**6)
        with patch("poisonproof.cover.search.relax", wraps=relax) as watched:
            started = process_time()
            radii(alone, lower[one], upper[one])
            times.append(1e3 * (process_time() - started))
        worked.append(watched.called)
    return times, worked


def slope(cases: list[dict[str, Any]], *, working: bool) -> float:
    """The exponent of the time of a row in the number of submodels times the spread, over all rows or those at work."""
    points = [
        (case["n_submodels"] * case["spread"], time)
        for case in cases
        for time, worked in zip(case["times"], case["worked"], strict=True)
        if worked or not working
    ]
    sizes, times = np.log(np.array(points)).T
    return round(float(np.polyfit(sizes, times, 1)[0]), 3)


def tightness(ballot: Ballot, upper: NDArray[np.float64], moves: int) -> list[float]:
    """Proved bound over the cost of the best attack found with ``moves`` moves, one side."""
    costs = np.count_nonzero(ballot.reach.high <= upper, axis=0)
    quota = np.full(len(upper), (len(costs) + 1) // 2)
    found = minimum_cover(ballot.incidence, costs, quota, witness=True)
    structure = structure_of(ballot.incidence)
    shares = []
    for row in range(len(upper)):
        missing = int(quota[row] - np.count_nonzero(costs[:, row] == 0))
        residual = residual_of(structure, costs[:, row], None, None, missing)
        start = found.witness[[row]].toarray()[0]  # type: ignore[index]
        best = improved_attack(residual, start, int(found.lower[row]), moves)
        shares.append(int(found.lower[row]) / int(best.sum()))
    return shares


def random_case(q: int, d: int, dearest: int, *, moves: int) -> dict[str, Any]:
    """Speed and tightness for one random layout, over all shares of votes inside."""
    layout = make_layout(q, d, "random")
    times, worked, shares = [], [], []
    for inside in INSIDE:
        ballot, lower, upper = simulated(layout, inside, dearest, 2, q)
        of_rows, at_work = milliseconds(ballot, lower, upper)
        times += of_rows
        worked += at_work
        shares += tightness(ballot, upper, moves)
    return {
        "case": "random",
        "n_partitions": q,
        "spread": d,
        "max_cost": dearest,
        "n_submodels": layout.n_submodels,
        "median_ms": round(float(np.median(times)), 2),
        "worst_ms": round(max(times), 2),
        "mean_bound_over_attack": round(float(np.mean(shares)), 4),
        "worst_bound_over_attack": round(min(shares), 4),
        "times": times,
        "worked": worked,
        "shares": shares,
    }


def grouped_case(name: str, d: int, dearest: int, n_submodels: int) -> dict[str, Any]:
    """Speed for one grouped layout, rows in batches of 50 as an ensemble asks for them."""
    layout = make_layout(n_submodels // d, d, name)
    times = []
    for inside in INSIDE:
        ballot, lower, upper = simulated(layout, inside, dearest, 50, d)
        started = process_time()
        radii(ballot, lower, upper)
        times.append(1e3 * (process_time() - started) / 50)
    return {
        "case": "grouped",
        "layout": name,
        "spread": d,
        "max_cost": dearest,
        "n_submodels": layout.n_submodels,
        "median_ms": round(float(np.median(times)), 2),
        "worst_ms": round(max(times), 2),
    }


def warm_up() -> None:
    """Compile everything."""
    for name, d in (("random", 3), ("triples", 4)):
        for dearest in (1, 2, 4):
            ballot, lower, upper = simulated(make_layout(7, d, name), 0.9, dearest, 2, 0)
            radii(ballot, lower, upper)
            tightness(ballot, upper, 100)


def main(*, quick: bool) -> None:
    """Print every case, then a summary of the random layouts for each cost."""
    warm_up()
    for name, d, dearest, n_submodels in GROUPED[:2] if quick else GROUPED:
        print(json.dumps(grouped_case(name, d, dearest, n_submodels)), flush=True)
    for dearest in (1, 2):
        cases = [random_case(q, d, dearest, moves=200_000) for q, d in (RANDOM[::6] if quick else RANDOM)]
        times = [time for case in cases for time in case["times"]]
        shares = [share for case in cases for share in case["shares"]]
        for case in cases:
            print(json.dumps({key: value for key, value in case.items() if not isinstance(value, list)}), flush=True)
        summary = {
            "case": "random, all",
            "max_cost": dearest,
            "median_ms": round(float(np.median(times)), 2),
            "worst_ms": round(max(times), 2),
            "mean_bound_over_attack": round(float(np.mean(shares)), 4),
            "slope_over_all_rows": slope(cases, working=False),
            "slope_over_rows_at_work": slope(cases, working=True),
        }
        print(json.dumps(summary), flush=True)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
