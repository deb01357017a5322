"""``poisonproof fit``: a table to a saved, certified model."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from poisonproof.cli.models import CLASS_ESTIMATORS, ESTIMATORS, LAYOUTS, MODELS, Task, unfitted
from poisonproof.cli.options import classes_option, jobs_option
from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options
from poisonproof.errors import DataError, ParameterError, ThreatError
from poisonproof.threat import Moves

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from poisonproof.schema import Schema, Target
    from poisonproof.store import Manifest

__all__ = ["aimed", "command"]


@click.command("fit")
@click.argument("train", type=click.Path(path_type=Path))
@click.option("--target", help="The column to predict.  [default: the schema's target]")
@click.option("--schema", "schema_path", type=click.Path(path_type=Path), required=True, help="The declared encoding.")
@click.option("--task", type=click.Choice(get_args(Task)), default="regression", show_default=True)
@click.option("--model", "kind", type=click.Choice(list(MODELS)), default="ensemble", show_default=True)
@click.option(
    "--estimator",
    type=click.Choice(list(ESTIMATORS | CLASS_ESTIMATORS)),
    help="What the submodels are.  [default: kernel-ridge; ridge for classes]",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the estimator; repeatable.")
@click.option("--partitions", type=int, help="Number of submodels; odd for regression.  [default: 151]")
@click.option("--spread", type=int, help="Submodels that train on each block; more than 1 overlap.  [default: 1]")
@click.option("--layout", type=click.Choice(LAYOUTS), help="How overlapping blocks are shared.  [default: triples]")
@click.option(
    "--empty-value",
    metavar="NUMBER|CLASS",
    help="Vote where there are no rows, in the target's own units, or one of --classes.",
)
@click.option(
    "--threat", type=click.Choice(get_args(Moves)), help="What the attacker may do.  [default: insert+delete]"
)
@click.option("--max-cost", type=int, help="Costs of moving a submodel to look for.  [default: 1]")
@click.option("--partition-by", type=click.Choice(["features", "row"]), help="What decides a row's block.")
@click.option("--source-column", help="Column with each row's source; modifications then count sources.")
@click.option("--key", type=int, help="Key of the hash that assigns rows to blocks.  [default: 0]")
@classes_option("those in TRAIN, and any other")
@click.option(
    "--rule", type=click.Choice(["plurality", "runoff"]), help="How submodels elect a class.  [default: plurality]"
)
@click.option("--log-target", is_flag=True, help="Learn the target's logarithm.")
@jobs_option("1")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The model file to write.")
@output_options
def command(
    train: Path,
    *,
    schema_path: Path,
    target: str | None,
    log_target: bool,
    source_column: str | None,
    output: Path,
    form: str | None,
    **options: Any,  # noqa: ANN401  what the model is made of, by click's names
) -> None:
    """Train a certified model on TRAIN, a CSV or Parquet file, and save it.

    With --task classification the target's cells are labels, and are taken as text whatever they look like.
    The model file carries the schema, so that certify and evaluate read tables as they come.
    """
    from poisonproof.cli.tables import column_of, labels_in, read_table  # noqa: PLC0415  a fast --help
    from poisonproof.schema import Schema  # noqa: PLC0415
    from poisonproof.store import check_writable, data_digest, save, types_to_trust  # noqa: PLC0415

    check_writable(output)
    model = _unfitted(options, sourced=source_column is not None)
    schema, goal = aimed(Schema.from_toml(schema_path), schema_path, target, log_target=log_target)
    classes = options["task"] == "classification"
    if classes and goal.transform is not None:
        raise ParameterError(f"a class has no {goal.transform}; leave --log-target and the target's transform out")
    if not classes and options["empty_value"] is not None:
        model.set_params(empty_value=_learnt_constant(goal, options["empty_value"]))
    types = schema.column_types | {goal.name: str if classes else float}
    # A source that is a feature too is read as the feature it is declared to be; its name is the same as text.
    frame = read_table(train, ({source_column: str} if source_column else {}) | types)
    X = schema.transform(frame)
    y = labels_in(frame, goal.name) if classes else goal.encode(column_of(frame, goal.name))
    fitted = _fitted(model, X, y, None if source_column is None else column_of(frame, source_column))
    data = data_digest(X, y)
    manifest = save(fitted, output, schema=schema, data=data, notes={"options": _plain(options)})
    _report(fitted, manifest, output, types_to_trust(output)).emit(form)


def _unfitted(options: dict[str, Any], *, sourced: bool) -> Any:  # noqa: ANN401  one of the package's estimators
    """The model of these options; what was not given keeps its default."""
    partition_by = options["partition_by"]
    if sourced and partition_by is not None:
        raise ParameterError("--partition-by and --source-column were both given; a source decides the block by itself")
    if sourced and options["kind"] != "ensemble":
        raise ThreatError(
            f"--source-column was given, but --model {options['kind']} counts rows: one source can insert any number "
            "of neighbours, so against insertions no certificate exists; use --model ensemble"
        )
    if options["layout"] is not None and options["spread"] in (None, 1):
        raise ParameterError(f"--layout {options['layout']} says how blocks are shared; give a --spread above 1 too")
    given = {
        "n_partitions": options["partitions"],
        "spread": options["spread"],
        "layout": options["layout"],
        "empty_value": options["empty_value"],
        "threat": options["threat"],
        "max_cost": options["max_cost"],
        "partition_by": "source" if sourced else partition_by,
        "key": options["key"],
        "n_jobs": options["jobs"],
        "classes": None if options["classes"] is None else options["classes"].split(","),
        "rule": options["rule"],
    }
    chosen = {parameter: value for parameter, value in given.items() if value is not None}
    return unfitted(options["kind"], chosen, options["estimator"], options["settings"], options["task"])


def _learnt_constant(goal: Target, given: str) -> float:
    """The declared vote on the scale on which the target is learnt."""
    try:
        return float(goal.encode([float(given)])[0])
    except ValueError:
        kind = f"a finite number that has a {goal.transform}" if goal.transform else "a finite number"
        raise ParameterError(f"--empty-value {given} must be {kind}, in the units of {goal.name!r}") from None


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as JSON has them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items() if value}


def aimed(declared: Schema, path: Path, target: str | None, *, log_target: bool) -> tuple[Schema, Target]:
    """The schema declared in a file, and its target, once the command line has had its say about that."""
    from poisonproof.schema import Schema, Target  # noqa: PLC0415  a fast --help

    goal: Target | None = declared.target
    if target is not None and (goal is None or goal.name != target):
        goal = Target(target)
    if goal is None:
        raise ParameterError(f"{path} declares no target; name the column to predict with --target")
    if log_target:
        goal = Target(goal.name, "log")
    return Schema([column for column in declared.columns if column.name != goal.name], goal), goal


def _fitted(model: Any, X: NDArray[Any], y: NDArray[Any], groups: ArrayLike | None) -> Any:  # noqa: ANN401
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fitted = model.fit(X, y) if groups is None else model.fit(X, y, groups=groups)
    submodels = getattr(fitted, "submodels_", [])
    refused = [submodel for submodel in submodels if submodel.estimator is None and submodel.reason == "refused"]
    if submodels and all(submodel.estimator is None for submodel in submodels):
        why = refused[0].message.splitlines()[0] if refused and refused[0].message else "no rows"
        raise DataError(
            f"all {len(submodels)} submodels were refused by the estimator ({why}); give it other rows or settings"
        )
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return fitted


def _report(fitted: Any, manifest: Manifest, output: Path, doubtful: list[str]) -> Report:  # noqa: ANN401
    submodels = getattr(fitted, "submodels_", [])
    facts = {
        "path": str(output),
        "model": manifest.model,
        "threat": manifest.threat,
        "unit": manifest.unit,
        "key": manifest.key,
        "n_submodels": len(submodels) or None,
        "n_constant_submodels": sum(submodel.estimator is None for submodel in submodels),
        "n_rows": manifest.data.n_rows if manifest.data else None,
        "n_features": manifest.data.n_features if manifest.data else None,
        "data_sha256": manifest.data.sha256 if manifest.data else None,
        "types_to_trust": doubtful,
    }
    document = {"schema_version": DOCUMENT_VERSION, "kind": "fit"} | facts | {"manifest": asdict(manifest)}
    shown = {name.replace("_", " "): value for name, value in facts.items() if name != "types_to_trust"}
    ask = " ".join(f"--trust {name}" for name in doubtful)
    notes = [f"Whoever reads this file must say that it may build what is inside: {ask}"] if doubtful else []
    columns = {"model file": list(shown), "": [str(value) for value in shown.values()]}
    return Report(columns, document, notes)
