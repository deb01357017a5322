"""What is run, on which splits, and what an outcome hangs on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from poisonproof.datasets import source, sources
from poisonproof.errors import FileError, ParameterError
from poisonproof.paper.cells import METHODS, Cell, Plan, cells_of, split_of
from poisonproof.paper.keep import Keeper, key_of
from poisonproof.paper.models import half_of, learner_of

if TYPE_CHECKING:
    from pathlib import Path

CELL = Cell("life", "PCR", 25, 0)


def test_every_published_ensemble_is_run_in_every_trial() -> None:
    names = [each.name for each in sources()]
    cells = cells_of(Plan(names, trials=2))
    for name in names:
        for q in source(name).published.n_partitions:
            for method in ("PCR", "W-PCR", "OCR", "W-OCR"):
                assert sum(cell.series == (name, method, q) for cell in cells) == 2
        assert sum(cell.series == (name, "kNN-CR", 1) for cell in cells) == 2
    assert len(set(cells)) == len(cells)
    assert {cell.trial for cell in cells[: len(cells) // 2]} == {0}


def test_overlap_can_have_fewer_trials_and_weather_has_no_settings_of_ours() -> None:
    cells = cells_of(Plan(["weather"], trials=3, overlap_trials=1))
    assert {cell.trial for cell in cells if cell.method == "W-OCR"} == {0}
    assert {cell.trial for cell in cells if cell.method == "W-PCR"} == {0, 1, 2}
    assert not any(cell.method.startswith("ours") for cell in cells)


def test_other_thresholds_are_those_of_the_paper() -> None:
    def thresholds(name: str) -> set[tuple[str, int, int]]:
        return {(cell.method, cell.n_partitions, len(cell.thresholds)) for cell in cells_of(Plan([name], trials=1))}

    assert {found for found in thresholds("ames") if found[2]} == {
        ("W-OCR", 125, 4),
        ("W-OCR", 251, 4),
        ("kNN-CR", 1, 4),
    }
    assert {found[2] for found in thresholds("life") if found[0] == "kNN-CR"} == {6}
    assert {found[2] for found in thresholds("spambase")} == {0}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"methods": ["DPA"]}, "there is no method 'DPA'; there are 'baseline'"),
        ({"n_partitions": [4]}, "n_partitions=4 must be odd"),
        ({"trials": 0}, "trials=0 must be at least 1"),
        ({"datasets": ["iris"]}, "there is no data set 'iris'"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(wrong: dict, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Plan(**({"datasets": ["life"]} | wrong))


def test_splits_are_disjoint_and_differ_between_trials() -> None:
    train, test = split_of(503, 3, 100)
    assert len(train) == 453
    assert len(test) == 50
    assert not np.intersect1d(train, test).size
    assert not np.array_equal(test, split_of(503, 4, 100)[1])


def test_settings_are_the_published_ones() -> None:
    trees = learner_of("ames", 125, 2637).get_params()
    wanted = {"n_estimators": 500, "max_depth": 3, "reg_lambda": 0.01, "min_split_loss": 0.005, "learning_rate": 1.0}
    assert {name: trees[name] for name in wanted} == wanted
    assert learner_of("spambase", 151, 4141).alpha == 3.16e-6
    assert learner_of("austin", 51, 12000).n_estimators == 1000  # printed for 151 submodels


@pytest.mark.parametrize("n_train", range(2, 60))
def test_half_of_the_rows_is_the_nearest_odd_number(n_train: int) -> None:
    odd = np.arange(1, 2 * n_train, 2)
    away = np.abs(odd - n_train / 2)
    assert half_of(n_train) == odd[away == away.min()].max()


def test_an_outcome_is_found_again_only_for_the_same_cell_data_and_settings(tmp_path: Path) -> None:
    keeper, key = Keeper(tmp_path / "deep" / "cells"), key_of(CELL, "data", "settings")
    assert keeper.get(CELL, key) is None
    keeper.put(CELL, key, {"radii": {"usual": [1]}})
    assert keeper.get(CELL, key) == {"radii": {"usual": [1]}}
    others = [
        key_of(replace(CELL, n_rows=7), "data", "settings"),
        key_of(CELL, "other data", "settings"),
        key_of(CELL, "data", "others"),
    ]
    assert len({key, *others}) == 4
    assert all(keeper.get(CELL, other) is None for other in others)
    assert keeper.get(replace(CELL, n_rows=7), key) is None
    (file,) = (tmp_path / "deep" / "cells").iterdir()
    file.write_text(file.read_text()[:20])
    assert keeper.get(CELL, key) is None


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        Keeper(tmp_path / "file" / "cells").put(CELL, "key", {})


def test_every_method_has_cells() -> None:
    assert {cell.method for cell in cells_of(Plan(["diamonds"], trials=1))} == set(METHODS)
