"""Compiled loops, kept between runs where the disk allows it, and what an interrupt makes of them."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numba
from numba.core.dispatcher import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["njit", "njit_any_order", "pass_on"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def njit(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function compiled on first use, free of the interpreter's lock.

    Where no cache directory can be written it is compiled in every process anew.
    """
    return _compiled(function, set())


def njit_any_order(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The same, with sums in whatever order is fastest: one and the same for as many terms."""
    return _compiled(function, {"reassoc", "contract"})


def _compiled(function: Callable[Arguments, Result], fastmath: set[str]) -> Callable[Arguments, Result]:
    try:
        compiled = numba.njit(cache=True, nogil=True, fastmath=fastmath)(function)
        _stamp_with_callees(compiled)
    except (RuntimeError, AttributeError, OSError):
        compiled = numba.njit(nogil=True, fastmath=fastmath)(function)
    return cast("Callable[Arguments, Result]", compiled)


def _stamp_with_callees(compiled: Any) -> None:  # noqa: ANN401  numba's types are untyped
    """Let a kept function be compiled anew when a file that it takes compiled functions from has changed."""
    # Sound because numba asks for the function's own file alone, while what it calls has been compiled into it: a bound
    # mended over there would go on being computed as before.
    files: set[str] = set()
    waiting = [compiled.py_func]
    while waiting:
        function = waiting.pop()
        if function.__code__.co_filename not in files:
            files.add(function.__code__.co_filename)
            waiting += [one.py_func for one in function.__globals__.values() if isinstance(one, Dispatcher)]
    kept = compiled._cache._cache_file  # noqa: SLF001  numba has no public way
    kept._source_stamp = (kept._source_stamp, *(blake2b(Path(file).read_bytes()).digest() for file in sorted(files)))  # noqa: SLF001


def pass_on(error: BaseException) -> None:
    """Raise again what says nothing about the rows at work: that memory is short, or that somebody pressed Ctrl-C.

    An interrupt that falls into compiled code comes out as the cause of some other error.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        if isinstance(cause, MemoryError):
            raise error
        cause = cause.__cause__ or cause.__context__
