"""What it takes to move one vote: one engine per way of finding out, all with the same protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poisonproof.costs.protocol import CostEngine, Reach
from poisonproof.costs.refit import RefitCosts
from poisonproof.errors import ThreatError

if TYPE_CHECKING:
    from poisonproof.threat import Threat

__all__ = ["CostEngine", "Reach", "engine_for"]


def engine_for(estimator: object, threat: Threat, max_cost: int) -> CostEngine | None:
    """The engine that finds costs up to ``max_cost`` for this estimator and threat; None for unit costs.

    Raises
    ------
    ThreatError
        No engine serves the estimator under this threat.
    """
    del estimator  # every estimator can be refitted
    if max_cost == 1:
        return None
    if threat.unit == "source":
        # Leaving out whole sources proves nothing about a source that loses, gains or changes some of its rows.
        raise ThreatError(
            f"max_cost={max_cost} counts rows, but the threat counts sources; use max_cost=1 with partition_by='source'"
        )
    if threat.moves != "delete":
        raise ThreatError(
            f"max_cost={max_cost} with threat={threat.moves!r}: leaving rows out and refitting proves costs for deletions only; "
            "use threat='delete', or max_cost=1"
        )
    return RefitCosts(max_cost)
