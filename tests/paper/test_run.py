"""Cells computed from made-up weather: what comes out is what the models say, and is kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from poisonproof import CertifiedRegressor
from poisonproof.datasets.synthetic import synthetic_weather
from poisonproof.paper import Keeper, Plan, Results, cells_of, run
from poisonproof.paper.cells import Cell, split_of
from poisonproof.paper.run import outcome_of

if TYPE_CHECKING:
    from pathlib import Path

N_TOTAL = 500


def cell(method: Any, q: int = 1, **more: Any) -> Cell:
    return Cell("weather", method, q, 0, 15, synthetic_rows=N_TOTAL, **more)


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("no data"))


def test_radii_are_those_of_the_model(nowhere: str) -> None:
    prepared = synthetic_weather(N_TOTAL, data_dir=nowhere)
    train, test = split_of(N_TOTAL, 0, 15)
    for method, settings in (("PCR", {}), ("W-PCR", {"max_cost": 2, "threat": "delete"})):
        outcome = outcome_of(cell(method, 11), nowhere)
        model = CertifiedRegressor(Ridge(1e3), 11, empty_value=10.0, **settings)  # type: ignore[arg-type]
        model.fit(prepared.X[train], prepared.y[train])
        cert = model.certify(prepared.X[test], prepared.lower[test], prepared.upper[test])
        assert outcome["radii"] == {"usual": cert.radius.tolist()}
        assert outcome["threat"] == cert.threat.moves
        assert outcome["synthetic"] is True
        assert outcome["fit_seconds"] > 0


def test_overlapping_radii_row_by_row_are_those_of_all_rows_at_once(nowhere: str) -> None:
    prepared = synthetic_weather(N_TOTAL, data_dir=nowhere)
    train, test = split_of(N_TOTAL, 0, 15)
    outcome = outcome_of(cell("W-OCR", 5, thresholds=(1.0, 9.0)), nowhere)
    model = CertifiedRegressor(
        Ridge(1e3), 5, spread=5, layout="random", max_cost=2, threat="delete", empty_value=10.0
    ).fit(prepared.X[train], prepared.y[train])
    for name, within in (("usual", 3.0), ("1", 1.0), ("9", 9.0)):
        lower, upper = prepared.bounds(within)
        assert outcome["radii"][name] == model.certify(prepared.X[test], lower[test], upper[test]).radius.tolist()
    assert len(outcome["row_seconds"]) == 15
    assert outcome["n_submodels"] == 25
    assert 4 < outcome["effective_q"] < 6


def test_the_published_formula_claims_as_much_or_one_more_and_says_so(nowhere: str) -> None:
    proved = outcome_of(cell("OCR", 5), nowhere)
    published = outcome_of(cell("OCR", 5, formula="paper"), nowhere)
    more = np.array(published["radii"]["usual"]) - proved["radii"]["usual"]
    assert set(more.tolist()) <= {0, 1}
    assert more.any()
    assert "NOT SOUND" in published["certified_by"]
    assert proved["certified_by"] == "proved"


def test_neighbours_and_the_single_model(nowhere: str) -> None:
    single = outcome_of(cell("baseline"), nowhere)
    assert set(single["radii"]["usual"]) <= {-1, 0}
    near = outcome_of(cell("kNN-CR"), nowhere)
    assert near["threat"] == "insert+delete"
    assert near["median_right"] == np.mean(np.array(near["radii"]["usual"]) >= 0)
    assert 0 <= near["mean_right"] <= 1


def test_a_run_goes_on_where_it_stopped(nowhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(["weather"], ["baseline", "PCR"], [5], trials=2, n_rows=10, synthetic_rows=N_TOTAL)
    cells, keeper = cells_of(plan), Keeper(tmp_path)
    started = run(cells, keeper, data_dir=nowhere)
    first = [next(started), next(started)]
    started.close()
    assert len(list(tmp_path.iterdir())) >= 2
    computed: list[Cell] = []

    def noted(one: Cell, data_dir: str | None) -> dict[str, Any]:
        computed.append(one)
        return outcome_of(one, data_dir)

    monkeypatch.setattr(sys.modules["poisonproof.paper.run"], "outcome_of", noted)  # the package's run is a function
    whole = dict(run(cells, keeper, data_dir=nowhere))
    assert set(whole) == set(cells)
    assert not {one for one, _ in first} & set(computed)
    assert all(whole[one] == outcome for one, outcome in first)
    computed.clear()
    again = Results(run(cells, keeper, data_dir=nowhere))
    assert not computed
    assert [len(series.trials) for series in again.series] == [2, 2]
