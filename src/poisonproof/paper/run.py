"""Run the cells that are not finished, one process each, and keep every outcome as soon as it is there."""

from __future__ import annotations

import sys
import warnings
from contextlib import closing, contextmanager
from functools import cache
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.neighbors import KNeighborsRegressor

from poisonproof.cover import CoverProblem
from poisonproof.cover.paper import unsound_unit_radius
from poisonproof.datasets import load_dataset
from poisonproof.datasets.synthetic import synthetic_weather
from poisonproof.ensemble import CertifiedRegressor
from poisonproof.median import Ballot, costs_of_leaving, median, radii
from poisonproof.paper.cells import OVERLAPPING, split_of
from poisonproof.paper.keep import key_of
from poisonproof.paper.models import encoding_of, model_of
from poisonproof.store import data_digest
from poisonproof.votes import deaf_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from poisonproof.datasets.recipes import Prepared
    from poisonproof.datasets.recipes.recipe import EncodingName
    from poisonproof.paper.cells import Cell
    from poisonproof.paper.keep import Keeper

    Outcome = dict[str, Any]
    Folder = str | None

__all__ = ["outcome_of", "run"]

_DIGITS = 5  # of seconds


class _Rows(NamedTuple):
    """Rows to certify, and between which ends each prediction is to stay."""

    X: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def run(
    cells: Sequence[Cell], keeper: Keeper, *, jobs: int = 1, data_dir: Folder = None
) -> Generator[tuple[Cell, Outcome], None, None]:
    """The outcome of every cell, those that were kept first; the others are computed, and kept, as they are asked for.

    Parameters
    ----------
    cells : sequence of Cell
        What to run.
    keeper : Keeper
        Where finished cells are kept.
    jobs : int, default=1
        How many processes to use.
    data_dir : str, optional
        The data folder, see :func:`poisonproof.datasets.load_dataset`.
    """
    keys = [_key(cell, data_dir) for cell in cells]
    waiting = []
    for cell, key in zip(cells, keys, strict=True):
        kept = keeper.get(cell, key)
        if kept is None:
            waiting.append((cell, key))
        else:
            yield cell, kept
    with deaf_workers():
        finished = Parallel(n_jobs=jobs, return_as="generator_unordered")(
            delayed(_finish)(cell, key, keeper, data_dir) for cell, key in waiting
        )
    with closing(finished), _watched(len(waiting)) as tell:
        for cell, outcome in finished:
            tell(cell)
            yield cell, outcome


def outcome_of(cell: Cell, data_dir: Folder = None) -> Outcome:
    """Train and certify one cell."""
    prepared = _prepared(cell.dataset, encoding_of(cell), cell.synthetic_rows, data_dir)
    train, test = split_of(len(prepared), cell.trial, cell.n_rows)
    model = model_of(cell, prepared, len(train))
    started = process_time()
    model.fit(prepared.X[train], prepared.y[train])
    fitted = process_time()
    if cell.method == "baseline":
        found = _of_one_model(model, _rows(prepared, test))
    elif cell.method in OVERLAPPING:
        found = _of_overlapping(model, cell, prepared, test)
    else:
        found = _of_certificates(model, cell, prepared, test)
    outcome: Outcome = {
        "fit_seconds": round(fitted - started, _DIGITS),
        "certify_seconds": round(process_time() - fitted - found.pop("aside_seconds", 0.0), _DIGITS),
        "n_train": len(train),
        "n_features": prepared.X.shape[1],
        "synthetic": prepared.synthetic,
        "settings": " ".join(repr(model).split()),
    }
    if isinstance(model, CertifiedRegressor):
        outcome |= {"n_submodels": model.n_submodels_, "effective_q": round(float(model.layout_.effective_q), 3)}
    return outcome | found | _averages(model, cell, prepared, train, test)


def _finish(cell: Cell, key: str, keeper: Keeper, data_dir: Folder) -> tuple[Cell, Outcome]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # blocks without rows, in a table of hundreds of ensembles
        outcome = outcome_of(cell, data_dir)
    keeper.put(cell, key, outcome)
    return cell, outcome


@cache
def _prepared(dataset: str, encoding: EncodingName, synthetic_rows: int, data_dir: Folder) -> Prepared:
    if synthetic_rows:
        return synthetic_weather(synthetic_rows, encoding=encoding, data_dir=data_dir)
    return load_dataset(dataset, encoding, data_dir)


@cache
def _digest(dataset: str, encoding: EncodingName, synthetic_rows: int, data_dir: Folder) -> str:
    prepared = _prepared(dataset, encoding, synthetic_rows, data_dir)
    return data_digest(prepared.X, prepared.y).sha256


def _key(cell: Cell, data_dir: Folder) -> str:
    place = (cell.dataset, encoding_of(cell), cell.synthetic_rows, data_dir)
    prepared = _prepared(*place)
    n_train = len(split_of(len(prepared), cell.trial, cell.n_rows)[0])
    return key_of(cell, _digest(*place), repr(model_of(cell, prepared, n_train)))


def _rows(prepared: Prepared, test: NDArray[np.intp], within: float | None = None) -> _Rows:
    lower, upper = (prepared.lower, prepared.upper) if within is None else prepared.bounds(within)
    return _Rows(prepared.X[test], lower[test], upper[test])


