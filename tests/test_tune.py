"""The search on trusted rows: what it maximises, that it goes on, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeClassifier

from poisonproof import (
    BoostedTreesRegressor,
    CertifiedClassifier,
    CertifiedNeighborsClassifier,
    CertifiedNeighborsRegressor,
    CertifiedRadiusRegressor,
    CertifiedRegressor,
    KernelRidge,
)
from poisonproof.errors import DataError, FileError, MissingExtraError, ParameterError, ParameterTypeError
from poisonproof.holdout import HoldOut
from poisonproof.tune import Choice, Family, Range, Tuned, Weights, published_space, trials, tune, usual_space

if TYPE_CHECKING:
    from pathlib import Path

optuna = pytest.importorskip("optuna", reason="tuning needs the tune extra")

RNG = np.random.default_rng(0)
X = RNG.random((300, 2))
Y = 2 + np.sin(5 * X[:, 0]) + 0.05 * RNG.normal(size=300)
NEAR = Family(CertifiedNeighborsRegressor(), {"n_neighbors": Range(1, 149, 149, "odd")})
BLOCKS = Family(
    CertifiedRegressor(Ridge(), 5), {"n_partitions": Range(3, 61, 31, "odd"), "estimator__alpha": Range(1e-4, 100, 1)}
)
BOTH = {"near": NEAR, "blocks": BLOCKS}


def trusted(radius: int = 4, n_rows: int | None = None) -> HoldOut:
    return HoldOut.folded(X, Y, radius=radius, within=0.1, n_rows=n_rows)


def outcomes(found: Any) -> list[Any]:
    """All of each trial but its time."""
    return [(each.family, each.settings, each.certified, each.withstood, each.reason) for each in found]


@pytest.mark.filterwarnings("ignore:.*submodels have no rows:UserWarning")
def test_what_is_reported_is_what_the_rows_withstand() -> None:
    found = tune(BOTH, trusted(), max_trials=12)
    for tried in found.trials:
        shares = trusted().withstood(BOTH[tried.family].build(tried.settings))
        assert tried.certified == np.mean(shares >= 1)
        assert tried.withstood == np.mean(shares)
    assert found.best.certified == max(tried.certified for tried in found.trials if tried.certified is not None)
    assert found.model.get_params()["n_neighbors" if found.best.family == "near" else "n_partitions"] > 1


def test_the_search_finds_what_trying_everything_finds() -> None:
    counts = range(1, 150, 2)
    every = [np.mean(trusted().withstood(CertifiedNeighborsRegressor(k)) >= 1) for k in counts]
    found = tune({"near": NEAR}, trusted(), max_trials=40)
    assert found.trials[0].settings == {"n_neighbors": 149}
    assert found.trials[0].certified is not None
    assert found.best.certified is not None
    assert found.best.certified >= max(every) - 0.02
    assert found.best.certified > found.trials[0].certified + 0.1


def test_one_more_certified_row_outweighs_all_that_is_withstood(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {1: np.r_[1, np.zeros(299)], 3: np.r_[1, 1, np.zeros(298)], 5: np.r_[1, np.full(299, 0.999)]}
    told: dict[int, float] = {}
    tell = optuna.Study.tell

    def listening(study: Any, trial: Any, *values: Any, **more: Any) -> Any:
        told[2 * trial.params["near n_neighbors"] - 1] = values[0]
        return tell(study, trial, *values, **more)

    monkeypatch.setattr(HoldOut, "withstood", lambda _, model, **__: shares[model.n_neighbors])
    monkeypatch.setattr(optuna.Study, "tell", listening)
    family = Family(CertifiedNeighborsRegressor(), {"n_neighbors": Range(1, 5, 1, "odd")})
    found = tune({"near": family}, trusted(), max_trials=30)
    assert told[3] > told[5] > told[1]
    assert found.best.settings == {"n_neighbors": 3}
    assert [tried.settings["n_neighbors"] for tried in found.ranked] == [3, 5, 1]


def test_the_same_seed_tries_the_same_settings() -> None:
    once, again, other = (tune(BOTH, trusted(), max_trials=14, seed=seed) for seed in (3, 3, 4))
    assert outcomes(once.trials) == outcomes(again.trials)
    assert outcomes(once.trials) != outcomes(other.trials)


def test_an_interrupted_search_goes_on_as_if_it_had_not_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tune(BOTH, trusted(), max_trials=16)
    real = HoldOut.withstood
    left = 0

    def interrupted(*given: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return real(*given, **more)

    monkeypatch.setattr(HoldOut, "withstood", interrupted)
    kept = 0
    for calls in (5, 3):
        left = calls
        done: list[Any] = []
        with pytest.raises(KeyboardInterrupt):
            done.extend(trials(BOTH, trusted(), max_trials=16, journal=tmp_path / "deep" / "journal"))
        assert outcomes(done) == outcomes(whole.trials[: len(done)])
        assert kept < len(done) < 16
        kept = len(done)
    left = 16
    found = tune(BOTH, trusted(), max_trials=16, journal=tmp_path / "deep" / "journal")
    assert outcomes(found.trials) == outcomes(whole.trials)


def test_a_killed_search_goes_on(tmp_path: Path) -> None:
    killed = """
