from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from poisonproof import CertifiedRegressor
from poisonproof.errors import DataError, MissingExtraError
from poisonproof.plot import CertifiedAccuracyDisplay, IntervalDisplay, RadiusDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is an extra")
plt.switch_backend("Agg")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(200, 2))
MODEL = CertifiedRegressor(n_partitions=9).fit(X, X.sum(axis=1))


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


def test_the_curve_is_the_certified_accuracy() -> None:
    cert = MODEL.certify(X[:50], within=0.1)
    shown = CertifiedAccuracyDisplay.from_certificate(cert)
    assert shown.radii[0] == 0
    assert shown.mean[0] == 1.0
    assert shown.mean[-1] == 0.0
    line = shown.ax_.lines[0]
    assert np.array_equal(line.get_ydata(), 100 * shown.mean)
    assert shown.ax_.get_xlabel() == "inserted or deleted training rows"
    same = CertifiedAccuracyDisplay.from_estimator(MODEL, X[:50], within=0.1)
    assert np.array_equal(same.mean, shown.mean)


def test_trials_give_a_band_and_labels_a_legend() -> None:
    trials = [MODEL.certify(X[start : start + 20], within=0.05) for start in (0, 20, 40)]
    shown = CertifiedAccuracyDisplay.from_certificate(trials, [0, 1, 2, 4], label="ours")
    assert shown.sd.any()
    assert len(shown.ax_.collections) == 1
    assert shown.ax_.get_legend().get_texts()[0].get_text() == "ours"


def test_radii_are_counted_in_a_histogram_into_axes_of_ones_own() -> None:
    _, ax = plt.subplots()
    shown = RadiusDisplay.from_estimator(MODEL, X[:50], lower=0.8, ax=ax)
    assert shown.ax_ is ax
    inside = int((shown.radius >= 0).sum())
    assert sum(bar.get_height() for bar in ax.patches) == inside
    assert f"{50 - inside} of 50" in ax.get_title()


@pytest.mark.parametrize("target", [None, X[:30].sum(axis=1)])
@pytest.mark.parametrize("budget", [2, 99])
def test_intervals(target: Any, budget: int) -> None:
    shown = IntervalDisplay.from_estimator(MODEL, X[:30], budget, target)
    assert f"under any {budget} inserted or deleted" in shown.ax_.get_title()
    assert len(shown.ax_.lines) == 1 + (target is not None)


def test_a_target_of_another_length_is_refused() -> None:
    with pytest.raises(DataError, match=r"target has shape \(2,\)"):
        IntervalDisplay.from_interval(MODEL.interval(X[:3], 1), [1.0, 2.0])


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"poisonproof\[plot\]"):
        RadiusDisplay.from_estimator(MODEL, X[:5], within=0.1)
