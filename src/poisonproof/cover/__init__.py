"""The attacker's problem and its solvers. Nothing here knows data or models: only costs, blocks and votes."""

from poisonproof.cover.cascade import Effort, minimum_cover
from poisonproof.cover.problem import CoverBounds

__all__ = ["CoverBounds", "Effort", "minimum_cover"]
