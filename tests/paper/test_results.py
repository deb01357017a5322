"""Results beside the published figures: what agrees, what is beaten, and the files that say so."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from poisonproof.datasets import published_accuracy
from poisonproof.errors import FileError
from poisonproof.paper import Results, write_pages
from poisonproof.paper.cells import Cell
from poisonproof.paper.pages import page_of
from poisonproof.paper.pictures import figures_of

if TYPE_CHECKING:
    from poisonproof.paper import Method


def outcome(radii: list[int], **more: Any) -> dict[str, Any]:
    return {
        "radii": {"usual": radii}, "threat": "insert+delete", "certified_by": "unit cost", "fit_seconds": 0.5,
        "certify_seconds": 0.25, "n_train": 2636, "n_features": 327, "synthetic": False,
    } | more  # fmt: skip


RADII = {"PCR": [0, 1, 4, 8, 12] * 4, "ours low": [6] * 17 + [-1] * 3, "ours high": [80] * 12 + [3] * 8}


@pytest.fixture
def results() -> Results:
    found = [
        (
            Cell("ames", cast("Method", method), 25 if method == "PCR" else 1, trial),
            outcome(radii, median_right=1.0, mean_right=0.9),
        )
        for method, radii in RADII.items()
        for trial in (1, 0)
    ]
    spent = {"row_seconds": [0.001] * 20, "n_submodels": 425}
    more = {"radii": {"usual": [3] * 20, "0.05": [0, -1] * 10, "0.25": [9] * 20}}
    return Results([*found, (Cell("ames", "W-OCR", 25, 0), outcome([]) | spent | more)])


def test_accuracy_is_the_mean_over_trials() -> None:
    (series,) = Results(
        [(Cell("ames", "PCR", 25, 0), outcome([0, 4])), (Cell("ames", "PCR", 25, 1), outcome([4, 4]))]
    ).series
    mean, sd = series.accuracy(4)
    assert mean == 0.75
    assert sd == pytest.approx(0.5**0.5 / 2)
    assert series.accuracy(10**9) == (0.0, 0.0)


def test_every_published_figure_of_what_was_run_is_compared(results: Results) -> None:
    compared = results.compared()
    wanted = published_accuracy("ames", "PCR", 25) + published_accuracy("ames", "W-OCR", 25)
    assert {(row.method, row.radius, row.published) for row in compared} == {
        (w.method, w.radius, w.mean) for w in wanted
    }
    at = {row.radius: row for row in compared if row.method == "PCR"}
    assert at[4].mean == 0.6
    assert not at[4].agrees  # published: 76.3 with a deviation of 3.7
    assert at[1].agrees  # 80 against 82.3
    assert at[12].above


def test_the_preset_is_chosen_by_the_radius_alone(results: Results) -> None:
    beaten = {(row.n_partitions, row.radius): row for row in results.beaten()}
    assert len(beaten) == 15
    assert (beaten[25, 4].preset, beaten[25, 4].mean) == ("low", 0.85)
    assert (beaten[25, 8].preset, beaten[25, 8].mean) == ("high", 0.6)
    best = max(figure.mean for figure in published_accuracy("ames") if figure.radius == 8 and figure.n_partitions == 25)
    assert beaten[25, 8].gain == pytest.approx(0.6 - best)


def test_times_and_medians_stand_beside_the_published_ones(results: Results) -> None:
    (seconds,) = results.seconds()
    assert (seconds.seconds, seconds.published) == (0.75, 63.1)
    (medians,) = results.medians()
    assert (medians.median, medians.published_median) == (1.0, 0.838)


def test_results_are_read_back_whole(results: Results, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(results.to_json())
    assert json.loads(path.read_text()) == results.to_dict()
    assert Results.read(path).to_dict() == results.to_dict()


@pytest.mark.parametrize("content", ["", "[1]", '{"kind": "paper", "schema_version": 99, "series": []}'])
def test_a_file_that_is_no_result_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(FileError, match=r"results\.json"):
        Results.read(path)
    with pytest.raises(FileError, match="cannot be read"):
        Results.read(tmp_path / "absent")


def test_pages_say_what_the_results_say(results: Results, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    written = write_pages(results, tmp_path / "new")
    page = (tmp_path / "new" / "results.md").read_text()
    assert "| ames | 25 | 4 | 81.2 | OCR | 85.0 ± 0.0 | low radii | +3.8 |" in page
    assert "60.0 ± 0.0 (76.3 ± 3.7) ▼" in page
    assert "SYNTHETIC" not in page
    names = {path.name for path in written}
    assert names >= {"curves-ames.png", "curves-ames.svg", "thresholds-ames.png", "solving.svg", "ours.csv"}
    assert all(path.stat().st_size > 50 for path in written)
    curves = list(csv.DictReader((tmp_path / "new" / "results" / "curves.csv").read_text().splitlines()))
    (at_four,) = [row for row in curves if (row["method"], row["radius"]) == ("PCR", "4")]
    assert float(at_four["certified accuracy"]) == 0.6


def test_made_up_rows_and_unsound_radii_are_marked(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the plot extra")
    marked = outcome([5] * 20, synthetic=True, certified_by="published formula for unit costs, NOT SOUND",
                     row_seconds=[0.1] * 20, n_submodels=255)  # fmt: skip
    results = Results([(Cell("weather", "OCR", 51, 0), marked)])
    write_pages(results, tmp_path)
    page = (tmp_path / "results.md").read_text()
    assert "**SYNTHETIC rows" in page
    assert "OCR (51 partitions): **not sound**" in page
    for file in (tmp_path / "results").glob("*.csv"):
        head, *rows = csv.reader(file.read_text().splitlines())
        assert all(row[0] == "weather (SYNTHETIC rows)" and "(NOT SOUND)" in str(row) for row in rows), (file, head)
    _, figure = next(figures_of(results))
    assert "SYNTHETIC" in figure.axes[0].get_title()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["OCR (NOT SOUND)"]


def test_nothing_is_written_where_nothing_can_be(results: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made"):
        write_pages(results, tmp_path / "file" / "out")


def test_the_page_in_the_docs_is_made_of_the_results_beside_it() -> None:
    docs = Path(__file__).parents[2] / "docs"
    results = Results.read(docs / "results.json")
    assert page_of(results, []).strip() == (docs / "results.md").read_text().split("## Pictures")[0].strip()
    strict = results.beaten()
    assert len(strict) == 75
    assert all(row.gain > 0 for row in strict)
    assert sum(row.gain for row in strict) / 75 >= 0.15
    assert {len(series.trials) for series in results.series if series.method in ("PCR", "ours low")} == {10}
