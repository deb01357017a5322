"""The pictures of the evaluation: certified accuracy by radius, by threshold, and the time to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from poisonproof.errors import MissingExtraError
from poisonproof.paper.cells import METHODS, OURS, OVERLAPPING
from poisonproof.plot import CertifiedAccuracyDisplay
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from poisonproof.paper.results import Results, Series

__all__ = ["figures_of"]

_WHOLE_DATA: Final = ("kNN-CR", *OURS)
_STEPS: Final = 300
_WIDTH: Final = 4.2
_HEIGHT: Final = 3.2
_COLOURS: Final = (
    *("tab:gray", "tab:blue", "tab:orange", "tab:green", "tab:red"),
    *("tab:purple", "tab:brown", "tab:pink", "tab:olive", "tab:cyan"),
)


def figures_of(results: Results) -> Iterator[tuple[str, Any]]:
    """Every picture with its name, one after the other; close it before you ask for the next."""
    for dataset in results.datasets:
        yield f"curves-{dataset}", _curves(results, dataset)
        if any(len(series.thresholds) > 1 for series in results.series if series.dataset == dataset):
            yield f"thresholds-{dataset}", _thresholds(results, dataset)
    if any(series.method in OVERLAPPING for series in results.series):
        yield "solving", _solving(results)


def _curves(results: Results, dataset: str) -> Any:  # noqa: ANN401  a matplotlib figure
    """A panel for each number of submodels, and one that shows neighbours to their end."""
    mine = [series for series in results.series if series.dataset == dataset and series.method != "baseline"]
    counts = sorted({series.n_partitions for series in mine} - {1})
    name = results.title_of(dataset)
    panels = [(f"{name}, {count:,} partitions", count) for count in counts] + [(f"{name}, to the end", 1)]
    figure, axes = _panels(len(panels))
    for ax, (title, count) in zip(axes, panels, strict=True):
        shown = [series for series in mine if series.n_partitions in {1, count} or count == 1]
        if count == 1:
            shown = [series for series in mine if series.method in _WHOLE_DATA]
        reach = _reach([series for series in shown if count == 1 or series.method not in _WHOLE_DATA])
        for series in shown:
            ax.set_prop_cycle(color=[_COLOURS[METHODS.index(series.method)]])  # one in all panels
            _draw(ax, series, "usual", reach, series.method + (" (NOT SOUND)" if series.unsound else ""))
        ax.set_title(title)
    return _with_one_legend(figure)


def _thresholds(results: Results, dataset: str) -> Any:  # noqa: ANN401  a matplotlib figure
    mine = [series for series in results.series if series.dataset == dataset and len(series.thresholds) > 1]
    figure, axes = _panels(len(mine))
    for ax, series in zip(axes, mine, strict=True):
        for name in sorted(series.thresholds[1:], key=float):
            within = f"{float(name):.0%}" if float(name) < 1 else f"{float(name):g}"
            _draw(
                ax, series, name, max(int(radii.max()) for t in series.thresholds for radii in series.radii(t)), within
            )
        parts = "" if series.method == "kNN-CR" else f", {series.n_partitions:,} partitions"
        ax.set_title(f"{results.title_of(dataset)}: {results.method_of(dataset, series.method)}{parts}")
    return _with_one_legend(figure)


def _solving(results: Results) -> Any:  # noqa: ANN401  a matplotlib figure
    mine = [series for series in results.series if series.method in OVERLAPPING]
    names = sorted({series.dataset for series in mine})
    figure, axes = _panels(len(names))
    for ax, name in zip(axes, names, strict=True):
        for method in OVERLAPPING:
            spent = [trial["row_seconds"] for series in mine if (series.dataset, series.method) == (name, method)
                     for trial in series.trials]  # fmt: skip
            if spent:
                ax.hist(1000 * np.concatenate(spent), bins=np.logspace(-1, 4, 41).tolist(), alpha=0.6, label=method)
        ax.set(xscale="log", xlabel="milliseconds to solve one row", ylabel="rows", title=results.title_of(name))
        ax.legend(frameon=False)
    return figure


def _draw(ax: Any, series: Series, threshold: str, reach: int, label: str) -> None:  # noqa: ANN401  matplotlib axes
    steps = np.unique(np.linspace(0, max(reach, 1), min(max(reach, 1), _STEPS) + 1).astype(np.int64))
    shares = np.array([(radii[:, None] >= steps).mean(axis=0) for radii in series.radii(threshold)])
    spread = shares.std(axis=0, ddof=1) if len(shares) > 1 else np.zeros(len(steps))
    moves = series.trials[0]["threat"]
    CertifiedAccuracyDisplay(steps, shares.mean(axis=0), spread, Threat(moves)).plot(ax=ax, label=label)
    ax.set_xlabel("modified training rows")


def _with_one_legend(figure: Any) -> Any:  # noqa: ANN401  a matplotlib figure
    """The figure with one legend beside all panels, where it covers no curve."""
    named: dict[str, Any] = {}
    for ax in figure.axes:
        lines, labels = ax.get_legend_handles_labels()
        named = dict(zip(labels, lines, strict=True)) | named
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    figure.legend(list(named.values()), list(named), loc="outside right upper", frameon=False)
    return figure


def _reach(shown: list[Series]) -> int:
    """The largest radius of any series, and a little more."""
    return 1 + max((int(radii.max()) for series in shown for radii in series.radii()), default=1)


def _panels(count: int) -> tuple[Any, list[Any]]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  optional
    except ImportError:
        raise MissingExtraError("pictures need matplotlib; run: pip install 'poisonproof[plot]'") from None
    columns = min(count, 4)
    rows = -(-count // columns)
    figure = Figure(figsize=(_WIDTH * columns, _HEIGHT * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in axes[count:]:
        ax.set_axis_off()
    return figure, axes[:count]
