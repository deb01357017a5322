"""The search: one trial after the other, each kept as soon as it has ended."""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from poisonproof.compiled import pass_on
from poisonproof.errors import ParameterError, ParameterTypeError
from poisonproof.tune.found import Tried, Tuned
from poisonproof.tune.journal import key_of, optuna_or_error, quiet, study_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from poisonproof.holdout import HoldOut
    from poisonproof.tune.found import Family

__all__ = ["trials", "tune"]


def tune(
    families: Mapping[str, Family],
    trusted: HoldOut,
    *,
    max_trials: int = 50,
    timeout: float | None = None,
    seed: int = 0,
    journal: str | os.PathLike[str] | None = None,
) -> Tuned:
    """The settings that certify most trusted rows at the radius wanted of them.

    Parameters
    ----------
    families : mapping of str to Family
        Models to choose from, and their settings.
    trusted : HoldOut
        Rows that the attacker cannot touch, and the radius that their predictions should withstand.
    max_trials : int, default=50
        How many settings to try, those in the journal included.
    timeout : float, optional
        No trial is begun after so many seconds.
    seed : int, default=0
        What the search draws from.
    journal : path, optional
        Where finished trials are kept, so that the same search goes on; another search may use the same file.

    Notes
    -----
    The sampler is the tree-structured Parzen estimator of Bergstra et al. (2011). It is seeded anew for each trial, by
    the number of those before it, so that interrupted searches try the same settings as others. Chosen on rows that an
    attacker can touch, settings would be chosen by the attacker, and void every certificate.

    Examples
    --------
    >>> from poisonproof.holdout import HoldOut
    >>> from poisonproof.tune import Family, Range
    >>> from poisonproof.neighbors import CertifiedNeighborsRegressor
    >>> X = np.linspace(0, 1, 200).reshape(-1, 1)
    >>> trusted = HoldOut.folded(X, 1 + X[:, 0], radius=5, within=0.1)
    >>> family = Family(CertifiedNeighborsRegressor(), {"n_neighbors": Range(1, 101, 101, "odd")})
    >>> found = tune({"neighbors": family}, trusted, max_trials=8)
    >>> found.best.certified
    1.0
    """
    run = trials(families, trusted, max_trials=max_trials, timeout=timeout, seed=seed, journal=journal)
    return Tuned(families, list(run))


def trials(
    families: Mapping[str, Family],
    trusted: HoldOut,
    *,
    max_trials: int = 50,
    timeout: float | None = None,
    seed: int = 0,
    journal: str | os.PathLike[str] | None = None,
) -> Generator[Tried, None, None]:
    """The trials of :func:`tune` as they end, those that were kept first."""
    optuna = optuna_or_error()
    _check(families, trusted, max_trials, timeout, seed)
    study = study_of(optuna, journal, key_of(families, trusted, seed))
    done = [_tried(trial, families) for trial in study.get_trials(deepcopy=False) if _is_finished(trial)]
    yield from done[:max_trials]
    last = math.inf if timeout is None else monotonic() + timeout
    with _watched(done, max_trials) as tell:
        while len(done) < max_trials and monotonic() < last:
            with quiet(optuna):
                tried = _next(study, families, trusted, done, seed)
            done.append(tried)
            tell()
            yield tried


def _check(families: Mapping[str, Family], trusted: HoldOut, max_trials: int, timeout: float | None, seed: int) -> None:
    if not families:
        raise ParameterError("families is empty; give at least one model to tune")
    for name, value in (("max_trials", max_trials), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise ParameterTypeError(f"{name}={value!r} must be an integer")
    if max_trials < 1:
        raise ParameterError(f"max_trials={max_trials} must be at least 1")
    if timeout is not None and not timeout > 0:
        raise ParameterError(f"timeout={timeout:g} must be above 0 seconds")
    if seed < 0:
        raise ParameterError(f"seed={seed} must be at least 0")
    if trusted.low is None and not all(is_classifier(family.model) for family in families.values()):
        raise ParameterError("within is missing; say how far from its target a prediction may be")


def _next(
    study: Any,  # noqa: ANN401  optuna's
    families: Mapping[str, Family],
    trusted: HoldOut,
    done: Sequence[Tried],
    seed: int,
) -> Tried:
    """One more trial, kept as soon as it has ended."""
    optuna = optuna_or_error()
    number = len(done)
    # Each trial draws from a stream of its own, so that it does not matter in how many runs the others were made.
    stream = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    study.sampler = optuna.samplers.TPESampler(seed=stream, constant_liar=False)
    if number < len(families):
        name, family = list(families.items())[number]
        first = {f"{name} {key}": dimension.coded(dimension.start) for key, dimension in family.space.items()}
        study.enqueue_trial({"family": name, **first})
    trial = study.ask()
    name = trial.suggest_categorical("family", list(families))
    for key, dimension in families[name].space.items():
        dimension.ask(trial, f"{name} {key}")
    settings = _settings(trial.params, name, families[name])
    tried = _known(done, name, settings) or _try(families[name], name, settings, trusted)
    trial.set_user_attr("seconds", tried.seconds)
    if tried.certified is None or tried.withstood is None:
        trial.set_user_attr("reason", tried.reason)
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
    else:
        trial.set_user_attr("certified", tried.certified)
        trial.set_user_attr("withstood", tried.withstood)
        # What is withstood in the mean counts less than one row that is certified, but gives the search a slope.
        study.tell(trial, tried.certified + tried.withstood / (trusted.n_certified + 1))
    return tried


def _known(done: Sequence[Tried], name: str, settings: Mapping[str, Any]) -> Tried | None:
    """What became of these settings before."""
    return next((tried for tried in done if (tried.family, tried.settings) == (name, settings)), None)


def _try(family: Family, name: str, settings: dict[str, Any], trusted: HoldOut) -> Tried:
    started = monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of blocks without rows, say, in hundreds of ensembles that nobody keeps
            shares = trusted.withstood(family.build(settings), refuse=True)
    except Exception as error:  # noqa: BLE001  whatever a model raises, it is about these settings
        pass_on(error)
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return Tried(name, settings, None, None, monotonic() - started, reason)
    return Tried(name, settings, float(np.mean(shares >= 1)), float(np.mean(shares)), monotonic() - started)


def _settings(codes: Mapping[str, Any], name: str, family: Family) -> dict[str, Any]:
    return {key: dimension.value(codes[f"{name} {key}"]) for key, dimension in family.space.items()}


def _is_finished(trial: Any) -> bool:  # noqa: ANN401  optuna's
    """Whether a trial ended by itself; one that was interrupted has no say."""
    return trial.state.name == "COMPLETE" or (trial.state.name == "FAIL" and "reason" in trial.user_attrs)


def _tried(trial: Any, families: Mapping[str, Family]) -> Tried:  # noqa: ANN401  optuna's
    name, told = trial.params["family"], trial.user_attrs
    settings = _settings(trial.params, name, families[name])
    return Tried(name, settings, told.get("certified"), told.get("withstood"), told["seconds"], told.get("reason"))


@contextmanager
def _watched(done: Sequence[Tried], total: int) -> Iterator[Callable[[], None]]:
    """A bar on standard error while a person watches, nothing elsewhere."""
    if len(done) >= total or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415  not needed where nobody watches
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    def said() -> str:
        best = max((tried.order for tried in done), default=(-1.0, -1.0))[0]
        return "trying settings" if best < 0 else f"best so far {best:.1%}"

    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(said(), total=total, completed=len(done))
        yield lambda: bar.update(task, completed=len(done), description=said())
