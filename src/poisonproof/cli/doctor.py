"""``poisonproof doctor``: versions, extras, and whether the installation certifies correctly."""

from __future__ import annotations

import os
import platform
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import click

from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options

__all__ = ["command"]

_NEEDED: Final = ("numpy", "scipy", "scikit-learn", "numba", "joblib", "threadpoolctl", "click", "rich")
_EXTRAS: Final = {
    "io": ("skops", "polars"),
    "plot": ("matplotlib",),
    "data": ("pooch",),
    "highs": ("highspy",),
    "boost": ("xgboost",),
    "tune": ("optuna",),
}
_FAILED: Final = 1


class Finding(NamedTuple):
    """One thing that was looked at: whether it is as it must be (None: it is optional) and what was found."""

    check: str
    ok: bool | None
    found: str


@click.command("doctor")
@output_options
def command(*, form: str | None) -> int:
    """Check this installation: versions, threads, caches, extras, and a certificate with a known answer."""
    findings = [_python(), *map(_package, _NEEDED), _threads(), _cache(), *_extras(), _self_test()]
    healthy = all(finding.ok is not False for finding in findings)
    marks = {True: "ok", False: "FAILED", None: "-"}
    Report(
        columns={
            "check": [finding.check for finding in findings],
            "": [marks[finding.ok] for finding in findings],
            "found": [finding.found for finding in findings],
        },
        document={
            "schema_version": DOCUMENT_VERSION,
            "kind": "doctor",
            "healthy": healthy,
            "findings": [finding._asdict() for finding in findings],
        },
        notes=["Everything needed is in order." if healthy else "Something needed is not in order."],
    ).emit(form)
    return 0 if healthy else _FAILED


def _python() -> Finding:
    found = (
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    return Finding("python", ok=True, found=found)


def _package(name: str) -> Finding:
    try:
        return Finding(name, ok=True, found=version(name))
    except PackageNotFoundError:
        return Finding(name, ok=False, found=f"not installed; run: pip install {name}")


def _threads() -> Finding:
    import numpy  # noqa: ICN001, F401, PLC0415  loads the thread pools that are looked for
    from threadpoolctl import threadpool_info  # noqa: PLC0415  a fast --help

    pools = ", ".join(f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()) or "none found"
    return Finding("threads", ok=True, found=f"{os.cpu_count()} processors; numerical pools: {pools}")


def _cache() -> Finding:
    """Whether compiled kernels can be kept; without, each process compiles its own."""
    # The order in which numba looks: its own setting, beside the package, the user's cache.
    beside = Path(__file__).resolve().parent.parent / "__pycache__"
    places = [Path(place) for place in (os.environ.get("NUMBA_CACHE_DIR"), beside, Path.home() / ".cache") if place]
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return Finding("kernel cache", ok=True, found=f"{place} is writable")
        except OSError:
            continue
    return Finding("kernel cache", ok=None, found="not writable; set NUMBA_CACHE_DIR to a directory that is")


def _extras() -> list[Finding]:
    findings = []
    for extra, modules in _EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        how = f"needs {', '.join(missing)}; run: pip install 'poisonproof[{extra}]'"
        findings.append(Finding(f"extra {extra}", ok=None if missing else True, found=how if missing else "installed"))
    return findings


def _self_test() -> Finding:
    """Fit and certify where the answer is known by heart: nine agreeing submodels withstand four modifications."""
    import numpy as np  # noqa: PLC0415  a fast --help

    from poisonproof.ensemble import CertifiedRegressor  # noqa: PLC0415

    rows = np.arange(90.0).reshape(-1, 1)
    proof = CertifiedRegressor(n_partitions=9).fit(rows, 2 * rows[:, 0]).certify([[45.0]], lower=80, upper=100)
    radius = int(proof.radius[0])
    return Finding("self-test", ok=radius == 4, found=f"certified radius {radius}, expected 4")
