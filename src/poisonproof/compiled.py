"""Compiled loops, kept between runs where the disk allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["njit"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def njit(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function compiled on first use, free of the interpreter's lock.

    Where no cache directory can be written it is compiled in every process anew.
    """
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        compiled = numba.njit(nogil=True)(function)
    return cast("Callable[Arguments, Result]", compiled)
