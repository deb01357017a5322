"""The fast bound on random layouts beside a mixed-integer solver that is given a minute: one JSON line for each case.

Simulated votes, one side, the numbers of partitions and spreads of Hammoudeh and Lowd (2023) with at most 700
submodels. Run as ``python -m bench.compare_milp [seconds] [share inside …]``; by default 60 seconds and all shares.
"""

from __future__ import annotations

import json
import sys
from time import process_time
from typing import Any, Final

import numpy as np
from bench.bench_cover import INSIDE, simulated

from poisonproof.cover import minimum_cover
from poisonproof.cover.milp import branch_and_bound
from poisonproof.cover.structure import residual_of, structure_of
from poisonproof.layout import make_layout

SMALL: Final = [(51, 5), (25, 13), (25, 17), (51, 13)]


def compared(q: int, d: int, dearest: int, inside: float, seconds: float) -> dict[str, Any]:
    """The lower bounds of both on one row, and the cheaper of their attacks."""
    layout = make_layout(q, d, "random")
    ballot, _, upper = simulated(layout, inside, dearest, 1, q)
    costs = np.count_nonzero(ballot.reach.high <= upper, axis=0)
    quota = np.array([(len(costs) + 1) // 2])
    started = process_time()
    fast = minimum_cover(layout.incidence, costs, quota)
    fast_seconds = process_time() - started
    missing = int(quota[0] - np.count_nonzero(costs == 0))
    residual = residual_of(structure_of(layout.incidence), costs[:, 0], None, None, missing)
    # No cutoff is given: the solver sees the problem as it is.
    started = process_time()
    theirs = branch_and_bound(residual, int(residual.caps.sum()) + 1, seconds)
    attacks = [int(fast.upper[0])] + ([] if theirs.touched is None else [int(theirs.touched.sum())])
    return {
        "n_partitions": q,
        "spread": d,
        "n_submodels": len(costs),
        "inside": inside,
        "max_cost": dearest,
        "fast": int(fast.lower[0]),
        "milp": theirs.lower,
        "best_attack": min(attacks),
        "fast_attack": attacks[0],
        "never_smaller": bool(fast.lower[0] >= theirs.lower),
        "fast_s": round(fast_seconds, 3),
        "milp_s": round(process_time() - started, 1),
        "milp_status": theirs.status,
    }


def main(seconds: float, shares: tuple[float, ...]) -> None:
    """Print every case, then whether the fast bound was ever the smaller one."""
    minimum_cover(make_layout(7, 3, "random").incidence, np.ones((21, 1), dtype=np.int64), np.array([11]))  # compile
    cases = []
    for inside in shares:
        for dearest in (1, 2):
            for q, d in SMALL:
                cases.append(compared(q, d, dearest, inside, seconds))
                print(json.dumps(cases[-1]), flush=True)
    smaller = sum(not case["never_smaller"] for case in cases)
    print(json.dumps({"case": "all", "seconds": seconds, "cases": len(cases), "smaller": smaller}), flush=True)


if __name__ == "__main__":
    numbers = [float(one) for one in sys.argv[1:]]
    main(numbers[0] if numbers else 60.0, tuple(numbers[1:]) or INSIDE)
