"""A branch and bound whose leaves are closed by loads that are checked in integers: what it settles is proved."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poisonproof.cover.closed_form import gain_bound
from poisonproof.cover.dual import dual_bound
from poisonproof.cover.first_order import relax
from poisonproof.cover.structure import Residual, Structure, residual_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["Settled", "settle"]


class Settled(NamedTuple):
    """Whether no attack is cheaper than the goal, one that is if it was met, and how many nodes that took."""

    proved: bool
    touched: Ints | None
    nodes: int


class _Node(NamedTuple):
    """What is left once blocks were touched so often, where ``caps`` says how much more each can be touched."""

    costs: Ints
    caps: Ints
    quota: int
    touched: Ints


def settle(residual: Residual, goal: int, *, nodes: int, iterations: int, deadline: float) -> Settled:
    """Whether every attack costs ``goal`` or more.

    Parameters
    ----------
    residual : Residual
        The problem.
    goal : int
        What is to be proved.
    nodes, iterations : int
        How many nodes to visit at most, and how many steps each relaxation may take.
    deadline : float
        When to stop, in the time of :func:`time.perf_counter`.

    Notes
    -----
    A node is split by the block whose touch promises most: either it is touched once more, or never again.
    """
    structure = Structure(*residual[:4])
    waiting = [_Node(residual.costs, residual.caps, residual.quota, np.zeros_like(residual.caps))]
    visited = 0
    while waiting and visited < nodes and perf_counter() <= deadline:
        node = waiting.pop()
        visited += 1
        if node.quota <= 0:
            return Settled(proved=False, touched=node.touched, nodes=visited)
        open_votes = (node.costs > 0) & (node.costs <= structure.capacity(node.caps))
        if residual.gains[open_votes].sum() < node.quota:
            continue
        costs = np.where(open_votes, node.costs, 0)
        left = residual_of(structure, costs, residual.gains, node.caps, node.quota)
        # What is left costs 1 at least, so no node is split that would have to cost more than the goal.
        if not _costs_at_least(left, goal - int(node.touched.sum()), iterations):
            waiting += _split(structure, residual.gains, node._replace(costs=costs))
    return Settled(proved=not waiting, touched=None, nodes=visited)


def _costs_at_least(residual: Residual, goal: int, iterations: int) -> bool:
    """Whether a lower bound reaches the goal."""
    if gain_bound(residual) >= goal:
        return True
    found = relax(residual, iterations=iterations, stop_at=goal - 1 + 1e-6)
    return dual_bound(residual, found.loads) >= goal


def _split(structure: Structure, gains: Ints, node: _Node) -> list[_Node]:
    """The node without further touches of one block, and the node with one more; together all there is."""
    shares = np.where(node.costs > 0, gains / np.maximum(node.costs, 1), 0.0)
    promise = np.add.reduceat(np.append(shares[structure.submodels], 0.0), structure.block_start[:-1])
    promise[(np.diff(structure.block_start) == 0) | (node.caps == 0)] = -1.0
    best = int(np.argmax(promise))
    own = structure.submodels[structure.block_start[best] : structure.block_start[best + 1]]
    own = own[node.costs[own] > 0]
    costs, more, fewer, touched = node.costs.copy(), node.caps.copy(), node.caps.copy(), node.touched.copy()
    costs[own] -= 1
    touched[best] += 1
    more[best] -= 1
    fewer[best] = 0
    pushed_out = int(gains[own[costs[own] == 0]].sum())
    return [node._replace(caps=fewer), _Node(costs, more, node.quota - pushed_out, touched)]
