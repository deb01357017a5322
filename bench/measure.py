"""Side-by-side timing: two ways of doing a thing, alternately, in one run, as a ratio of CPU times."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def ratio(
    case: str, ours: Callable[[], object], theirs: Callable[[], object], *, repeats: int = 5, **facts: object
) -> None:
    """Print one JSON line: median CPU seconds of both, and ours as a multiple of theirs."""
    ours(), theirs()  # compile, load and warm up
    spent: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for function, times in zip((ours, theirs), spent, strict=True):
            start = time.process_time()
            function()
            times.append(time.process_time() - start)
    mine, other = (median(times) for times in spent)
    line = {"case": case, "ours_s": round(mine, 6), "theirs_s": round(other, 6), "ratio": round(mine / other, 3)}
    print(json.dumps(line | facts), flush=True)
