"""What a run-off withstands where one modification touches several submodels, or where touching one is not enough.

Every attack on a run-off has to solve some cover problems at once, so it costs at least as much as the dearest of them.
An attack that is carried out on the counts bounds the cost from above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from poisonproof.compiled import njit
from poisonproof.contest import NEVER, Cover, cheapest_goal
from poisonproof.cover.structure import structure_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from poisonproof.contest import Ground, Outcome
    from poisonproof.cover import Effort
    from poisonproof.plurality import Poll

__all__ = ["Race", "race_bounds"]


@dataclass(frozen=True, eq=False)
class Race:
    """A run-off and who is to win it.

    Parameters
    ----------
    poll : Poll
        First choices as votes; every class is declared.
    ranks : int array (n_classes, n_submodels, n_rows)
        The place of each class in the order of each submodel.
    mine : int array (n_submodels, n_rows)
        The place of the target.
    target : int64 array (n_rows,)
        The class to certify.
    counts : int64 array (n_classes, n_rows)
        First choices for each class.
    """

    poll: Poll
    ranks: NDArray[np.integer]
    mine: NDArray[np.integer]
    target: NDArray[np.int64]
    counts: NDArray[np.int64]

    def passing(self, rival: int, rows: NDArray[np.intp]) -> Cover:
        """The rival comes before the target in round 1."""
        aim = self.target[rows]
        gap = self.counts[aim, rows] - self.counts[rival, rows] + (aim < rival)
        return self._overtaking(aim, rival, gap, rows)

    def beating(self, third: int, rival: int, rows: NDArray[np.intp]) -> Cover:
        """The rival comes before a third class in round 1; nothing to do where that is the target."""
        gap = self.counts[third, rows] - self.counts[rival, rows] + (third < rival)
        return self._overtaking(np.array(third), rival, np.where(self.target[rows] == third, 0, gap), rows)

    def passing_both(self, one: int, two: int, rows: NDArray[np.intp]) -> Cover:
        """Two rivals close their gaps to the target together: a vote for it counts 3, for a fourth class 1."""
        votes, aim = self.poll.votes[:, rows], self.target[rows]
        gains = np.where(votes == aim, 3, ~np.isin(votes, (one, two))).astype(np.int8)
        return Cover(gains, self.costs(rows), self.passing(one, rows).quota + self.passing(two, rows).quota)

    def preferring(self, rival: int, rows: NDArray[np.intp]) -> Cover:
        """Enough submodels that prefer the target over the rival no longer do."""
        prefer = self.mine[:, rows] < self.ranks[rival][:, rows]
        excess = 2 * prefer.sum(axis=0) - self.poll.n_submodels + (self.target[rows] < rival)
        return Cover(prefer.view(np.int8), self.costs(rows), (excess + 1) // 2)

    def _overtaking(
        self, ahead: NDArray[np.int64], rival: int, gap: NDArray[np.int64], rows: NDArray[np.intp]
    ) -> Cover:
        votes = self.poll.votes[:, rows]
        gains = (votes == ahead).astype(np.int8) + (votes != rival)
        return Cover(gains, self.costs(rows), gap)

    def costs(self, rows: NDArray[np.intp]) -> NDArray[np.integer]:
        """What it takes to change each submodel's order."""
        return self.poll.joining(0)[:, rows]


def race_bounds(
    race: Race, predicted: NDArray[np.bool_], *, effort: Effort = "fast", time_limit: float | None = None
) -> Outcome:
    """Bounds on what it takes to change the winner of each row's run-off, where the target wins it."""
    n_classes, target = race.poll.n_classes, race.target
    covers: list[Callable[[NDArray[np.intp]], Cover]] = []
    goals: list[list[int]] = []
    rivals = list(range(n_classes))
    covers += [partial(race.passing, rival) for rival in rivals]
    for rival in rivals:
        needs = [partial(race.beating, third, rival) for third in rivals if third != rival]
        goals.append(list(range(len(covers), len(covers) + 1 + len(needs))))
        covers += [partial(race.preferring, rival), *needs]
    pairs = list(combinations(rivals, 2))
    for one, two in pairs:
        goals.append([one, two, len(covers)])
        covers.append(partial(race.passing_both, one, two))
    aims = np.array([(rival, -1) for rival in rivals] + pairs)
    open_goals = predicted & (aims[:, :1] != target) & (aims[:, 1:] != target)
    ground = race.poll.ground()
    outcome = cheapest_goal(ground, covers, goals, open_goals, effort=effort, time_limit=time_limit)
    rows = np.flatnonzero(predicted & (outcome.lower < NEVER))
    return replace(outcome, upper=_attacks(race, ground, rows, aims[outcome.goal]), method=f"run-off, {outcome.method}")


