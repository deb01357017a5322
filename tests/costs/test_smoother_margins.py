from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from poisonproof.costs.smoother.margins import rounding_margin


def margin_of(weights: Any, apart: Any, **errors: float) -> Any:
    seen, rows = np.array([[0.0, 2.0], [3.0, 4.0], [0.0, 0.0]]), np.array([[1.0], [0.0], [-7.0]])
    chosen = {"relative": 0.0, "per_seen": 0.0, "per_row": 0.0, "absolute": 0.0, "least": 0.0} | errors
    n_rows = len(weights)
    return rounding_margin(np.array(weights), np.array(apart), seen[:n_rows], rows[:n_rows], *chosen.values())


def test_margin_is_the_estimate_or_the_least_and_what_was_seen() -> None:
    weights, apart = [[3.0, -4.0], [0.3, 0.4], [0.0, 0.0]], [0.0, -2.0, 1.0]
    assert margin_of(weights, apart, relative=0.1, absolute=0.01, least=0.2) == pytest.approx([0.51, 8.2, 4.2])
    assert margin_of(weights, [0.0] * 3, per_seen=0.1, per_row=1.0) == pytest.approx([1.2, 0.5, 7.0])


def test_margin_without_training_rows_is_the_least() -> None:
    assert margin_of(np.empty((2, 0)), [0.0, 0.0], relative=1.0, least=0.5).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("weight", "apart"), [(np.nan, 0.0), (np.inf, 0.0), (1.0, np.nan), (1.0, np.inf)])
def test_nothing_is_claimed_where_a_number_is_not_finite(weight: float, apart: float) -> None:
    assert not np.isfinite(margin_of([[weight]], [apart], relative=1.0, least=0.5)).any()
