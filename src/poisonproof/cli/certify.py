"""``poisonproof certify``: radii or intervals for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from poisonproof.cli.options import SHARE
from poisonproof.cli.report import Report, check_output, output_options
from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from poisonproof.certificate import Certificate, Interval
    from poisonproof.cli.deployed import Deployed

__all__ = ["command"]

_ONE_WAY = "one of --lower/--upper, --within and --budget is needed; given: {}"


@click.command("certify")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("rows", type=click.Path(path_type=Path))
@click.option("--lower", metavar="COLUMN|NUMBER", help="Least allowed prediction.")
@click.option("--upper", metavar="COLUMN|NUMBER", help="Greatest allowed prediction.")
@click.option(
    "--within", type=SHARE, help="Allowed distance from the prediction, as a share of it, such as 0.15 or 15%."
)
@click.option("--target", metavar="COLUMN", help="With --within: the distance from this column's values instead.")
@click.option("--absolute", is_flag=True, help="With --within: a distance in the target's units, not a share.")
@click.option("--class", "wanted", metavar="COLUMN", help="Classes to certify.  [default: the predicted ones]")
@click.option("--budget", type=int, help="Where so many modifications can move each prediction, instead of radii.")
@click.option("--trust", multiple=True, metavar="TYPE", help="A type the model file may build; repeatable.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file (.csv, .json, .md, .txt).")
@output_options
def command(
    model: Path,
    rows: Path,
    *,
    trust: tuple[str, ...],
    output: Path | None,
    form: str | None,
    **asked: Any,  # noqa: ANN401  what is to be proved, by click's names
) -> None:
    """Certify the predictions of MODEL for ROWS, a CSV or Parquet file.

    Say what each prediction must stay within: --lower and --upper (both inclusive, one may be left out), or --within;
    or ask with --budget how far it can be moved. A class needs nothing said, and stays as it is.
    """
    from poisonproof.cli.deployed import Deployed  # noqa: PLC0415  a fast --help
    from poisonproof.cli.tables import read_table  # noqa: PLC0415

    ways = _ways_asked(asked)
    check_output(form, output)
    deployed = Deployed.open(model, trust)
    if deployed.classifies:
        _report(_class_proof(deployed, rows, asked, ways)).emit(form, output)
        return
    if len(ways) != 1 or asked["wanted"] is not None:
        raise ParameterError(_ONE_WAY.format("--class, which is for classifiers" if asked["wanted"] else "none"))
    named = {name: float for name in (asked["target"], *map(_column_name, (asked["lower"], asked["upper"]))) if name}
    frame = read_table(rows, named | deployed.schema.column_types)
    _report(_proof(deployed, frame, asked)).emit(form, output)


def _ways_asked(asked: dict[str, Any]) -> list[str]:
    """Which of the ways to ask about a number were used, at most one of them."""
    bounds = asked["lower"] is not None or asked["upper"] is not None
    ways = [name for name, given in (("--lower/--upper", bounds), ("--within", asked["within"] is not None)) if given]
    ways += ["--budget"] if asked["budget"] is not None else []
    if len(ways) > 1:
        raise ParameterError(_ONE_WAY.format(" and ".join(ways)))
    if asked["within"] is None and (asked["target"] is not None or asked["absolute"]):
        raise ParameterError("--target and --absolute say what --within means; give --within too")
    return ways


def _class_proof(deployed: Deployed, rows: Path, asked: dict[str, Any], ways: list[str]) -> Certificate:
    from poisonproof.cli.tables import labels_in, read_table  # noqa: PLC0415  a fast --help

    if ways:
        raise ParameterError(f"{ways[0]} is about numbers, and this model predicts classes; leave it out")
    wanted = asked["wanted"]
    frame = read_table(rows, deployed.schema.column_types | ({wanted: str} if wanted else {}))
    return deployed.certify_classes(deployed.encode(frame), labels_in(frame, wanted) if wanted else None)


def _proof(deployed: Deployed, frame: Any, asked: dict[str, Any]) -> Certificate | Interval:  # noqa: ANN401
    from poisonproof.cli.deployed import around_truth  # noqa: PLC0415  a fast --help
    from poisonproof.cli.tables import numbers_in  # noqa: PLC0415

    X = deployed.encode(frame)
    if asked["budget"] is not None:
        return deployed.interval(X, asked["budget"])
    if asked["within"] is None:
        return deployed.certify(X, _bound(frame, asked["lower"]), _bound(frame, asked["upper"]))
    relative = not asked["absolute"]
    if asked["target"] is None:
        return deployed.certify_within(X, asked["within"], relative=relative)
    truth = numbers_in(frame, asked["target"], finite=True)
    return deployed.certify(X, *around_truth(truth, asked["within"], relative=relative))


def _bound(frame: Any, given: str | None) -> NDArray[np.float64] | None:  # noqa: ANN401
    import numpy as np  # noqa: PLC0415  a fast --help

    from poisonproof.cli.tables import numbers_in  # noqa: PLC0415  a fast --help

    if given is None:
        return None
    name = _column_name(given)
    return np.array(float(given)) if name is None else numbers_in(frame, name)


def _column_name(given: str | None) -> str | None:
    """The name of a column, or None where a number was given, or nothing."""
    if given is None:
        return None
    try:
        float(given)
    except ValueError:
        return given
    return None


def _report(proof: Certificate | Interval) -> Report:
    from poisonproof.certificate import Certificate  # noqa: PLC0415  a fast --help
    from poisonproof.store import certificate_document  # noqa: PLC0415

    document = certificate_document(proof)
    names = ("prediction", "lower", "upper", "target", "radius", "attack", "exact", "unbreakable")
    columns = {"row": list(range(len(proof)))} | {name: document[name] for name in names if name in document}
    constants = {name: [document[name]] * len(proof) for name in ("budget", "threat", "unit") if name in document}
    method = "" if isinstance(proof, Certificate) else f" ({proof.method})"
    notes = [f"{proof.summary()}{method}."]
    return Report(columns | constants, document, notes, repeated={"method": document["method"]})