def _attacks(race: Race, ground: Ground, rows: NDArray[np.intp], aims: NDArray[np.int64]) -> NDArray[np.int64]:
    """The cost of an attack of the kind that looks cheapest on each of the rows, or of another where that one fails."""
    found = np.full(len(race.target), NEVER)
    part = structure_of(ground.incidence)
    caps = np.full(part.n_blocks, NEVER) if ground.caps is None else ground.caps.astype(np.int64)
    costs = race.costs(np.arange(len(race.target)))
    movable = ground.movable(costs)
    left = costs.astype(np.int64) if movable is None else np.where(movable, costs, -1).astype(np.int64)
    for row in rows.tolist():
        aim = int(race.target[row])
        rivals = [(rival, -1) for rival in range(race.poll.n_classes) if rival != aim]
        for one, two in [tuple(aims[row].tolist()), *rivals]:
            prefer = race.mine[:, row] < race.ranks[one, :, row]
            votes, have = race.poll.votes[:, row].astype(np.int64), race.counts[:, row].copy()
            found[row] = _attack(
                part.block_start, part.submodels, caps.copy(), left[:, row].copy(), votes, prefer, have, aim, one, two
            )
            if found[row] < NEVER:
                break
    return found


@njit
def _gap(have, ahead, rival):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """How many votes the rival is short of coming before another class."""
    return have[ahead] - have[rival] + (ahead < rival)


@njit
def _behind(have, aim, one):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """How many votes ``one`` is short of coming before every class but the target, 0 at least."""
    most = 0
    for vote in range(len(have)):
        if vote not in (aim, one):
            most = max(most, _gap(have, vote, one))
    return most


@njit
def _worth_to_win(left, votes, prefer, have, aim, one, short, worth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """How much turning each submodel helps ``one`` to reach round 2 and to win it, per touch; into ``worth``."""
    behind = _behind(have, aim, one) > 0
    for t in range(len(votes)):
        worth[t] = 0.0
        if left[t] > 0 and votes[t] != one:
            worth[t] = 2.0 * (short > 0 and prefer[t]) + behind
            if votes[t] != aim and _gap(have, votes[t], one) > 0:
                worth[t] += 1.0
            worth[t] /= left[t]


@njit
def _worth_to_oust(left, votes, aim, one, two, worth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """How much turning each submodel closes the gaps of both rivals to the target, per touch; into ``worth``."""
    for t in range(len(votes)):
        worth[t] = 0.0
        if left[t] > 0 and votes[t] not in (one, two):
            worth[t] = (3.0 if votes[t] == aim else 1.0) / left[t]


@njit
def _most_worth(block_start, submodels, caps, worth):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  compiled
    """The block whose submodels are worth most together, -1 where none is worth anything."""
    best, most = -1, 0.0
    for j in range(len(caps)):
        total = 0.0
        for i in range(block_start[j], block_start[j + 1]):
            total += worth[submodels[i]]
        if caps[j] > 0 and total > most:
            best, most = j, total
    return best


@njit
def _attack(block_start, submodels, caps, left, votes, prefer, have, aim, one, two):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917  compiled
    """How often a greedy attacker touches blocks until ``one`` wins, or both rivals are above the target.

    ``left`` is what it still takes to turn each submodel, -1 where nothing does; ``two`` is -1 where ``one`` is to win.
    """
    spent = np.int64(0)
    worth = np.empty(len(votes))
    while True:
        if two >= 0:
            if _gap(have, aim, one) <= 0 and _gap(have, aim, two) <= 0:
                return spent
            _worth_to_oust(left, votes, aim, one, two, worth)
        else:
            short = 2 * np.count_nonzero(prefer) - len(votes) + (aim < one)
            if short <= 0 and _behind(have, aim, one) <= 0:
                return spent
            _worth_to_win(left, votes, prefer, have, aim, one, short, worth)
        best = _most_worth(block_start, submodels, caps, worth)
        if best < 0:
            return np.int64(NEVER)
        caps[best] -= 1
        spent += 1
        for i in range(block_start[best], block_start[best + 1]):
            t = submodels[i]
            left[t] -= 1
            if left[t] == 0:
                to = two if two >= 0 and _gap(have, aim, two) > _gap(have, aim, one) else one
                have[votes[t]] -= 1
                have[to] += 1
                votes[t], prefer[t] = to, False
