from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from poisonproof.compiled import njit, njit_any_order, pass_on
from poisonproof.votes import fit_submodel

SOURCE = """
def doubled(value):
    return 2 * value
"""


def doubled(value: float) -> float:
    return 2 * value


@pytest.mark.parametrize("compiler", [njit, njit_any_order])
def test_a_function_is_compiled_with_and_without_a_cache(compiler: Any) -> None:
    assert compiler(doubled)(1.5) == 3.0
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)  # noqa: S102  a function without a file has no place for a cache
    assert compiler(namespace["doubled"])(1.5) == 3.0


def test_interrupts_and_short_memory_are_no_matter_of_rows() -> None:
    def raised(cause: BaseException) -> BaseException:
        wrapped = SystemError("returned a result with an exception set")
        wrapped.__cause__ = cause
        return wrapped

    with pytest.raises(KeyboardInterrupt):
        pass_on(raised(KeyboardInterrupt()))
    with pytest.raises(SystemError):
        pass_on(raised(MemoryError()))
    pass_on(raised(ValueError("about rows")))


def test_a_submodel_that_was_interrupted_is_no_refusal() -> None:
    class Interrupted(DummyRegressor):
        def fit(self, *_: object) -> None:
            raise SystemError from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        fit_submodel(Interrupted(), 0.0, np.ones((2, 1)), np.ones(2))
