"""``poisonproof paper`` on made-up weather: it runs, goes on, and says what it did."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from poisonproof.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

pytest.importorskip("matplotlib", reason="pictures need the plot extra")


def paper(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["paper", *map(str, arguments)], catch_exceptions=False)


def made_up(folder: Path, *more: Any) -> Result:
    few = ("--q", "5", "--trials", 2, "--rows", 8, "--jobs", 1, "--synthetic-rows", 300, "--no-thresholds")
    return paper("weather", *few, "--data-dir", folder / "data", "--out", folder / "out", *more)


def test_one_command_runs_everything_and_writes_it_down(tmp_path: Path) -> None:
    result = made_up(tmp_path, "--format", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["synthetic"] == ["weather"]
    methods = {figure["method"] for figure in document["figures"]}
    assert methods == {"baseline", "kNN-CR"}  # nothing is published for 5 submodels
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"results.md", "results.json", "results", "cells"}
    assert {path.name for path in (tmp_path / "out" / "results").iterdir()} >= {"curves.csv", "curves-weather.png"}
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    assert made_up(tmp_path).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()} == before
    again = paper("--from", tmp_path / "out" / "results.json", "--out", tmp_path / "again")
    assert again.exit_code == 0
    assert (tmp_path / "again" / "results.md").read_text() == (tmp_path / "out" / "results.md").read_text()


def test_a_radius_that_cannot_be_reached_is_none_of_the_rows(tmp_path: Path) -> None:
    options = ("--q", "51", "--trials", 1, "--rows", 5, "--jobs", 1, "--synthetic-rows", 300, "--methods", "PCR")
    result = paper("weather", *options, "--data-dir", tmp_path, "--out", tmp_path / "out", "--format", "json")
    assert result.exit_code == 0, result.output
    figures = {figure["radius"]: figure for figure in json.loads(result.stdout)["figures"]}
    assert figures[50]["certified accuracy"] == 0
    assert figures[50]["published"] >= 0
    assert {figure["threat"] for figure in figures.values()} == {"insert+delete"}
    assert {figure["data set"] for figure in figures.values()} == {"weather (SYNTHETIC rows)"}
    text = paper("weather", *options, "--data-dir", tmp_path, "--out", tmp_path / "out", "--format", "csv").stdout
    assert {row["threat"] for row in csv.DictReader(io.StringIO(text))} == {"insert+delete"}


def test_settings_without_a_published_figure_are_said_to_have_none(tmp_path: Path) -> None:
    result = made_up(tmp_path, "--methods", "PCR")
    assert result.exit_code == 0, result.output
    assert "The paper has no figures for these settings; all radii are in results/curves.csv" in result.stdout
    assert (tmp_path / "out" / "results" / "curves.csv").exists()
    assert "has no figures" not in made_up(tmp_path, "--methods", "baseline").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("iris",), "there is no data set 'iris'"),
        (("ames",), "ames is not in"),
        (("diamonds", "--methods", "DPA"), "there is no method 'DPA'"),
        (("diamonds", "--q", "4"), "n_partitions=4 must be odd"),
        (("diamonds", "--q", "many"), "'many' must be whole numbers"),
        (("diamonds", "--jobs", "0"), "--jobs 0 must be at least 1, or -1 for all processors"),
        (("diamonds", "--jobs", "-5"), "--jobs -5 must be at least 1, or -1 for all processors"),
        (("diamonds", "--trials", "0"), "trials=0 must be at least 1"),
        (("--from", "absent.json"), "absent.json cannot be read"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_sentence(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    result = paper(*arguments, "--data-dir", tmp_path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper_run = sys.modules["poisonproof.paper.run"]  # the package has a function of the same name
    finish = paper_run.outcome_of
    done: list[Any] = []

    def interrupted(*found: Any) -> dict[str, Any]:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(found)
        return finish(*found)

    monkeypatch.setattr(paper_run, "outcome_of", interrupted)
    result = made_up(tmp_path)
    assert result.exit_code == 130
    assert "3 of 12 parts are kept" in result.stderr
    assert not (tmp_path / "out" / "results.md").exists()
