"""``poisonproof paper``: the literature's evaluation, run again beside its figures and ours."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poisonproof.cli.options import jobs_option
from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poisonproof.paper import Plan, Results

__all__ = ["command"]

_OUT = Path("poisonproof-paper")


@click.command("paper")
@click.argument("datasets", nargs=-1, metavar="[DATASET]…")
@click.option(
    "--methods",
    help="Comma-separated: baseline, PCR, W-PCR, OCR, W-OCR, kNN-CR, ours low, ours high, "
    "ours low deleted, ours high deleted.",
)
@click.option("--q", "partitions", help="Numbers of submodels, comma-separated.  [default: the paper's]")
@click.option("--trials", type=int, help="Splits into training and test rows.  [default: 10]")
@click.option("--overlap-trials", type=int, help="Splits for OCR and W-OCR, which take longest.  [default: all]")
@click.option("--rows", "n_rows", type=int, help="Test rows of each split.  [default: 100]")
@click.option("--quick", is_flag=True, help="One trial, overlap with the most submodels only, no other thresholds.")
@click.option("--thresholds/--no-thresholds", default=True, help="Certify other distances from the target, too.")
@click.option(
    "--formula", type=click.Choice(["proved", "paper"]), default="proved", help="Radii of OCR; paper: unsound."
)
@click.option("--synthetic-rows", type=int, default=0, help="Make up so many rows in place of the weather's.")
@jobs_option("all processors")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="The data folder.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=_OUT, show_default=True)
@click.option("--from", "given", type=click.Path(path_type=Path), help="Run nothing: the pages of this results.json.")
@output_options
def command(*, form: str | None, jobs: int | None, given: Path | None, out: Path, **asked: Any) -> None:  # noqa: ANN401
    """Run the evaluation of Hammoudeh and Lowd (2023) on each DATASET, by default all that are at hand.

    Finished parts are kept in the folder --out, so that the same command goes on where it was interrupted; a page, its
    tables, pictures and results.json are written there at the end.
    """
    from poisonproof.paper import Results, write_pages  # noqa: PLC0415  a fast --help

    results = Results.read(given) if given is not None else _run(_plan(asked), out, jobs, asked["data_dir"])
    written = write_pages(results, out)
    click.echo(f"Wrote {len(written)} files to {out}; the page is {out / 'results.md'}.", err=True)
    _report(results).emit(form)


def _plan(asked: dict[str, Any]) -> list[Plan]:
    """What to run; in quick runs overlapping ensembles are another plan, of the most and smallest blocks."""
    from poisonproof.datasets import source  # noqa: PLC0415  a fast --help
    from poisonproof.paper import METHODS, Plan  # noqa: PLC0415
    from poisonproof.paper.cells import OVERLAPPING  # noqa: PLC0415

    datasets = _datasets(asked)
    methods: Sequence[Any] = _listed(asked["methods"]) or METHODS
    parts = [_whole(part) for part in _listed(asked["partitions"])] or None
    shared = {
        "n_rows": 100 if asked["n_rows"] is None else asked["n_rows"],
        "thresholds": asked["thresholds"] and not asked["quick"],
        "formula": asked["formula"],
        "synthetic_rows": asked["synthetic_rows"],
    }
    trials = asked["trials"] if asked["trials"] is not None else 1 if asked["quick"] else 10
    if not asked["quick"] or parts is not None:
        return [Plan(datasets, methods, parts, trials, overlap_trials=asked["overlap_trials"], **shared)]
    disjoint = [method for method in methods if method not in OVERLAPPING]
    overlapping = [method for method in methods if method in OVERLAPPING]
    plans = [Plan(datasets, disjoint, None, trials, **shared)]
    return plans + [
        Plan([name], overlapping, [max(source(name).published.n_partitions)], trials, **shared) for name in datasets
    ]


def _datasets(asked: dict[str, Any]) -> list[str]:
    """The data sets asked for, or those whose files are here; what is left out is said."""
    from poisonproof.datasets import data_folder, source, sources  # noqa: PLC0415  a fast --help
    from poisonproof.datasets.fetch import data_file, held_file  # noqa: PLC0415

    place = asked["data_dir"]
    if asked["datasets"]:
        for name in asked["datasets"]:
            if not source(name).bundled and not (name == "weather" and asked["synthetic_rows"]):
                data_file(name, place)  # a file that is missing or damaged is said before anything is run
        return list(dict.fromkeys(asked["datasets"]))
    here = [each.name for each in sources() if each.bundled or held_file(each.name, place) is not None]
    if asked["synthetic_rows"] and "weather" not in here:
        here.append("weather")
    left_out = [each.name for each in sources() if each.name not in here]
    if left_out:
        where = data_folder(place)
        click.echo(f"Not in {where}, and left out: {', '.join(left_out)}; see poisonproof data list.", err=True)
    return here


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise click.UsageError(f"--q {text!r} must be whole numbers, such as 25,125") from None


def _run(plans: list[Plan], out: Path, jobs: int | None, data_dir: Path | None) -> Results:
    from joblib import effective_n_jobs  # noqa: PLC0415  a fast --help

    from poisonproof.paper import Keeper, Results, cells_of, run  # noqa: PLC0415

    cells = [cell for plan in plans for cell in cells_of(plan)]
    done: list[Any] = []
    processes = effective_n_jobs(-1 if jobs is None else jobs)
    place = None if data_dir is None else os.fspath(data_dir)
    try:
        done.extend(run(cells, Keeper(out / "cells"), jobs=processes, data_dir=place))
    except KeyboardInterrupt:
        click.echo(
            f"{len(done)} of {len(cells)} parts are kept in {out}; the same command goes on from there.", err=True
        )
        raise
    return Results(done)


def _report(results: Results) -> Report:
    compared, beaten = results.compared(), results.beaten()
    rows: list[tuple[Any, ...]] = [
        (
            results.title_of(row.dataset),
            *row[1:3],
            results.method_of(row.dataset, row.method),
            row.threat,
            row.mean,
            row.sd,
            row.published,
            row.published_sd,
        )
        for row in compared
    ]
    rows += [
        (*row[:3], f"ours, {row.preset} radii", row.threat, row.mean, row.sd, row.published, None) for row in beaten
    ]
    names = (
        *("data set", "partitions", "radius", "method", "threat"),
        *("certified accuracy", "sd", "published", "published sd"),
    )
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    notes = [f"{series.dataset}: SYNTHETIC rows" for series in results.series if series.synthetic]
    notes += [f"{series.dataset}: {series.method} by the published formula is NOT SOUND" for series in results.series
              if series.unsound]  # fmt: skip
    if not rows:
        notes.append(
            "The paper has no figures for these settings; all radii are in results/curves.csv and results.json."
        )
    if compared:
        inside = sum(row.agrees for row in compared)
        notes.append(f"{inside} of {len(compared)} figures lie within two published standard deviations.")
    if beaten:
        won, gain = sum(row.gain > 0 for row in beaten), sum(row.gain for row in beaten) / len(beaten)
        notes.append(f"Our settings are better than the best published at {won} of {len(beaten)} radii, by "
                     f"{100 * gain:.1f} points in the mean.")  # fmt: skip
    document = {
        "schema_version": DOCUMENT_VERSION,
        "kind": "paper",
        "figures": [dict(zip(names, row, strict=True)) for row in rows],
        "synthetic": sorted({series.dataset for series in results.series if series.synthetic}),
        "unsound": sorted({series.dataset for series in results.series if series.unsound}),
    }
    return Report(columns, document, list(dict.fromkeys(notes)), "Certified accuracy, beside the published figures")
