from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from poisonproof.compiled import njit, njit_any_order, pass_on
from poisonproof.votes import fit_submodel

if TYPE_CHECKING:
    from pathlib import Path

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


NJIT = "from poisonproof.compiled import njit\n"
LAYERS = {
    "inner": "{njit}@njit\ndef inner(x): return x + {added}\n",
    "middle": "from inner import inner\n{njit}@njit\ndef middle(x): return inner(x)\n",
    "outer": "from middle import middle\n{njit}@njit\ndef outer(x): return middle(x)\n",
}


def test_a_function_is_compiled_anew_when_what_it_calls_has_changed(tmp_path: Path) -> None:
    """Numba itself looks at the function's own file only, so an upgrade would leave old bounds in force."""
    found = []
    for added in (1, 1, 2):
        for name, text in LAYERS.items():
            (tmp_path / f"{name}.py").write_text(text.format(added=added, njit=NJIT))
        ask = "from outer import outer; print(outer(10), sum(outer.stats.cache_hits.values()))"
        asked = subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S603  our own lines
        found.append(asked.stdout.split())
    assert found == [["11", "0"], ["11", "1"], ["12", "0"]]
