"""Compiled loops, kept between runs where the disk allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["njit", "njit_any_order"]

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
