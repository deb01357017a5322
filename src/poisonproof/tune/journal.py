"""Where finished trials are kept: a journal of optuna's, with a study for each question."""

from __future__ import annotations

import json
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from poisonproof.errors import FileError, MissingExtraError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from poisonproof.holdout import HoldOut
    from poisonproof.tune.found import Family

__all__ = ["key_of", "optuna_or_error", "quiet", "study_of"]

_FORMAT: Final = 1  # raised whenever a trial is computed in another way


def key_of(families: Mapping[str, Family], trusted: HoldOut, seed: int) -> str:
    """What the outcome of a search hangs on, in one word."""
    words = [
        [name, type(family.model).__qualname__, _plain(family.model.get_params()), repr(family.space)]
        for name, family in families.items()
    ]
    digest = blake2b(digest_size=16)
    for table in (trusted.X, trusted.folds, trusted.low, trusted.high):
        digest.update(b"" if table is None else np.ascontiguousarray(table).tobytes())
    # Numbers as Python has them, because JSON knows no others.
    n_rows = None if trusted.n_rows is None else int(trusted.n_rows)
    asked = [trusted.y.tolist(), int(trusted.radius), n_rows, int(trusted.fewest)]
    rest = [words, trusted.X.shape, asked, int(seed), version("poisonproof"), _FORMAT]
    digest.update(json.dumps(rest).encode())
    return digest.hexdigest()


def _plain(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as text, whole arrays included, which ``repr`` would shorten."""
    return {
        name: str(value.tolist()) if isinstance(value, np.ndarray) else f"{type(value).__qualname__} {value!r}"
        for name, value in parameters.items()
        if not hasattr(value, "get_params")
    } | {name: type(value).__qualname__ for name, value in parameters.items() if hasattr(value, "get_params")}


def study_of(optuna: ModuleType, journal: str | os.PathLike[str] | None, name: str) -> Any:  # noqa: ANN401
    """The study of this name, in a file if one is given."""
    with quiet(optuna):
        storage = None if journal is None else _storage(Path(journal))
        return optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)


def _storage(path: Path) -> Any:  # noqa: ANN401  optuna's
    from optuna.storages import JournalStorage  # noqa: PLC0415  optional
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock  # noqa: PLC0415

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        storage = JournalStorage(JournalFileBackend(str(path), JournalFileOpenLock(str(path))))
        with path.open("rb+") as file:
            _drop_half_a_line(file)
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError):
        raise FileError(f"{path} is no journal of trials; move it away, or name another place") from None
    return storage


def _drop_half_a_line(file: BinaryIO) -> None:
    """Cut off a last line that was not written to its end, on which the next one would follow."""
    content = file.read()
    whole = content.rfind(b"\n") + 1
    half = content[whole:]
    if half and not half.startswith(b"{"):
        raise ValueError("this is not what a journal's lines begin with")
    # Optuna minds a last line that it cannot read only once it has written another one behind it.
    for line in content[:whole].splitlines()[-1:]:
        json.loads(line)
    file.truncate(whole)


@contextmanager
def quiet(optuna: ModuleType) -> Iterator[None]:
    """Optuna says nothing of each trial; how much it says elsewhere is left as it is."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def optuna_or_error() -> ModuleType:
    """The module, or an error that says how to come by it."""
    try:
        import optuna  # noqa: PLC0415  optional
    except ImportError:
        raise MissingExtraError("tuning needs optuna; run: pip install 'poisonproof[tune]'") from None
    module: ModuleType = optuna
    return module
