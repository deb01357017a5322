"""What a run leaves behind: a page, its tables as CSV, the results as JSON, and pictures."""

from __future__ import annotations

import csv
import io
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from poisonproof.datasets import published_setup
from poisonproof.errors import FileError
from poisonproof.paper.pictures import figures_of
from poisonproof.paper.tables import Table, marked, tables_of
from poisonproof.store import write_then_rename

if TYPE_CHECKING:
    import os

    from poisonproof.paper.results import Results

__all__ = ["page_of", "write_pages"]

_STEPS: Final = 400
_ASIDE: Final = "results"


def write_pages(results: Results, folder: str | os.PathLike[str], *, pictures: bool = True) -> list[Path]:
    """Write ``results.json``, ``results.md``, and a folder ``results`` with the tables as CSV, the curves and pictures.

    Parameters
    ----------
    results : Results
        What was run.
    folder : path
        Where to write; each file is written whole or not at all.
    pictures : bool, default=True
        Whether to draw, as PNG and SVG.
    """
    place = Path(folder)
    aside = place / _ASIDE
    try:
        aside.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{aside} cannot be made: {error.strerror}") from error
    tables = tables_of(results)
    names: list[str] = []
    drawn = figures_of(results) if pictures else ()
    written = []
    for name, figure in drawn:
        names.append(name)
        for form in ("png", "svg"):
            picture = io.BytesIO()
            figure.savefig(picture, format=form, dpi=110, metadata={"Date": None} if form == "svg" else None)
            written.append(_put(aside / f"{name}.{form}", picture.getvalue()))
    for name, table in {**tables, "curves": _curve_rows(results)}.items():
        written.append(_put(aside / f"{name.replace(' ', '-')}.csv", _csv(table).encode()))
    written.append(_put(place / "results.json", results.to_json().encode()))
    written.append(_put(place / "results.md", page_of(results, names).encode()))
    return written


def page_of(results: Results, pictures: list[str]) -> str:
    """The page in Markdown."""
    tables = tables_of(results)
    parts = [_part("introduction"), _run_with(results)]
    for name, beaten in (("ours", results.beaten()), ("deletions only", results.beaten(deleted=True))):
        if beaten:
            won = sum(row.gain > 0 for row in beaten)
            mean = 100 * float(np.mean([row.gain for row in beaten]))
            verdict = f"Better at {won} of {len(beaten)} radii, by {mean:.1f} points in the mean."
            parts += [_part(name), verdict, tables[name].markdown()]
    if "reproduced" in tables:
        parts += [_part("reproduced"), _agreement(results), tables["reproduced"].markdown(), _part("differences")]
    parts += [
        f"{_part(name)}\n\n{tables[name].markdown()}"
        for name in ("training", "solving", "median and mean", "other thresholds")
        if name in tables
    ]
    parts += [
        f"{series.dataset}: {series.method} ({series.n_partitions} partitions): **not sound**: the published formula."
        for series in results.series
        if series.unsound
    ]
    if pictures:
        parts += ["## Pictures", *[f"![{name.replace('-', ' of ', 1)}]({_ASIDE}/{name}.png)" for name in pictures]]
    return "\n\n".join(parts) + "\n"


def _part(name: str) -> str:
    text = files("poisonproof.paper").joinpath("words", f"{name.replace(' ', '-')}.md").read_text(encoding="utf-8")
    return text.strip()


def _run_with(results: Results) -> str:
    lines = []
    for dataset in results.datasets:
        mine = [series for series in results.series if series.dataset == dataset]
        trial = mine[0].trials[0]
        setup = published_setup(dataset)
        made_up = ", **SYNTHETIC rows, made up to the schema; no figure here says anything about the real ones**"
        features = {series.trials[0]["n_features"] for series in mine if not series.method.startswith("ours")}
        shown = f", {' or '.join(map(str, sorted(features)))} features ({setup.n_features} there)" if features else ""
        counts = sorted({len(series.trials) for series in mine})
        trials = f"{counts[-1]} trial{'s' * (counts[-1] > 1)}"
        if len(counts) > 1:
            trials += f" ({counts[0]} where blocks overlap)"
        lines.append(
            f"* **{dataset}**: {trials}, {trial['n_train']:,} training rows ({setup.n_train} there){shown}"
            f"{made_up if any(series.synthetic for series in mine) else ''}"
        )
    return "\n".join(lines)


def _agreement(results: Results) -> str:
    lines = []
    compared = results.compared()
    for method in dict.fromkeys(row.method for row in compared):
        rows = [row for row in compared if row.method == method]
        inside, above = sum(row.agrees for row in rows), sum(row.above and not row.agrees for row in rows)
        lines.append(
            f"* {method}: {inside} of {len(rows)} figures within two published standard deviations, {above} above, "
            f"{len(rows) - inside - above} below"
        )
    return "\n".join(lines)


def _curve_rows(results: Results) -> Table:
    rows = []
    for series in results.series:
        most = max(int(radii.max()) for radii in series.radii())
        for radius in np.unique(np.linspace(0, max(most, 0) + 1, _STEPS).astype(int)).tolist():
            mean, sd = series.accuracy(radius)
            rows.append([series.dataset, series.method, series.n_partitions, radius, mean, sd])
    table = Table("curves", ["data set", "method", "partitions", "radius", "certified accuracy", "sd"], rows)
    return marked(table, results)


def _csv(table: Table) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.head, *table.rows])
    return text.getvalue()


def _put(path: Path, content: bytes) -> Path:
    write_then_rename(path, content)
    return path
