from __future__ import annotations

import numpy as np
import pytest

from poisonproof.costs.smoother.margins import rounding_margin


def test_margin_is_the_estimate_or_the_least_and_what_was_seen() -> None:
    weights = np.array([[3.0, -4.0], [0.3, 0.4], [0.0, 0.0]])
    apart = np.array([0.0, -2.0, 1.0])
    margin = rounding_margin(weights, apart, 0.1, 0.01, 0.2)
    assert margin == pytest.approx([0.51, 8.2, 4.2])


def test_margin_without_training_rows_is_the_least() -> None:
    assert rounding_margin(np.empty((2, 0)), np.zeros(2), 1.0, 0.0, 0.5).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("weight", "apart"), [(np.nan, 0.0), (np.inf, 0.0), (1.0, np.nan), (1.0, np.inf)])
def test_nothing_is_claimed_where_a_number_is_not_finite(weight: float, apart: float) -> None:
    margin = rounding_margin(np.array([[weight]]), np.array([apart]), 1.0, 0.0, 0.5)
    assert not np.isfinite(margin).any()
