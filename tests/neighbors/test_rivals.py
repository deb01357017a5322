from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from poisonproof.neighborhood import NEVER
from poisonproof.neighbors.rivals import UNDECLARED, Ballots, pluralities, withstood

if TYPE_CHECKING:
    from collections.abc import Iterator

    from poisonproof.threat import Moves

Vote = tuple[float, int]

UNSEEN = -0.5  # a label nobody declared, smaller than all: the smallest label wins ties


def winner(votes: list[Vote], empty: float) -> float:
    counts: dict[float, int] = {}
    for label, weight in votes:
        if weight:
            counts[label] = counts.get(label, 0) + weight
    return min(counts, key=lambda label: (-counts[label], label)) if counts else empty


def attacked(
    votes: tuple[Vote, ...], spent: int, moves: Moves, heaviest: int, labels: list[float]
) -> Iterator[list[Vote]]:
    if moves == "relabel":
        for chosen in combinations(range(len(votes)), spent):
            for new in product(labels, repeat=spent):
                changed = list(votes)
                for place, label in zip(chosen, new, strict=True):
                    changed[place] = (label, votes[place][1])
                yield changed
        return
    options = list(product(labels, range(1, heaviest + 1)))
    for inserted in {"insert": [spent], "delete": [0], "insert+delete": range(spent + 1)}[moves]:
        if spent - inserted <= len(votes):
            for kept in combinations(votes, len(votes) - spent + inserted):
                yield from ([*kept, *new] for new in combinations_with_replacement(options, inserted))


SHAPES: list[tuple[Moves, int, int, int]] = [  # threat, heaviest weight, largest size, most modifications tried
    ("insert+delete", 1, 6, 4),
    ("insert+delete", 2, 5, 3),
    ("insert", 1, 9, 5),
    ("insert", 2, 6, 3),
    ("delete", 1, 9, 9),
    ("delete", 4, 8, 8),
    ("relabel", 1, 6, 6),
    ("relabel", 3, 5, 5),
    ("relabel", 7, 6, 6),
]


@pytest.mark.parametrize("n_classes", [1, 2, 3])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("moves", "heaviest", "largest", "limit"), SHAPES)
def test_radius_equals_enumeration(  # noqa: PLR0917  pytest gives them by name
    moves: Moves, heaviest: int, largest: int, limit: int, declared: bool, n_classes: int
) -> None:
    rng = np.random.default_rng([heaviest, largest, n_classes, declared])
    labels = [float(label) for label in range(n_classes)] + ([] if declared else [UNSEEN])
    for case in range(70):
        size = case % (largest + 1)
        # Now and then the weights lie far apart, so that a third class has the rows worth turning.
        steps = [1, heaviest] if case % 2 else range(int(heaviest == 1), heaviest + 1)
        drawn = rng.integers(0, n_classes, size), rng.choice(np.array(steps), size)
        votes = tuple((float(label), int(weight)) for label, weight in zip(*drawn, strict=True))
        empty = int(rng.integers(0, n_classes))
        budgets = min(limit, size) if moves in ("delete", "relabel") else limit
        predicted = winner(list(votes), float(empty))
        held = budgets
        for spent in range(1, budgets + 1):
            if any(winner(made, float(empty)) != predicted for made in attacked(votes, spent, moves, heaviest, labels)):
                held = spent - 1
                break
        classes = np.array([int(label) for label, _ in votes], dtype=np.int64)
        weights = np.array([[weight for _, weight in votes]], dtype=np.int32).reshape(1, -1)
        ballots = Ballots(classes, weights, n_classes, heaviest, empty, not declared)
        assert pluralities(ballots)[0] == predicted
        (found,) = withstood(ballots, np.array([int(predicted)]), moves)
        if held == budgets:
            complete = moves in ("delete", "relabel") or (n_classes == 1 and declared)
            assert found == NEVER if complete else found >= held
        else:
            assert found == held, (votes, empty)
        others = np.array([label for label in range(-1, n_classes) if label != predicted])
        repeated = ballots._replace(weights=np.repeat(weights, len(others), axis=0))
        assert (withstood(repeated, others, moves) == -1).all()


@pytest.mark.parametrize("target", [0, 1, 2])
def test_a_heavy_row_of_a_third_class_is_worth_turning(target: int) -> None:
    first, second = (label for label in range(3) if label != target)
    classes = np.array([target] * 5 + [first, second])
    ballots = Ballots(classes, np.array([[1] * 5 + [3, 3]], dtype=np.int32), 3, 3, 0, open_ended=False)
    # 5 against 3 and 3: together the rivals have 6, while turning one light row leaves 4 against 4 at best.
    assert withstood(ballots, np.array([target]), "relabel")[0] == 0
    # A rival that has both heavy rows leaves no third class.
    alone = ballots._replace(
        classes=np.array([target] * 7 + [first]), weights=np.array([[1] * 7 + [3]], dtype=np.int32)
    )
    assert withstood(alone, np.array([target]), "relabel")[0] == 2 - (first < target)


def by_sorting_all_gains(ballots: Ballots, target: int) -> int:
    """What a changed label gains against each rival, largest first, until the lead is lost: no row left out."""
    counts = np.bincount(ballots.classes, weights=ballots.weights[0], minlength=ballots.n_classes).astype(int)
    held: list[int] = []
    for rival in [label for label in range(ballots.n_classes + ballots.open_ended) if label != target]:
        unseen = rival == ballots.n_classes
        lead = counts[target] - (0 if unseen else counts[rival]) - (rival < target or unseen)
        worth = np.where(ballots.classes == target, 2, np.where(ballots.classes == rival, 0, 1))
        gains = np.sort(worth * ballots.weights[0])[::-1]
        held.append(int(np.count_nonzero(np.cumsum(gains) <= lead)))
    return min(held)


@pytest.mark.parametrize("heaviest", [1, 4, 1000, 2**30])
def test_changed_labels_of_many_rows_are_counted_as_if_all_gains_were_sorted(heaviest: int) -> None:
    rng = np.random.default_rng(heaviest)
    for case in range(120):
        n_classes, size = int(rng.integers(2, 8)), int(rng.integers(30, 200))
        classes = rng.choice(n_classes, size, p=rng.dirichlet(np.ones(n_classes)))
        # Few heavy rows and many light ones, half of them absent in every other case.
        weights = np.ceil(heaviest * rng.beta(0.3, 3, size)).astype(np.int32) * (rng.random(size) > case % 2 / 2)
        ballots = Ballots(classes, weights[None].astype(np.int32), n_classes, heaviest, 0, bool(case % 3))
        target = pluralities(ballots)
        assert withstood(ballots, target, "relabel")[0] == by_sorting_all_gains(ballots, int(target[0]))


@pytest.mark.parametrize("moves", ["insert+delete", "insert", "delete", "relabel"])
def test_nothing_is_certified_of_an_empty_set_whose_class_nobody_declared(moves: Moves) -> None:
    ballots = Ballots(np.array([1]), np.zeros((1, 1), dtype=np.int32), 2, 1, UNDECLARED, open_ended=True)
    assert withstood(ballots, np.array([0]), moves)[0] == 0


def test_deletions_never_empty_a_set_into_an_undeclared_class() -> None:
    ballots = Ballots(np.zeros(3, dtype=np.int64), np.ones((1, 3), dtype=np.int32), 1, 1, UNDECLARED, open_ended=True)
    assert withstood(ballots, np.array([0]), "delete")[0] == 2
