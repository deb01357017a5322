"""The tables of the evaluation: each a list of columns, for Markdown and for CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from poisonproof.paper.cells import OVERLAPPING
from poisonproof.paper.results import REPRODUCED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poisonproof.paper.results import Beaten, Compared, Results

__all__ = ["Table", "marked", "tables_of"]

_DASH: Final = "–"


class Table(NamedTuple):
    """A table, row by row."""

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def markdown(self) -> str:
        """The table for a page; numbers to the right."""
        numeric = [all(_is_number(row[place]) for row in self.rows) for place in range(len(self.head))]
        lines = [self.head, ["---:" if right else "---" for right in numeric], *self.rows]
        return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def tables_of(results: Results) -> dict[str, Table]:
    """All tables by name; those about nothing that was run are left out."""
    made = [
        _beaten("ours", results.beaten()),
        _beaten("deletions only", results.beaten(deleted=True)),
        _reproduced(results),
        _seconds(results),
        _solvers(results),
        _medians(results),
        _thresholds(results),
    ]
    return {table.name: marked(table, results) for table in made if table.rows}


def marked(table: Table, results: Results) -> Table:
    """The table, with rows that were made up and radii that can be too high called so."""
    by_method = table.head.index("method") if "method" in table.head else None
    rows = []
    for row in table.rows:
        cells = [results.title_of(row[0]), *row[1:]]
        if by_method is not None:
            cells[by_method] = results.method_of(row[0], row[by_method])
        rows.append(cells)
    return table._replace(rows=rows)


def _beaten(name: str, beaten: Sequence[Beaten]) -> Table:
    head = ["data set", "partitions", "radius", "best published", "method", "ours", "settings for", "gain, points"]
    rows = [
        [
            row.dataset, row.n_partitions, row.radius, _percent(row.published), row.published_method,
            _spread(row.mean, row.sd), f"{row.preset} radii", f"{100 * row.gain:+.1f}",
        ]
        for row in beaten
    ]  # fmt: skip
    return Table(name, head, rows)


def _reproduced(results: Results) -> Table:
    """Ours and published side by side; what lies outside two published deviations is marked."""
    by_place: dict[tuple[str, int, int], dict[str, Compared]] = {}
    for row in results.compared():
        by_place.setdefault((row.dataset, row.n_partitions, row.radius), {})[row.method] = row
    rows = []
    for (dataset, n_partitions, radius), found in by_place.items():
        if "baseline" in found:
            one = found["baseline"]
            rows.append([dataset, 1, "uncertified", _both(one), *[_DASH] * (len(REPRODUCED) - 1)])
        else:
            notes = {method: results.method_of(dataset, method).removeprefix(method) for method in REPRODUCED}
            cells = [_both(found[method]) + notes[method] if method in found else _DASH for method in REPRODUCED]
            rows.append([dataset, n_partitions, radius, *cells])
    return Table("reproduced", ["data set", "partitions", "radius", *REPRODUCED], rows)


def _seconds(results: Results) -> Table:
    head = ["data set", "partitions", "method", "seconds here", "seconds published", "published / here"]
    rows = [
        [row.dataset, row.n_partitions, row.method, f"{row.seconds:.2f}", f"{row.published:,.1f}",
         f"{row.published / max(row.seconds, 1e-3):,.0f}"]
        for row in results.seconds()
    ]  # fmt: skip
    return Table("training", head, rows)


def _solvers(results: Results) -> Table:
    head = ["data set", "partitions", "submodels", "method", "rows", "median", "90 %", "99 %", "longest"]
    rows = []
    for series in results.series:
        if series.method not in OVERLAPPING:
            continue
        spent = 1000 * np.concatenate([trial["row_seconds"] for trial in series.trials])
        parts = [f"{part:,.1f}" for part in np.quantile(spent, [0.5, 0.9, 0.99, 1.0])]
        n_submodels = series.trials[0]["n_submodels"]
        rows.append([series.dataset, series.n_partitions, n_submodels, series.method, len(spent), *parts])
    return Table("solving", head, rows)


def _medians(results: Results) -> Table:
    head = ["data set", "partitions", "median", "mean", "median, published", "mean, published"]
    rows = [
        [row.dataset, row.n_partitions if row.n_partitions > 1 else "1 (neighbours)",
         *map(_percent, (row.median, row.mean, row.published_median, row.published_mean))]
        for row in results.medians()
    ]  # fmt: skip
    return Table("median and mean", head, rows)


def _thresholds(results: Results) -> Table:
    head = ["data set", "method", "partitions", "right within", "radius 0", "half of the most", "most rows withstood"]
    rows = []
    for series in results.series:
        if len(series.thresholds) < 2:
            continue
        most = max(int(radii.max()) for name in series.thresholds for radii in series.radii(name))
        for name in sorted(series.thresholds[1:], key=float):
            shares = [_percent(series.accuracy(radius, name)[0]) for radius in (0, most // 2)]
            reached = max(int(radii.max()) for radii in series.radii(name))
            within = f"{float(name):.0%}" if float(name) < 1 else f"{float(name):g}"
            parts = series.n_partitions if series.method != "kNN-CR" else _DASH
            rows.append([series.dataset, series.method, parts, within, *shares, max(reached, 0)])
    return Table("other thresholds", head, rows)


def _both(row: Compared) -> str:
    mark = "" if row.agrees else (" ▲" if row.above else " ▼")
    return f"{_spread(row.mean, row.sd)} ({_spread(row.published, row.published_sd)}){mark}"


def _spread(mean: float, sd: float | None) -> str:
    return _percent(mean) if sd is None else f"{_percent(mean)} ± {100 * sd:.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _is_number(cell: object) -> bool:
    text = str(cell).replace(",", "").replace("%", "").split(" ")[0].lstrip("+-")
    return text.replace(".", "", 1).isdigit() or text == _DASH


def _cell(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
