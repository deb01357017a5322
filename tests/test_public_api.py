from __future__ import annotations

import subprocess
import sys

import pytest

import poisonproof


def test_every_public_name_is_there_and_lazy() -> None:
    for name in poisonproof.__all__:
        assert getattr(poisonproof, name) is not None
    assert set(poisonproof.__all__) <= set(dir(poisonproof))


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, poisonproof; print([m for m in ('numpy', 'sklearn', 'numba', 'polars') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert shown.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = poisonproof.nonsense
