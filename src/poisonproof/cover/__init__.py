"""The attacker's problem and its solvers. Nothing here knows data or models: only costs, blocks and votes."""

from poisonproof.cover.cascade import Effort, check_effort, minimum_cover, solve
from poisonproof.cover.problem import Bound, CoverBounds, CoverProblem

__all__ = ["Bound", "CoverBounds", "CoverProblem", "Effort", "check_effort", "minimum_cover", "solve"]
