"""``poisonproof demo``: the bundled diamonds from rows to certificates, beside the published figures."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR
from time import process_time
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from poisonproof.certificate import Certificate, Interval
    from poisonproof.cli.deployed import Deployed
    from poisonproof.evaluate import CertifiedAccuracy
    from poisonproof.schema import Schema

__all__ = ["command"]

_PARTITIONS: Final = 151
_ALPHA: Final = 6.01e-2  # the paper's weight decay for 151 ridge submodels on these rows
_WITHIN: Final = 0.15
_RADII: Final = (1, 35, 70)
_BUDGET: Final = 35
_SEED: Final = 0
_SHOWN: Final = 5


class _Split(NamedTuple):
    train: NDArray[np.int64]
    test: NDArray[np.int64]


@click.command("demo")
@output_options
def command(*, form: str | None) -> None:
    """Certify the prices of 5,394 diamonds against poisoned training rows.

    Trains 151 ridge submodels on the other 48,546, and shows certified accuracy beside the published figures.
    """
    from poisonproof.cli.deployed import around_truth  # noqa: PLC0415  a fast --help
    from poisonproof.datasets import load_diamonds  # noqa: PLC0415
    from poisonproof.evaluate import certified_accuracy  # noqa: PLC0415

    started = process_time()
    diamonds = load_diamonds()
    rows, prices = diamonds.X, diamonds.y
    split = _split(len(diamonds))
    _say(f"Training {_PARTITIONS} ridge submodels on {len(split.train):,} diamonds …")
    deployed = _deployed(rows[split.train], prices[split.train], diamonds.schema)
    _say(f"Certifying {len(split.test):,} predictions …")
    bounds = around_truth(prices[split.test], _WITHIN, relative=True)
    proof = deployed.certify(rows[split.test], *bounds)
    band = deployed.interval(rows[split.test[:_SHOWN]], _BUDGET)
    accuracy = certified_accuracy(proof, _RADII)
    seconds = process_time() - started
    if form in (None, "table"):
        _examples(proof, band, prices[split.test]).emit("table")
        click.echo()
    _comparison(proof, accuracy, seconds).emit(form)


def _deployed(rows: NDArray[np.float64], prices: NDArray[np.float64], schema: Schema) -> Deployed:
    from sklearn.linear_model import Ridge  # noqa: PLC0415  a fast --help

    from poisonproof.cli.deployed import Deployed  # noqa: PLC0415
    from poisonproof.ensemble import CertifiedRegressor  # noqa: PLC0415

    deployed = Deployed(CertifiedRegressor(Ridge(_ALPHA), n_partitions=_PARTITIONS), schema)
    # The schema has prices learnt as logarithms; a median passes through unchanged, so no certificate suffers.
    deployed.model.fit(rows, deployed.target.encode(prices))
    return deployed


def _split(count: int) -> _Split:
    import numpy as np  # noqa: PLC0415  a fast --help

    order = np.random.default_rng(_SEED).permutation(count)
    return _Split(train=order[count // 10 :], test=order[: count // 10])


def _examples(proof: Certificate, band: Interval, prices: NDArray[np.float64]) -> Report:
    above, below = f"stays above, for {_BUDGET} rows", f"stays below, for {_BUDGET} rows"
    columns = {
        "true price": prices[:_SHOWN].tolist(),
        "prediction": proof.prediction[:_SHOWN].tolist(),
        "radius": proof.radius[:_SHOWN].tolist(),
        above: band.lower.tolist(),
        below: band.upper.tolist(),
    }
    best = int(proof.radius[:_SHOWN].argmax())
    notes = [f"Diamond {best + 1}: {proof.summary(best)}."]
    outward = {above: ROUND_FLOOR, below: ROUND_CEILING}
    return Report(columns, {}, notes, "Five diamonds, certified within ±15 %", outward)


def _comparison(proof: Certificate, accuracy: CertifiedAccuracy, seconds: float) -> Report:
    from poisonproof.datasets import published_accuracy  # noqa: PLC0415  a fast --help

    published = {figure.radius: figure for figure in published_accuracy("diamonds", "PCR", _PARTITIONS)}
    paper = [published[radius] for radius in _RADII]
    document = {"schema_version": DOCUMENT_VERSION, "kind": "demo", "within": _WITHIN, "cpu_seconds": seconds}
    document |= accuracy.to_dict() | {"published": [{"mean": figure.mean, "sd": figure.sd} for figure in paper]}
    return Report(
        columns={
            "radius": list(_RADII),
            "certified accuracy": [f"{share:.1%}" for share in accuracy.mean.tolist()],
            "published (PCR)": [f"{figure.mean:.1%} ± {100 * figure.sd:.1f}" for figure in paper],
        },
        document=document,
        notes=[
            accuracy.summary(),
            "Published: Hammoudeh and Lowd, SaTML 2023. A radius is a number of training rows, inserted or deleted.",
            f"{proof.summary()}. {seconds:.1f} s of processor time.",
        ],
        title=f"Diamonds within ±15 % of their true price, {_PARTITIONS} ridge submodels",
    )


def _say(doing: str) -> None:
    click.echo(doing, err=True)
