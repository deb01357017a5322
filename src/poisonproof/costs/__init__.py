"""What it takes to move one vote: one engine per way of finding out, all with the same protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from poisonproof.costs.protocol import CostEngine, Reach
from poisonproof.costs.refit import RefitCosts
from poisonproof.costs.smoother import SmootherCosts, recipe_of
from poisonproof.costs.trees import TreeCosts
from poisonproof.errors import ThreatError
from poisonproof.learners.boosted_trees import BoostedTreesRegressor

if TYPE_CHECKING:
    from poisonproof.threat import Threat

__all__ = ["CostEngine", "Reach", "engine_for"]

_ABLE: Final = (
    "costs above 1 under this threat are known for KernelRidge with declared ranges "
    "(relabel: target_range; insert, insert+delete: ranges and target_range)"
)


def engine_for(estimator: object, threat: Threat, max_cost: int) -> CostEngine | None:
    """The engine that finds costs up to ``max_cost`` for this estimator and threat; None for unit costs.

    Linear smoothers (``Ridge``, ``KernelRidge``, pipelines and target transforms around them that learn nothing from
    rows) are served by formula, boosted trees by growing their replicas together, every other estimator by leave-out
    refits; the last two for deletions only.

    Raises
    ------
    ThreatError
        No engine serves the estimator under this threat.
    """
    if max_cost == 1:
        return None
    if threat.unit == "source":
        # Leaving out whole sources proves nothing about a source that loses, gains or changes some of its rows.
        raise ThreatError(
            f"max_cost={max_cost} counts rows, but the threat counts sources; use max_cost=1 with partition_by='source'"
        )
    recipe = recipe_of(estimator)
    if not isinstance(recipe, str):
        return SmootherCosts(recipe, max_cost, threat.moves)
    if threat.moves != "delete":
        raise ThreatError(
            f"max_cost={max_cost} with threat={threat.moves!r}: {recipe}, and leaving rows out and refitting proves "
            f"costs for deletions only; {_ABLE}; use one, or threat='delete', or max_cost=1"
        )
    if type(estimator) is BoostedTreesRegressor:  # exactly: a subclass may compute anything
        return TreeCosts(estimator, max_cost)
    engine = RefitCosts(max_cost)
    engine.method = f"leave-out refits ({recipe})"
    return engine