def _targets(cell: Cell, prepared: Prepared, test: NDArray[np.intp]) -> dict[str, _Rows]:
    """What is certified: at the usual distance from the target, then at the others."""
    others = {f"{within:g}": _rows(prepared, test, within) for within in cell.thresholds}
    return {"usual": _rows(prepared, test)} | others


def _of_one_model(model: Any, rows: _Rows) -> Outcome:  # noqa: ANN401  any scikit-learn regressor
    predictions = model.predict(rows.X)
    right = (rows.lower <= predictions) & (predictions <= rows.upper)
    return {"radii": {"usual": np.where(right, 0, -1).tolist()}, "threat": "none", "certified_by": "nothing"}


def _of_certificates(model: Any, cell: Cell, prepared: Prepared, test: NDArray[np.intp]) -> Outcome:  # noqa: ANN401
    (_, usual), *others = _targets(cell, prepared, test).items()
    cert = model.certify(usual.X, usual.lower, usual.upper)
    started = process_time()
    more = {name: model.certify(rows.X, rows.lower, rows.upper).radius.tolist() for name, rows in others}
    return {
        "radii": {"usual": cert.radius.tolist()} | more,
        "threat": cert.threat.moves,
        "certified_by": cert.method,
        "aside_seconds": process_time() - started,
    }


def _of_overlapping(model: CertifiedRegressor, cell: Cell, prepared: Prepared, test: NDArray[np.intp]) -> Outcome:
    """As above, each row by itself, so that the time to solve it is known."""
    ballots = [ballot for _, ballot in model._ballots(prepared.X[test])]  # noqa: SLF001  radii of many bounds, one vote
    found: dict[str, list[int]] = {}
    seconds: list[float] = []
    started = process_time()
    for name, rows in _targets(cell, prepared, test).items():
        solved = [_solved(ballot, low, high, cell) for ballot, low, high in _single(ballots, rows)]
        found[name] = [radius for radius, _ in solved]
        if name == "usual":
            seconds = [round(second, _DIGITS) for _, second in solved]
    formula = "published formula for unit costs, NOT SOUND" if cell.formula == "paper" else "proved"
    return {
        "radii": found,
        "row_seconds": seconds,
        "threat": model.threat_.moves,
        "certified_by": formula,
        "aside_seconds": process_time() - started - sum(seconds),
    }


def _single(ballots: list[Ballot], rows: _Rows) -> Iterator[tuple[Ballot, NDArray[np.float64], NDArray[np.float64]]]:
    """Each row's ballot and bounds."""
    place = 0
    for ballot in ballots:
        for column in range(ballot.votes.shape[1]):
            at = slice(column, column + 1)
            reach = type(ballot.reach)(ballot.reach.low[..., at], ballot.reach.high[..., at])
            alone = Ballot(reach, ballot.incidence, ballot.capacity, ballot.n_units, ballot.caps)
            yield alone, rows.lower[place : place + 1], rows.upper[place : place + 1]
            place += 1


def _solved(ballot: Ballot, lower: NDArray[np.float64], upper: NDArray[np.float64], cell: Cell) -> tuple[int, float]:
    """The radius of one row, and the processor seconds it took."""
    started = process_time()
    if cell.formula == "paper":
        radius = min(_published(ballot, upper), _published(ballot.mirrored(), -lower))
    else:
        solved = radii(ballot, lower, upper)
        radius = ballot.n_units if solved.unbreakable[0] else int(solved.radius[0])
    return radius, process_time() - started


def _published(ballot: Ballot, upper: NDArray[np.float64]) -> int:
    if upper[0] == np.inf:
        return ballot.n_units  # no vote passes it; the other side decides
    costs = costs_of_leaving(ballot.reach, upper)[:, 0]
    majority = (len(costs) + 1) // 2
    if np.count_nonzero(costs) < majority or ballot.incidence is None:
        return -1
    return unsound_unit_radius(CoverProblem(ballot.incidence, costs, majority))


def _averages(
    model: Any,  # noqa: ANN401  one of four models
    cell: Cell,
    prepared: Prepared,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> Outcome:
    """How often the median, and how often the mean, of the votes is right."""
    rows = _rows(prepared, test)
    if cell.method == "PCR":
        votes = model.votes(rows.X)
        middle, mean = median(votes), votes.mean(axis=0)
    elif cell.method == "kNN-CR":
        low, width = prepared.ranges[:, 0], np.ptp(prepared.ranges, axis=1)
        near = KNeighborsRegressor(model.n_neighbors, algorithm="brute")
        near.fit(np.clip((prepared.X[train] - low) / width, 0, 1), prepared.y[train])
        middle, mean = model.predict(rows.X), near.predict(np.clip((rows.X - low) / width, 0, 1))
    else:
        return {}
    inside = [float(np.mean((rows.lower <= each) & (each <= rows.upper))) for each in (middle, mean)]
    return {"median_right": inside[0], "mean_right": inside[1]}


@contextmanager
def _watched(total: int) -> Iterator[Callable[[Cell], None]]:
    """A bar on standard error while a person watches, nothing elsewhere."""
    if total == 0 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  not needed where nobody watches
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda cell: bar.update(task, advance=1, description=str(cell))
