"""Fit the submodels and collect their votes: seeds, threads, processes and progress live here and nowhere else."""

from __future__ import annotations

import random
import signal
import sys
import threading
import warnings
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, clone
from threadpoolctl import threadpool_limits

from poisonproof.compiled import pass_on
from poisonproof.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = [
    "Submodel",
    "check_jobs",
    "deaf_workers",
    "each",
    "fit_submodel",
    "in_fixed_shape",
    "make_deterministic",
    "report_constants",
    "report_silence",
    "where_possible",
]

Reason = Literal["empty", "refused"]
Item = TypeVar("Item")
Result = TypeVar("Result")

_SHAPE_ROWS: Final = 128  # every prediction is made on this many rows, so that rounding never depends on the batch
_SEED: Final = 0
_BATCHES_PER_JOB: Final = 16
_ALONE: Final = threading.RLock()


@dataclass(frozen=True, eq=False)
class Submodel:
    """One submodel: a fitted estimator, or the declared constant where there is none.

    Parameters
    ----------
    estimator : object or None
        The fitted estimator; None votes the constant.
    constant : float
        The declared vote of rows that cannot be fitted, and of a row whose vote is not finite.
    reason : {"empty", "refused"} or None
        Why there is no estimator.
    message : str
        What the estimator said when it refused.
    """

    estimator: Any
    constant: float
    reason: Reason | None = None
    message: str = ""

    def vote(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """The votes ``(n_rows,)``; each depends on its own row alone, not on the batch it came in."""
        return self.counted_vote(X)[0]

    def counted_vote(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        """The votes ``(n_rows,)``, and for how many rows the estimator had none, so that the constant stands there."""
        if self.estimator is None:
            return np.full(len(X), self.constant), 0
        answers = in_fixed_shape(self._answers, X)
        silent = np.isnan(answers)
        return np.where(silent, self.constant, answers), int(np.count_nonzero(silent))

    def _answers(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the estimator says, NaN where it says nothing of use."""
        answers = where_possible(self._raw_votes, X, np.nan)
        return np.where(np.isfinite(answers), answers + 0.0, np.nan)

    def _raw_votes(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(len(X))


def where_possible(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    X: NDArray[np.float64],
    instead: Any,  # noqa: ANN401
) -> NDArray[np.float64]:
    """``function`` of the rows, with ``instead`` in the place of each row that it refuses."""
    try:
        return function(X)
    except Exception as error:  # noqa: BLE001  whatever an estimator raises, it is about one row or another
        pass_on(error)
        # Sound because a row that is refused has no say in the others: each is asked for by itself, in the same shape.
        answers = {row.tobytes(): _answer(function, row, len(X), instead) for row in np.unique(X, axis=0)}
        return np.array([answers[row.tobytes()] for row in X])


def _answer(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    row: NDArray[np.float64],
    count: int,
    instead: Any,  # noqa: ANN401  a number, or an array of them
) -> Any:  # noqa: ANN401  likewise
    try:
        return function(np.tile(row, (count, 1)))[0]
    except Exception as error:  # noqa: BLE001  as in where_possible
        pass_on(error)
        return instead


def in_fixed_shape(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]], X: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``function`` of the rows, always called on the same number of them (the last call is filled up).

    Its values have a first axis ``n_rows``.
    """
    # Sound because linear algebra rounds differently for different shapes: with one shape, a value does not depend on
    # how many rows were asked for together.
    values = []
    for start in range(0, len(X), _SHAPE_ROWS):
        chunk = X[start : start + _SHAPE_ROWS]
        padding = np.repeat(chunk[:1], _SHAPE_ROWS - len(chunk), axis=0)
        values.append(function(np.concatenate([chunk, padding]))[: len(chunk)])
    return np.concatenate(values)


def make_deterministic(estimator: Any) -> Any:  # noqa: ANN401  any scikit-learn estimator
    """A clone with a fixed seed and one thread wherever it has such parameters, nested ones included."""
    copy = clone(estimator)
    settings: dict[str, int] = {}
    for name, value in copy.get_params(deep=True).items():
        match name.split("__")[-1]:
            case "random_state" if value is None:
                settings[name] = _SEED
            case "n_jobs" | "nthread" | "num_threads" | "thread_count":
                settings[name] = 1
            case _ if _hides_a_seed(value):
                # A splitter of cross-validation, say, which clone has copied too.
                value.random_state = _SEED
    return copy.set_params(**settings)


def _hides_a_seed(value: object) -> bool:
    """Whether this is no estimator, whose own parameters are asked, and yet draws random numbers it was not given."""
    return getattr(value, "random_state", _SEED) is None and not isinstance(value, type | BaseEstimator)


def fit_submodel(template: Any, constant: float, X: NDArray[np.float64], y: NDArray[np.float64]) -> Submodel:  # noqa: ANN401
    """A submodel trained on these rows and on nothing else.

    Notes
    -----
    Whether the estimator refuses is a function of these rows too, so a refusal is a vote like any other.
    """
    if len(y) == 0:
        return Submodel(None, constant, "empty")
    try:
        # Sound because a fit must be a function of its rows, and not every seed is a parameter: the splitters of
        # cross-validation, say, and functions, draw from the global streams.
        random.seed(_SEED)
        np.random.seed(_SEED)  # noqa: NPY002  this is the stream they draw from
        # Copies, because some estimators write into what they are given, and cost engines keep the rows.
        return Submodel(clone(template).fit(X.copy(), y.copy()), constant)
    except Exception as error:  # noqa: BLE001  whatever an estimator raises, its rows get the constant
        # Sound because only what is a function of the rows becomes a vote.
        pass_on(error)
        return Submodel(None, constant, "refused", str(error))


def report_constants(submodels: Sequence[Submodel], n_rows: int, instead: str) -> None:
    """Warn where submodels could not be fitted, say why, and what they do instead."""
    count = Counter(submodel.reason for submodel in submodels)
    why = []
    if count["empty"]:
        more = " (there are more partitions than rows)" if len(submodels) > n_rows else ""
        why.append(f"{count['empty']} of {len(submodels)} submodels have no rows{more}")
    if count["refused"]:
        message = next(submodel.message for submodel in submodels if submodel.reason == "refused")
        first_line = (message.splitlines() or ["no message"])[0]
        why.append(f"{count['refused']} of {len(submodels)} were refused by the estimator ({first_line})")
    if why:
        warnings.warn(f"{'; '.join(why)}: they {instead}", UserWarning, stacklevel=4)


def report_silence(count: int, n_votes: int, instead: str) -> None:
    """Warn where fitted submodels had no finite vote on a row, and say what stands in its place."""
    if count:
        noun = "vote was" if count == 1 else "votes were"
        text = f"{count:,} of {n_votes:,} {noun} refused or not finite: in their place, submodels {instead}"
        warnings.warn(text, UserWarning, stacklevel=4)


def each(function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None, doing: str) -> list[Result]:
    """``function`` of every item, in order, on one numerical thread each, with progress on a terminal."""
    jobs = effective_n_jobs(check_jobs(n_jobs))
    # Batches keep the cost of handing work to a process small against the work.
    size = max(1, -(-len(items) // (_BATCHES_PER_JOB * jobs)))
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    results: list[Result] = []
    # Closed, so that no process goes on with work whose results nobody waits for.
    with _progress(doing, len(items)) as advance, closing(_run(function, batches, jobs, n_jobs)) as done:
        for batch in done:
            results.extend(batch)
            advance(len(batch))
    return results


def check_jobs(n_jobs: int | None) -> int | None:
    """The number of processes, if joblib has a meaning for it."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise ParameterTypeError(f"n_jobs={n_jobs!r} must be an integer or None")
    if n_jobs == 0:
        raise ParameterError("n_jobs=0 must be at least 1, or -1 for all processors")
    return int(n_jobs)


def _run(
    function: Callable[[Item], Result], batches: list[Sequence[Item]], jobs: int, n_jobs: int | None
) -> Generator[list[Result], None, None]:
    if jobs == 1 or len(batches) < 2:
        with _alone():
            yield from ([function(item) for item in batch] for batch in batches)
    else:
        with deaf_workers():
            done = Parallel(n_jobs=n_jobs, return_as="generator")(
                delayed(_in_one_thread)(function, batch) for batch in batches
            )
        with closing(done):
            yield from done


@contextmanager
def deaf_workers() -> Iterator[None]:
    """Processes that are started in here hear no Ctrl-C: it interrupts this process alone, which stops them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415  as POSIX has it

    # What a thread has blocked is handed down to the processes it starts; starting the tracker would lift the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_one_thread(function: Callable[[Item], Result], batch: Sequence[Item]) -> list[Result]:
    # Sound because one thread fixes the order of floating-point sums, on any number of processes. Limits and the global
    # random numbers belong to the whole process, so the threads of one must take turns, or one would lift another's.
    with _alone():
        return [function(item) for item in batch]


@contextmanager
def _alone() -> Iterator[None]:
    """One thread of this process at a time, with one numerical thread; the caller's random numbers come back."""
    with _ALONE, threadpool_limits(limits=1), warnings.catch_warnings():
        # The user did not set what submodels are set to.
        warnings.filterwarnings("ignore", "'n_jobs' has no effect", FutureWarning)
        python, numpy = random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002  the streams that fits seed
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002  as above


@contextmanager
def _progress(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while a person watches, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # noqa: PLC0415  not needed where nobody watches
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.advance(task, done)
