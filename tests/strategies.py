"""What the property tests draw from: small ballots, small tables, and attackers that really poison."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from poisonproof.costs import Reach
from poisonproof.median import Ballot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from poisonproof import CertifiedRegressor


def random_ballot(rng: np.random.Generator, n_submodels: int, max_cost: int, *, capacity: bool = False) -> Ballot:
    """One row's ballot with rounded votes, so that ties are common."""
    votes = rng.integers(-3, 4, (n_submodels, 1)).astype(float)
    steps = rng.integers(0, 3, (2, max_cost - 1, n_submodels, 1)).astype(float)
    reach = Reach.around(votes, votes - np.cumsum(steps[0], axis=0), votes + np.cumsum(steps[1], axis=0))
    units = rng.integers(0, max_cost + 2, n_submodels) if capacity else None
    n_units = 10**6 if units is None else int(units.sum())
    return Ballot(reach, None, units, n_units)


def attacked_medians(ballot: Ballot, budget: int) -> Iterator[float]:
    """Every extreme median that exactly ``budget`` modifications can give, by trying all ways to spend them."""
    max_cost, n_submodels, _ = ballot.reach.high.shape
    limits = [budget] * n_submodels if ballot.capacity is None else ballot.capacity.tolist()
    for spent in product(*(range(min(limit, budget) + 1) for limit in limits)):
        if sum(spent) == budget:
            for ends, beyond in ((ballot.reach.high, np.inf), (ballot.reach.low, -np.inf)):
                votes = [ends[k, t, 0] if k < max_cost else beyond for t, k in enumerate(spent)]
                yield float(np.median(votes))


def radius_by_enumeration(ballot: Ballot, lower: float, upper: float, limit: int) -> int:
    """The true radius of one row, or ``limit`` where it is at least that."""
    for budget in range(limit + 1):
        if any(not lower <= middle <= upper for middle in attacked_medians(ballot, budget)):
            return budget - 1
    return limit


LEARNERS = {
    "mean": DummyRegressor(),
    "ridge": Ridge(alpha=1e-2),
    "tree": DecisionTreeRegressor(max_depth=2),
    "neighbour": KNeighborsRegressor(1),
}


def random_table(rng: np.random.Generator, n_rows: int, n_features: int = 2) -> tuple[NDArray[Any], NDArray[Any]]:
    """A noisy linear table with some repeated feature rows."""
    X = rng.normal(size=(n_rows, n_features)).round(1)
    y = X.sum(axis=1) + rng.normal(scale=0.3, size=n_rows)
    return X, y.round(2)


@dataclass
class Poisoner:
    """Finds rows that fall into chosen blocks, so that an attack hits where it hurts."""

    model: CertifiedRegressor
    rng: np.random.Generator

    def rows_in(self, blocks: NDArray[np.int64], spread: float = 1.0) -> NDArray[np.float64]:
        """A new row for each of these blocks."""
        found: dict[int, NDArray[np.float64]] = {}
        while len(found) < len(blocks):
            candidates = self.rng.normal(scale=spread, size=(8 * self.model.n_blocks_, self.model.n_features_in_))
            for row, block in zip(candidates, self.model.blocks(candidates), strict=True):
                if block in blocks:
                    found.setdefault(int(block), row)
        return np.array([found[int(block)] for block in blocks]).reshape(len(blocks), self.model.n_features_in_)
