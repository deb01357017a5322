"""The data sets of the evaluation: where they come from, which bytes are accepted, and what is asked of them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from poisonproof.datasets.published import PublishedSetup

__all__ = ["Source", "source", "sources"]


@dataclass(frozen=True)
class Source:
    """What is known of a data set before any of its rows is read.

    Parameters
    ----------
    name, title : str
        Its name here, and one line on what it is.
    files : tuple of str
        Names it may have in the data folder, each as it is or with ``.gz``.
    sha256 : tuple of str
        Digests of the uncompressed bytes that are accepted; with none the digest is noted on arrival.
    page, licence : str
        Where it is described, and what may be done with it, as far as known.
    rows : int
        Rows of the file.
    target : str
        The column to predict.
    within : float
        How far a prediction may be off.
    relative : bool
        Whether ``within`` is a share of the target or counts in its units.
    transform : {"log"}, optional
        The scale on which predictions are made and certified.
    url : str, optional
        Where it can be fetched without an account.
    member : str, optional
        The file's name inside a fetched archive.
    get : str, optional
        What to take from the page by hand, where nothing can be fetched.
    every : int, default=1
        Every how many rows one is used.
    bundled : bool, default=False
        Whether the package contains it.
    """

    name: str
    title: str
    files: tuple[str, ...]
    sha256: tuple[str, ...]
    page: str
    licence: str
    rows: int
    target: str
    within: float
    relative: bool
    transform: Literal["log"] | None = None
    url: str | None = None
    member: str | None = None
    get: str | None = None
    every: int = 1
    bundled: bool = False

    @property
    def published(self) -> PublishedSetup:
        """How the paper ran its experiments on it: numbers of submodels, spread, learner."""
        from poisonproof.datasets.published import published_setup  # noqa: PLC0415  figures only where asked for

        return published_setup(self.name)


def sources() -> tuple[Source, ...]:
    """Every data set of the evaluation.

    Examples
    --------
    >>> [source.name for source in sources()]
    ['ames', 'austin', 'diamonds', 'weather', 'life', 'spambase']
    """
    return tuple(_registry().values())


def source(name: str) -> Source:
    """What is known of one data set.

    Examples
    --------
    >>> source("life").within, source("life").published.n_partitions
    (3.0, (25, 101, 201))
    """
    known = _registry()
    if name not in known:
        raise ParameterError(f"there is no data set {name!r}; there are {', '.join(map(repr, known))}")
    return known[name]


@cache
def _registry() -> dict[str, Source]:
    text = files("poisonproof.datasets").joinpath("registry.toml").read_text(encoding="utf-8")
    return {name: _source(name, entry) for name, entry in tomllib.loads(text).items()}


def _source(name: str, entry: dict[str, Any]) -> Source:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Source(name=name, **fields)