import os, sys
from tests.test_tune import BOTH, trusted
from poisonproof.tune import trials
for count, _ in enumerate(trials(BOTH, trusted(), max_trials=9, journal=sys.argv[1]), 1):
    if count == 5:
        os._exit(1)
"""
    journal = tmp_path / "journal"
    assert subprocess.run([sys.executable, "-c", killed, str(journal)], check=False).returncode == 1  # noqa: S603
    with journal.open("ab") as file:
        file.write(b'{"op_code": 4, "worker')  # half a line
    found = tune(BOTH, trusted(), max_trials=9, journal=journal)
    assert outcomes(found.trials) == outcomes(tune(BOTH, trusted(), max_trials=9).trials)
    assert outcomes(tune(BOTH, trusted(), max_trials=9, journal=journal).trials) == outcomes(found.trials)


def test_kept_trials_are_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tune(BOTH, trusted(), max_trials=8, journal=tmp_path / "journal")
    monkeypatch.setattr(HoldOut, "withstood", lambda *_, **__: pytest.fail("computed again"))
    assert tune(BOTH, trusted(), max_trials=8, journal=tmp_path / "journal").trials == kept.trials
    assert tune(BOTH, trusted(), max_trials=3, journal=tmp_path / "journal").trials == kept.trials[:3]


def test_another_question_does_not_mix_in(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    asked = [
        (BOTH, trusted(), 0),
        (BOTH, trusted(5), 0),
        (BOTH, trusted(n_rows=900), 0),
        (BOTH, trusted(), 1),
        ({"near": NEAR}, trusted(), 0),
        ({"near": Family(CertifiedNeighborsRegressor(metric="manhattan"), NEAR.space)}, trusted(), 0),
        ({"near": Family(CertifiedNeighborsRegressor(weights=np.array([1, 2])), NEAR.space)}, trusted(), 0),
        ({"near": Family(CertifiedNeighborsRegressor(), {"n_neighbors": Range(1, 9, 5, "odd")})}, trusted(), 0),
        ({"near": NEAR}, HoldOut.folded(X, Y + 1, radius=4, within=0.1), 0),
        ({"near": NEAR}, HoldOut.folded(X, Y, radius=4, within=0.2), 0),
        ({"near": NEAR}, HoldOut.folded(X, Y, radius=4, within=0.1, n_folds=4), 0),
    ]
    apart = [tune(families, rows, max_trials=3, seed=seed) for families, rows, seed in asked]
    for _ in range(2):  # the second time everything is read
        for (families, rows, seed), alone in zip(asked, apart, strict=True):
            found = tune(families, rows, max_trials=3, seed=seed, journal=journal)
            assert outcomes(found.trials) == outcomes(alone.trials)


def test_settings_that_are_proposed_twice_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    real = HoldOut.withstood

    def counted(*given: Any, **more: Any) -> Any:
        calls.append(given)
        return real(*given, **more)

    monkeypatch.setattr(HoldOut, "withstood", counted)
    family = Family(CertifiedNeighborsRegressor(), {"n_neighbors": Range(1, 5, 5, "odd")})
    found = tune({"near": family}, trusted(), max_trials=15)
    assert len(found.trials) == 15
    assert len(calls) == len(found.ranked) <= 3


def test_trials_that_fail_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    odd = Family(CertifiedRegressor(Ridge()), {"n_partitions": Choice((5, 4, 7))})
    found = tune({"odd": odd}, trusted(1), max_trials=12, journal=tmp_path / "journal")
    assert found.failures
    assert {tried.settings["n_partitions"] for tried in found.failures} == {4}
    assert "n_partitions=4 must be odd" in str(found.failures[0].reason)
    assert found.best.settings["n_partitions"] in {5, 7}
    again = tune({"odd": odd}, trusted(1), max_trials=12, journal=tmp_path / "journal")
    assert outcomes(again.trials) == outcomes(found.trials)


def test_an_estimator_that_refuses_everywhere_is_a_failure() -> None:
    family = Family(CertifiedRegressor(Ridge(), 5), {"estimator__alpha": Choice((-1.0,))})
    found = tune({"ridge": family}, trusted(), max_trials=2)
    assert all("all 5 submodels were refused by the estimator (" in str(tried.reason) for tried in found.trials)
    with pytest.raises(DataError, match=r"all 2 trials failed; the first: all 5 submodels were refused"):
        _ = found.best


def test_a_radius_that_nothing_reaches_is_no_error() -> None:
    space = usual_space(CertifiedNeighborsRegressor(), radius=10_000, n_rows=trusted().n_known)
    found = tune({"near": Family(CertifiedNeighborsRegressor(), space)}, trusted(10_000), max_trials=4)
    assert found.best.certified == 0
    assert found.best.withstood is not None
    assert 0 < found.best.withstood < 1


def test_a_search_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(sys.modules["poisonproof.tune.search"], "monotonic", lambda: float(next(clock)))
    found = tune({"near": NEAR}, trusted(), timeout=15)
    assert 0 < len(found.trials) < 10


def test_classes_are_tuned_too() -> None:
    labels = np.where(X[:, 0] + 0.1 * RNG.normal(size=300) > 0.5, "many", "few")
    rows = HoldOut.folded(X, labels, radius=3)
    families = {
        "ridge": CertifiedClassifier(RidgeClassifier(), 9, classes=["few", "many"]),
        "near": CertifiedNeighborsClassifier(classes=["few", "many"]),
    }
    searched = {name: Family(model, usual_space(model, radius=3, n_rows=240)) for name, model in families.items()}
    found = tune(searched, rows, max_trials=10)
    assert not found.failures
    assert found.best.certified is not None
    assert found.best.certified > 0.7


def test_usual_spaces_begin_inside_and_can_reach_the_radius() -> None:
    models: list[Any] = [
        CertifiedRegressor(KernelRidge()),
        CertifiedRegressor(BoostedTreesRegressor(), threat="delete", max_cost=2),
        CertifiedNeighborsRegressor(),
    ]
    for model in models:
        for radius in (0, 1, 7, 300, 100_000):
            for n_rows in (1, 2, 50, 5000):
                space = usual_space(model, radius=radius, n_rows=n_rows, light=[False, True])
                for name, dimension in space.items():
                    model.set_params(**{name: dimension.value(dimension.coded(dimension.start))})
                    if isinstance(dimension, Range):
                        assert dimension.low <= dimension.start <= dimension.high
                count = space.get("n_partitions", space.get("n_neighbors"))
                assert isinstance(count, Range)
                assert count.low % 2 == count.high % 2 == count.start % 2 == 1
                assert count.high <= max(n_rows, 1)
                if 2 * radius + 1 <= n_rows:
                    assert count.low * getattr(model, "max_cost", 1) >= 2 * radius + 1
                    assert count.low <= 2 * radius + 1


def test_codes_and_values_belong_together() -> None:
    odd = Range(3, 11, 7, "odd")
    assert [odd.value(code) for code in range(int(odd.coded(3)), int(odd.coded(11)) + 1)] == [3, 5, 7, 9, 11]
    assert Weights((False, True, True)).value(0.12345) == [1.0, 0.123, 0.123]


def test_published_ranges_are_those_of_the_paper() -> None:
    trees = CertifiedRegressor(BoostedTreesRegressor())
    space = published_space(trees, radius=100, n_rows=48_000)
    assert space["n_partitions"] == Choice((201, 251, 301, 501, 701, 1001, 1501, 3001))
    assert space["estimator__n_estimators"] == Choice((50, 100, 250, 500, 1000))
    assert space["estimator__reg_lambda"] == Range(1e-3, 1e5, 1)
    ridge = CertifiedRegressor(Ridge())
    assert published_space(ridge, radius=5000, n_rows=300)["n_partitions"] == Choice((251,))
    assert published_space(ridge, radius=0, n_rows=8)["n_partitions"] == Choice((7,))
    with pytest.raises(ParameterError, match=r"no ranges were published for KernelRidge; use one of Ridge"):
        published_space(CertifiedRegressor(KernelRidge()), radius=1, n_rows=10)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"max_trials": 0}, "max_trials=0 must be at least 1"),
        ({"timeout": 0}, "timeout=0 must be above 0"),
        ({"seed": -1}, "seed=-1 must be at least 0"),
        ({"families": {}}, "families is empty"),
        ({"trusted": HoldOut.folded(X, Y, radius=1)}, "within is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"families": BOTH, "trusted": trusted(), **given}
    with pytest.raises(ParameterError, match=says):
        tune(**asked, journal=tmp_path / "journal")
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("given", [{"max_trials": 2.5}, {"max_trials": True}, {"seed": 1.0}])
def test_numbers_that_count_are_whole(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ParameterTypeError, match=r"(max_trials|seed)=\S+ must be an integer"):
        tune(BOTH, trusted(), journal=tmp_path / "journal", **given)
    assert not (tmp_path / "journal").exists()


NUMPY: dict[str, Any] = {"low": np.int64(1), "high": np.int64(3), "start": np.int64(2)}
NUMPY32: dict[str, Any] = {"low": np.float32(0.25), "high": np.float32(1), "start": np.float32(0.5)}


@pytest.mark.parametrize(
    ("model", "name", "dimension", "plain"),
    [
        (CertifiedNeighborsRegressor(), "n_neighbors", Choice((np.int64(3), 5)), Choice((3, 5))),
        (CertifiedNeighborsRegressor(), "metric", Choice((np.str_("euclidean"),)), Choice(("euclidean",))),
        (CertifiedRadiusRegressor(), "radius", Range(**NUMPY, kind="whole"), Range(1, 3, 2, "whole")),
        (CertifiedRadiusRegressor(), "radius", Range(**NUMPY32), Range(0.25, 1, 0.5)),
        (
            CertifiedRadiusRegressor(),
            "weights",
            Weights((False, True), **NUMPY32),
            Weights((False, True), 0.25, 1, 0.5),
        ),
    ],
)
def test_numbers_of_numpy_are_numbers(model: Any, name: str, dimension: Any, plain: Any, tmp_path: Path) -> None:
    rows = trusted(np.int64(2), n_rows=np.int64(900))  # type: ignore[arg-type]
    for _ in range(2):  # the second time everything is read
        searched = {"model": Family(model, {name: dimension})}
        found = tune(searched, rows, max_trials=np.int64(4), seed=np.int64(1), journal=tmp_path / "journal")  # type: ignore[arg-type]
        same = tune({"model": Family(model, {name: plain})}, trusted(2, n_rows=900), max_trials=4, seed=1)
        assert not found.failures
        assert outcomes(found.trials) == outcomes(same.trials)


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("bread\nmilk\n")
    with pytest.raises(FileError, match="notes is no journal of trials"):
        tune(BOTH, trusted(), journal=tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "bread\nmilk\n"
    for content in ("1\n", "bread", "bread\n", '{"bread": 1}\n', "[" * 200_000 + "\n"):
        (tmp_path / "other").write_text(content)
        with pytest.raises(FileError, match="other is no journal of trials"):
            tune(BOTH, trusted(), journal=tmp_path / "other")
        assert (tmp_path / "other").read_text() == content
    with pytest.raises(FileError, match="cannot be written"):
        tune(BOTH, trusted(), journal=tmp_path / "notes" / "journal")


def test_without_a_finished_trial_there_is_no_best() -> None:
    with pytest.raises(DataError, match="no trial was finished"):
        _ = Tuned(BOTH, []).best


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'poisonproof\[tune\]'"):
        tune(BOTH, trusted())


def test_importing_takes_no_optuna() -> None:
    said = "import sys, poisonproof.tune, poisonproof.cli.tune; sys.exit('optuna' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", said], check=False).returncode == 0  # noqa: S603


def test_optuna_speaks_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    tune({"near": NEAR}, trusted(), max_trials=2)
    assert optuna.logging.get_verbosity() == before
    assert capfd.readouterr() == ("", "")
