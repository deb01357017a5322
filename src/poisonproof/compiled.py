"""Compiled loops, kept between runs where the disk allows it, and what an interrupt makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import numba

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
    except RuntimeError:
        compiled = numba.njit(nogil=True, fastmath=fastmath)(function)
    return cast("Callable[Arguments, Result]", compiled)


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
