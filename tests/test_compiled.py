from __future__ import annotations

from typing import Any

import pytest

from poisonproof.compiled import njit, njit_any_order

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
