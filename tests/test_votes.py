from __future__ import annotations

import io
import signal
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from poisonproof.ensemble import CertifiedClassifier
from poisonproof.errors import ParameterError
from poisonproof.votes import Submodel, each, fit_submodel, in_fixed_shape, make_deterministic, report_constants


class Brittle(RegressorMixin, BaseEstimator):
    """Refuses fewer than three rows, and cannot predict what it is told not to."""

    def __init__(self, mode: str = "raise") -> None:
        self.mode = mode

    def fit(self, X: np.ndarray, _y: np.ndarray) -> Brittle:
        if len(X) < 3:
            raise RuntimeError("too few rows\nreally")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        if self.mode == "raise":
            raise RuntimeError("cannot")
        return np.where(X[:, 0] > 0, np.nan if self.mode == "nan" else np.inf, 2.0)


X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, 2.0, 3.0]


@pytest.mark.parametrize("estimator", [Ridge(), RandomForestRegressor(5, max_depth=3, random_state=0)])
def test_a_vote_does_not_depend_on_the_batch_it_came_in(estimator: Any) -> None:
    submodel = fit_submodel(estimator, 0.0, X, Y)
    queries = np.random.default_rng(1).normal(size=(300, 3))
    together = submodel.vote(queries)
    apart = np.concatenate([submodel.vote(query[None]) for query in queries])
    shifted = submodel.vote(np.concatenate([queries[:17], queries]))[17:]
    assert np.array_equal(together, apart)
    assert np.array_equal(together, shifted)


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 8, 13, 26, 50])
def test_linear_votes_do_not_depend_on_the_place_in_the_batch(n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    rows = rng.normal(size=(60, n_features))
    submodel = fit_submodel(Ridge(), 0.0, rows, rng.normal(size=60))
    query = rng.normal(size=n_features)
    crowd = rng.normal(size=(130, n_features))
    votes = set()
    for place in (0, 1, 2, 3, 5, 64, 126, 127, 128, 129):
        batch = crowd.copy()
        batch[place] = query
        votes.add(float(submodel.vote(batch)[place]))
    assert len(votes) == 1


def test_no_rows_a_refusal_and_a_failed_prediction_vote_the_constant() -> None:
    assert fit_submodel(Ridge(), 7.0, X[:0], Y[:0]).vote(X).tolist() == [7.0] * 40
    refused = fit_submodel(Brittle(), 7.0, X[:2], Y[:2])
    assert (refused.reason, refused.vote(X[:1]).tolist()) == ("refused", [7.0])
    assert fit_submodel(Brittle(), 7.0, X, Y).vote(X[:1]).tolist() == [7.0]


@pytest.mark.parametrize("mode", ["nan", "inf"])
def test_a_vote_that_is_no_number_is_the_constant_in_its_row_alone(mode: str) -> None:
    votes = fit_submodel(Brittle(mode), 7.0, X, Y).vote(np.array([[1.0], [-1.0]]))
    assert votes.tolist() == [7.0, 2.0]


def test_seeds_are_fixed_and_threads_are_one_wherever_they_hide() -> None:
    nested = make_pipeline(StandardScaler(), TransformedTargetRegressor(RandomForestRegressor(n_jobs=4)))
    fixed = make_deterministic(nested)
    parameters = fixed.get_params()
    assert parameters["transformedtargetregressor__regressor__random_state"] == 0
    assert parameters["transformedtargetregressor__regressor__n_jobs"] == 1
    assert nested.get_params()["transformedtargetregressor__regressor__n_jobs"] == 4
    assert make_deterministic(RandomForestRegressor(random_state=5)).random_state == 5


def test_report_says_how_many_and_why() -> None:
    good, empty = fit_submodel(Ridge(), 0.0, X, Y), fit_submodel(Ridge(), 0.0, X[:0], Y[:0])
    refused = fit_submodel(Brittle(), 0.0, X[:2], Y[:2])
    with pytest.warns(
        UserWarning, match=r"2 of 4 submodels have no rows \(there are more partitions than rows\); 1 of 4"
    ):
        report_constants([good, empty, empty, refused], 3, "abstain")
    with pytest.warns(UserWarning, match=r"refused by the estimator \(too few rows\): they vote for peace"):
        report_constants([good, refused], 3, "vote for peace")
    with pytest.warns(UserWarning, match="no message"):
        report_constants([Submodel(None, 0.0, "refused")], 3, "abstain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_constants([good], 3, "abstain")


def test_fixed_shape_calls_with_one_shape_only() -> None:
    shapes = set()

    def first_column(rows: np.ndarray) -> np.ndarray:
        shapes.add(rows.shape)
        return rows[:, 0]

    rows = np.arange(300.0)[:, None]
    assert np.array_equal(in_fixed_shape(first_column, rows), rows[:, 0])
    assert len(shapes) == 1


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_each_keeps_the_order(n_jobs: int | None) -> None:
    assert each(abs, list(range(-50, 0)), n_jobs, "counting") == list(range(50, 0, -1))


def _blocked(_: int) -> set[int]:
    return set(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, [])))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals as POSIX has them")
def test_only_the_parent_hears_an_interrupt() -> None:
    get_reusable_executor().shutdown()  # workers of before may have been started by somebody else
    before = _blocked(0)
    assert all(signal.SIGINT in blocked for blocked in each(_blocked, range(8), 2, "listening"))
    assert _blocked(0) == before


def test_progress_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    each(abs, [1, 2, 3], None, "counting")
    monkeypatch.setattr(sys, "stderr", file)
    each(abs, [1, 2, 3], None, "counting")
    assert "counting" in terminal.getvalue()
    assert file.getvalue() == ""


def test_estimators_that_draw_random_numbers_to_predict_are_refused() -> None:
    X = np.arange(90.0)[:, None]
    model = CertifiedClassifier(DummyClassifier(strategy="stratified"), 9, classes=[0, 1])
    with pytest.raises(ParameterError, match="another prediction in another place"):
        model.fit(X, np.arange(90) % 2)
