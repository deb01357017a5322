"""``poisonproof evaluate``: certified accuracy on rows with known targets."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from poisonproof.cli.options import SHARE
from poisonproof.cli.report import DOCUMENT_VERSION, Report, check_output, output_options
from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from poisonproof.certificate import Certificate
    from poisonproof.cli.deployed import Deployed
    from poisonproof.evaluate import CertifiedAccuracy

__all__ = ["command"]

GATE_FAILED = 1
_WITHIN = 0.15


def _radii(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Integers separated by commas."""
    try:
        radii = tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} must be integers separated by commas, as in 1,35,70", ctx, param) from None
    if min(radii) < 0:
        raise click.BadParameter(f"{value!r} contains a negative radius; every radius must be at least 0", ctx, param)
    return radii


@click.command("evaluate")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("rows", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--radii", callback=_radii, default="0,1,5,10,25,50,100", show_default=True, help="Radii to ask for.")
@click.option(
    "--within", type=SHARE, help="Allowed error, as a share of the target, such as 0.15 or 15%.  [default: 15%]"
)
@click.option("--absolute", is_flag=True, help="--within is in the target's units, not a share.")
@click.option("--target", metavar="COLUMN", help="Column of the true values.  [default: the model's target]")
@click.option("--require-radius", type=int, metavar="RADIUS", help="Gate: exit with 1 unless enough rows reach this.")
@click.option("--at-least", type=float, metavar="SHARE", help="Gate: the share of rows that must reach it.")
@click.option("--trust", multiple=True, metavar="TYPE", help="A type the model file may build; repeatable.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file (.csv, .json, .md, .txt).")
@output_options
def command(
    model: Path,
    rows: tuple[Path, ...],
    *,
    radii: tuple[int, ...],
    within: float | None,
    absolute: bool,
    target: str | None,
    require_radius: int | None,
    at_least: float | None,
    trust: tuple[str, ...],
    output: Path | None,
    form: str | None,
) -> int:
    """Measure the certified accuracy of MODEL on ROWS: the share that stay near their true value, or at their class.

    Several files of rows are several trials: the mean and the standard deviation over them are reported.
    """
    from poisonproof.cli.deployed import Deployed  # noqa: PLC0415  a fast --help
    from poisonproof.evaluate import certified_accuracy  # noqa: PLC0415

    _check_gate(require_radius, at_least)
    check_output(form, output)
    deployed = Deployed.open(model, trust)
    asked = _question(deployed, target, within, relative=not absolute)
    trials = [_certified(deployed, path, asked) for path in rows]
    accuracy = certified_accuracy(trials, radii)
    gate = None
    if require_radius is not None:
        gate = {
            "radius": require_radius,
            "at_least": at_least,
            "reached": certified_accuracy(trials, [require_radius]).at(require_radius),
            "passed": _passes(trials, require_radius, at_least or 0.0),
        }
    _report(accuracy, asked, gate).emit(form, output)
    if gate is None or gate["passed"]:
        return 0
    click.echo(
        f"Gate failed: {gate['reached']:.1%} of rows have radius {require_radius}, {at_least:.1%} must.", err=True
    )
    return GATE_FAILED


def _check_gate(require_radius: int | None, at_least: float | None) -> None:
    if (require_radius is None) != (at_least is None):
        raise ParameterError("--require-radius and --at-least belong together; give both or neither")
    if require_radius is not None and require_radius < 0:
        raise ParameterError(f"--require-radius {require_radius} must be at least 0")
    if at_least is not None and not 0 <= at_least <= 1:
        raise ParameterError(f"--at-least {at_least:g} must be a share from 0 to 1")


def _passes(trials: list[Certificate], radius: int, at_least: float) -> bool:
    """Whether the mean share over the trials is at least this, in exact arithmetic."""
    # The mean of floats may lie below a share that every single trial has.
    shares = (Fraction(int((trial.radius >= radius).sum()), len(trial)) for trial in trials)
    return sum(shares) >= len(trials) * Fraction(str(at_least))


class _Question(NamedTuple):
    """When a prediction is right: within so much of a column's number, or, without, at its class."""

    target: str
    within: float | None
    relative: bool

    def record(self) -> dict[str, Any]:
        """What a document says of it."""
        return {} if self.within is None else self._asdict()

    def notes(self) -> list[str]:
        """What a person reads of it."""
        if self.within is None:
            return []
        share = f"{100 * self.within:.6g}%" if self.relative else f"{self.within:.6g}"
        return [f"Right: within {share} of {self.target}."]


def _question(deployed: Deployed, target: str | None, within: float | None, *, relative: bool) -> _Question:
    if deployed.classifies and (within is not None or not relative):
        raise ParameterError(
            "--within and --absolute are about numbers, and this model predicts classes; leave them out"
        )
    share = _WITHIN if within is None else within
    return _Question(target or deployed.target.name, None if deployed.classifies else share, relative)


def _certified(deployed: Deployed, path: Path, asked: _Question) -> Certificate:
    from poisonproof.cli.deployed import around_truth  # noqa: PLC0415  a fast --help
    from poisonproof.cli.tables import labels_in, numbers_in, read_table  # noqa: PLC0415

    frame = read_table(path, deployed.schema.column_types | {asked.target: float if asked.within is not None else str})
    X = deployed.encode(frame)
    if asked.within is None:
        return deployed.certify_classes(X, labels_in(frame, asked.target))
    truth = numbers_in(frame, asked.target, finite=True)
    return deployed.certify(X, *around_truth(truth, asked.within, relative=asked.relative))


def _report(accuracy: CertifiedAccuracy, asked: _Question, gate: dict[str, Any] | None) -> Report:
    record = accuracy.to_dict() | asked.record()
    return Report(
        columns={"radius": record["radius"], "certified accuracy": record["certified_accuracy"], "sd": record["sd"]},
        document={"schema_version": DOCUMENT_VERSION, "kind": "evaluation"} | record | {"gate": gate},
        notes=[accuracy.summary(), *asked.notes()],
        repeated={name: record[name] for name in ("threat", "unit", "method")} | asked.record(),
    )
