"""The neighbours are those of a full sort by distance and content, whatever else is in the tables."""

from __future__ import annotations

import numpy as np
import pytest

from poisonproof.neighbors import Metric
from poisonproof.neighbors.search import Search


def full_sort(metric: Metric, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.argsort(metric.distances(queries, rows), axis=1, kind="stable")


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_nearest_are_the_head_of_a_stable_sort(levels: int) -> None:
    rng = np.random.default_rng(levels)
    rows, queries = (rng.integers(0, levels, (size, 3)).astype(float) for size in (400, 30))
    search = Search(Metric("manhattan"), rows)
    expected = full_sort(search.metric, queries, rows)
    for count in (1, 2, 57, 399, 400):
        np.testing.assert_array_equal(search.nearest(queries, count), expected[:, :count])


def test_infinite_distances_are_ties_like_any_others() -> None:
    rows = np.array([[1e308], [-1e308], [1.0], [1e308], [1e300]])
    search = Search(Metric("manhattan"), rows)
    np.testing.assert_array_equal(search.nearest(np.array([[-1e308]]), 5), [[1, 2, 4, 0, 3]])


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_chunks_cover_every_query_in_order(monkeypatch: pytest.MonkeyPatch, n_jobs: int | None) -> None:
    monkeypatch.setattr("poisonproof.neighbors.search._CHUNK_BYTES", 8 * 5 * 3)
    search = Search(Metric(), np.zeros((5, 1)))
    windows = search.each_chunk(lambda window: window, 10, n_jobs)
    assert windows == [slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 10)]
