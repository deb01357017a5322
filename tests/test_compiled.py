from __future__ import annotations

from typing import Any

from poisonproof.compiled import njit

SOURCE = """
def doubled(value):
    return 2 * value
"""


def doubled(value: float) -> float:
    return 2 * value


def test_a_function_is_compiled_with_and_without_a_cache() -> None:
    assert njit(doubled)(1.5) == 3.0
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)  # noqa: S102  a function without a file has no place for a cache
    assert njit(namespace["doubled"])(1.5) == 3.0
