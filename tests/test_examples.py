"""The examples run from beginning to end, and draw what they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

_EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("path", sorted(_EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  after the backend is chosen

    plt.close("all")
    runpy.run_path(str(path))
    assert plt.get_fignums()
    assert all(axes.has_data() for number in plt.get_fignums() for axes in plt.figure(number).axes)
    assert capsys.readouterr().out.strip()
    plt.close("all")
