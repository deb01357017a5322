"""``poisonproof tune``: the settings that certify most at a wanted radius, judged by trusted rows."""

from __future__ import annotations

import json
import math
import shlex
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import click

from poisonproof.cli.models import CLASS_ESTIMATORS, CLASS_MODELS, ESTIMATORS, MODELS, OPTIONS, Task, unfitted
from poisonproof.cli.options import SHARE, classes_option, jobs_option
from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options
from poisonproof.errors import FileError, ParameterError
from poisonproof.threat import Moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from poisonproof.holdout import HoldOut
    from poisonproof.schema import Schema, Target
    from poisonproof.tune import Dimension, Family, Tried, Tuned

__all__ = ["command"]

_OUT: Final = Path("poisonproof-tune")
_SHOWN: Final = 10
_FEWEST: Final = 11  # votes: shares of fewer are too coarse to tell settings apart
_COARSE: Final = 3  # and so are smaller radii
_USUAL: Final = {
    "regression": ("kernel-ridge", "ridge", "boosted-trees", "neighbors"),
    "classification": ("ridge", "naive-bayes", "neighbors"),
}
_PUBLISHED: Final = {
    "regression": ("ridge", "boosted-trees", "neighbors"),
    "classification": ("ridge", "neighbors"),
}
_ALWAYS: Final = frozenset({"key", "n_jobs"})  # parameters that models without them have no need of
_HONEST: Final = (
    "These settings were chosen on trusted rows, which keeps proofs honest: chosen on rows that an attacker can touch, "
    "they would void every certificate."
)


@click.command("tune")
@click.argument("trusted", type=click.Path(path_type=Path))
@click.option("--target", help="The column to predict.  [default: the schema's target]")
@click.option("--radius", type=int, required=True, help="The radius that predictions should withstand.")
@click.option("--within", type=SHARE, help="Allowed error, as a share of the target, such as 0.15 or 15%.")
@click.option("--absolute", is_flag=True, help="--within is in the target's units, not a share.")
@click.option("--train-rows", type=int, help="Rows that will be trained on.  [default: as many as are trusted]")
@click.option(
    "--schema", "schema_path", type=click.Path(path_type=Path), help="The declared encoding.  [default: proposed]"
)
@click.option("--task", type=click.Choice(get_args(Task)), default="regression", show_default=True)
@click.option("--model", "kinds", multiple=True, type=click.Choice(list(MODELS)), help="Models to search; repeatable.")
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    type=click.Choice(list(ESTIMATORS | CLASS_ESTIMATORS)),
    help="What submodels may be; repeatable.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting that is not searched.")
@click.option("--partitions", type=int, help="Number of submodels, if it is not to be searched.")
@click.option(
    "--threat", type=click.Choice(get_args(Moves)), help="What the attacker may do.  [default: insert+delete]"
)
@click.option("--max-cost", type=int, help="Costs of moving a submodel to look for.  [default: 1]")
@click.option("--partition-by", type=click.Choice(["features", "row"]), help="What decides a row's block.")
@click.option("--key", type=int, help="Key of the hash that assigns rows to blocks.  [default: 0]")
@classes_option("those in TRUSTED, and any other")
@click.option(
    "--rule", type=click.Choice(["plurality", "runoff"]), help="How submodels elect a class.  [default: plurality]"
)
@click.option("--log-target", is_flag=True, help="Learn the target's logarithm.")
@click.option("--preset", type=click.Choice(["paper"]), help="Search what Hammoudeh and Lowd (2023) searched.")
@click.option("--max-trials", type=int, default=50, show_default=True, help="Settings to try, earlier runs included.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Begin no trial after so long.")
@click.option("--folds", type=int, default=5, show_default=True, help="Trusted rows are cut into so many.")
@click.option("--seed", type=int, default=0, show_default=True, help="What the search draws from.")
@jobs_option("1")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=_OUT, show_default=True)
@output_options
def command(
    trusted: Path,
    *,
    max_trials: int,
    timeout: float | None,
    seed: int,
    out: Path,
    form: str | None,
    **asked: Any,  # noqa: ANN401  the question, by click's names
) -> None:
    """Find settings for fit on TRUSTED, a CSV or Parquet file of rows that no attacker can touch.

    Each setting is judged by the trusted rows that withstand --radius modifications: a fold at a time is certified by a
    model of the others, with fewer submodels or neighbours, and a smaller radius, where --train-rows says that there
    will be more rows. Finished trials are kept in the folder --out, so that the same command goes on.
    """
    from poisonproof.tune import Tuned, trials  # noqa: PLC0415  a fast --help

    _check(asked | {"max_trials": max_trials, "timeout": timeout, "seed": seed})
    schema, goal, place, rows = _read(trusted, out, asked)
    families = _families(asked, schema, rows)
    _keep(schema, place)
    done: list[Tried] = []
    journal = out / "trials.journal"
    try:
        found = trials(families, rows, max_trials=max_trials, timeout=timeout, seed=seed, journal=journal)
        done.extend(found)
    except KeyboardInterrupt:
        click.echo(_left(done, max_trials, out), err=True)
        raise
    except OSError as error:
        said = f"{error.filename or journal}: {error.strerror or error}"
        raise FileError(f"{said}; {_left(done, max_trials, out)}") from None
    _report(Tuned(families, done), rows, goal, asked | {"schema_path": place}).emit(form)


def _check(asked: Mapping[str, Any]) -> None:
    """Refuse what can be seen to be wrong before anything is read or written."""
    for name, least in (("radius", 0), ("max_trials", 1), ("folds", 2), ("seed", 0)):
        if asked[name] < least:
            raise ParameterError(f"--{name.replace('_', '-')} {asked[name]} must be at least {least}")
    within, timeout, classes = asked["within"], asked["timeout"], asked["task"] == "classification"
    if timeout is not None and not timeout > 0:
        raise ParameterError(f"--timeout {timeout:g} must be above 0 seconds")
    if classes and (within is not None or asked["absolute"]):
        raise ParameterError(
            "--within and --absolute are about numbers, and this task is about classes; leave them out"
        )
    if not classes and within is None:
        raise ParameterError("--within is missing; say how far from its target a prediction may be, as in --within 15%")
    if within is not None and not 0 <= within < math.inf:
        raise ParameterError(f"--within {within:g} must be a finite number of at least 0")


def _read(path: Path, out: Path, asked: Mapping[str, Any]) -> tuple[Schema, Target, Path, HoldOut]:
    """The encoding, the target, where the encoding is declared, and the trusted rows."""
    from poisonproof.cli.deployed import _learnt, around_truth  # noqa: PLC0415  a fast --help
    from poisonproof.cli.tables import labels_in, numbers_in, read_table  # noqa: PLC0415
    from poisonproof.holdout import HoldOut  # noqa: PLC0415

    classes = asked["task"] == "classification"
    schema, goal, place = _declared(path, out, asked, classes=classes)
    if classes and goal.transform is not None:
        raise ParameterError(f"a class has no {goal.transform}; leave --log-target and the target's transform out")
    frame = read_table(path, schema.column_types | {goal.name: str if classes else float})
    X = schema.transform(frame)
    if asked["train_rows"] is not None and asked["train_rows"] < len(X):
        raise ParameterError(f"--train-rows {asked['train_rows']} must be at least the {len(X)} trusted rows")
    fold = partial(
        HoldOut.folded, radius=asked["radius"], n_rows=asked["train_rows"], n_folds=asked["folds"], fewest=_FEWEST
    )
    if classes:
        return schema, goal, place, fold(X, labels_in(frame, goal.name))
    truth = numbers_in(frame, goal.name)
    learnt = goal.encode(truth)
    low, high = around_truth(truth, asked["within"], relative=not asked["absolute"])
    lower, upper = _learnt(goal, low, inward=1), _learnt(goal, high, inward=-1)
    return schema, goal, place, fold(X, learnt, lower=lower, upper=upper)


def _declared(path: Path, out: Path, asked: Mapping[str, Any], *, classes: bool) -> tuple[Schema, Target, Path]:
    """The encoding, the target, and the file: one that is there, or one for what is proposed from the trusted rows."""
    from poisonproof.cli.fit import aimed  # noqa: PLC0415  a fast --help
    from poisonproof.schema import Schema  # noqa: PLC0415

    place = asked["schema_path"]
    if place is None:
        proposed = _proposed(path, asked, classes=classes)
        digest = blake2b(repr((proposed.columns, proposed.target)).encode(), digest_size=4).hexdigest()
        place = out / f"schema-{digest}.toml"
        # One that was written before may have been corrected.
        schema = Schema.from_toml(place) if place.exists() else proposed
    else:
        schema = Schema.from_toml(place)
    return *aimed(schema, place, asked["target"], log_target=asked["log_target"]), place


def _proposed(path: Path, asked: Mapping[str, Any], *, classes: bool) -> Schema:
    from poisonproof.cli.tables import read_table  # noqa: PLC0415  a fast --help
    from poisonproof.schema import propose_schema  # noqa: PLC0415

    if asked["target"] is None:
        raise ParameterError("--target is missing; name the column to predict, or give a --schema that declares it")
    table = read_table(path, {asked["target"]: str if classes else float})
    transform: Literal["log"] | None = "log" if asked["log_target"] else None
    return propose_schema(table, target=asked["target"], target_transform=transform)


def _keep(schema: Schema, place: Path) -> None:
    """Write a proposed schema; one that is there stays as it is."""
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        schema.to_toml(place)
        click.echo(f"Proposed the encoding in {place}; correct it, or give your own with --schema.", err=True)


def _families(asked: Mapping[str, Any], schema: Schema, rows: HoldOut) -> dict[str, Family]:
    """The models to search, by the words that ask for them."""
    names, chosen = _named(asked)
    found: dict[str, Family] = {}
    refused: list[ParameterError] = []
    for name in names:
        try:
            found[name] = _family(name, asked, schema, rows)
        except ParameterError as error:
            if chosen:
                raise
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def _named(asked: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
    """The models' names, and whether they were asked for."""
    task, kinds, estimators = asked["task"], asked["kinds"], asked["estimators"]
    usual = (_PUBLISHED if asked["preset"] else _USUAL)[task]
    if not kinds and not estimators:
        return usual, False
    if kinds and estimators and "ensemble" not in kinds:
        raise ParameterError(f"--model {kinds[0]} has no submodels; leave --estimator {estimators[0]} out")
    learners = estimators or tuple(name for name in usual if name not in MODELS)
    others = [kind for kind in kinds if kind != "ensemble"]
    return tuple(dict.fromkeys([*(learners if "ensemble" in kinds or not kinds else ()), *others])), True


def _family(name: str, asked: Mapping[str, Any], schema: Schema, rows: HoldOut) -> Family:
    """A model with what was given, and the rest of its settings to search."""
    from poisonproof.schema import Category  # noqa: PLC0415  a fast --help
    from poisonproof.tune import Family, published_space, usual_space  # noqa: PLC0415

    kind, estimator = (name, None) if name in MODELS else ("ensemble", name)
    known = (MODELS if asked["task"] == "regression" else CLASS_MODELS).get(kind)
    given = {
        key: value for key, value in _given(asked).items() if known is None or key in known.takes or key not in _ALWAYS
    }
    model = unfitted(kind, given, estimator, asked["settings"], asked["task"])
    n_rows = asked["train_rows"] or rows.n_known
    if asked["preset"]:
        space = published_space(model, radius=rows.radius, n_rows=n_rows)
    else:
        light = [isinstance(each, Category) and each.weight == 1 for each in schema.columns for _ in each.features]
        space = usual_space(model, radius=rows.radius, n_rows=n_rows, light=light)
    return Family(model, {key: space[key] for key in space if not _is_set(key, asked)})


def _given(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a model that were given."""
    given = {
        "n_partitions": asked["partitions"],
        "threat": asked["threat"],
        "max_cost": asked["max_cost"],
        "partition_by": asked["partition_by"],
        "key": asked["key"],
        "n_jobs": asked["jobs"],
        "classes": None if asked["classes"] is None else asked["classes"].split(","),
        "rule": asked["rule"],
    }
    return {parameter: value for parameter, value in given.items() if value is not None}


def _is_set(parameter: str, asked: Mapping[str, Any]) -> bool:
    """Whether the user has decided about a parameter."""
    name = parameter.removeprefix("estimator__")
    return parameter in _given(asked) or any(setting.partition("=")[0] == name for setting in asked["settings"])


def _line(tried: Tried, goal: Target, asked: Mapping[str, Any]) -> list[str]:
    """The command that fits a model with these settings."""
    kind, estimator = (tried.family, None) if tried.family in MODELS else ("ensemble", tried.family)
    takes = (MODELS if asked["task"] == "regression" else CLASS_MODELS)[kind].takes
    words = ["poisonproof", "fit", "TRAIN.csv", "--schema", str(asked["schema_path"]), "--target", goal.name]
    words += ["--log-target"] if asked["log_target"] else []
    words += ["--task", asked["task"], "--model", kind, *(["--estimator", estimator] if estimator else [])]
    options = {key: value for key, value in _given(asked).items() if key in takes} | {
        key: value for key, value in tried.settings.items() if key in OPTIONS
    }
    for key, value in options.items():
        words += [OPTIONS[key], ",".join(value) if key == "classes" else str(value)]
    for setting in (*asked["settings"], *_settings(tried)):
        words += ["--set", setting]
    return [*words, "-o", "model.poisonproof"]


def _settings(tried: Tried) -> Iterator[str]:
    """What was searched, as --set takes it."""
    for key, value in tried.settings.items():
        if key not in OPTIONS:
            text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
            yield f"{key.removeprefix('estimator__')}={text}"


def _report(tuned: Tuned, rows: HoldOut, goal: Target, asked: Mapping[str, Any]) -> Report:
    best, ranked = tuned.best, tuned.ranked
    line = _line(best, goal, asked)
    threat = tuned.model.threat
    top = ranked[:_SHOWN]
    columns: dict[str, list[Any]] = {
        "certified accuracy": [each.certified for each in top],
        "of the radius": [each.withstood for each in top],
        "model": [each.family for each in top],
        "settings": [_in_words(each, tuned.families[each.family].space) for each in top],
        "seconds": [round(each.seconds, 2) for each in top],
    }
    document = {
        "schema_version": DOCUMENT_VERSION,
        "kind": "tuning",
        "radius": rows.radius,
        "threat": threat,
        "within": asked["within"],
        "relative": not asked["absolute"],
        "n_trusted": len(rows.X),
        "n_train": rows.n_rows,
        "trials": [_record(each) for each in tuned.trials],
        "best": _record(best),
        "fit": line,
        "command": shlex.join(line),
    }
    title = f"Certified accuracy at radius {rows.radius:,} ({threat}) of {len(rows.X):,} trusted rows"
    return Report(columns, document, _notes(tuned, rows, shlex.join(line)), title)


def _notes(tuned: Tuned, rows: HoldOut, line: str) -> list[str]:
    best, failures = tuned.best, tuned.failures
    shown = f"of {len(tuned.ranked)} settings the best {min(len(tuned.ranked), _SHOWN)} are shown"
    notes = [
        f"{len(tuned.trials)} trials; {shown}. The best of many looks better than it is: evaluate it on other rows."
    ]
    if best.certified == 0:
        notes.append(f"No settings reached radius {rows.radius:,} on any row; ask for a smaller one, or --train-rows.")
    if failures:
        share = f"{len(failures)} of {len(tuned.trials)} trials failed"
        notes.append(f"{share}; the first: {failures[0].family}: {failures[0].reason}")
    if rows.n_rows is None:
        notes.append(f"Settings are for about {rows.n_known:,} training rows; say --train-rows if there will be more.")
    elif _is_rough(tuned.model, rows, rows.n_rows):
        few = f"Only {rows.n_known:,} rows stood in for {rows.n_rows:,}"
        notes.append(f"{few}, so the figures are rough; more trusted rows would help.")
    return [*notes, _HONEST, f"Next, with your table in the place of TRAIN.csv:\n{line}"]


def _is_rough(model: Any, rows: HoldOut, n_rows: int) -> bool:  # noqa: ANN401  one of the package's estimators
    """Whether the model was judged with fewer rows for each vote than it will have, or by a radius too small."""
    sample, needed = rows.scaled(model, rows.n_known)
    for name in ("n_partitions", "n_neighbors"):
        if name in (own := model.get_params(deep=False)):
            count: int = getattr(sample, name)
            return count == _FEWEST and own[name] * rows.n_known < count * n_rows
    return needed < min(_COARSE, rows.radius)


def _in_words(tried: Tried, space: Mapping[str, Dimension]) -> str:
    """The settings of one trial, short."""
    from poisonproof.tune import Weights  # noqa: PLC0415  a fast --help

    words = []
    for key, value in tried.settings.items():
        name, kind = key.removeprefix("estimator__"), space[key]
        if isinstance(kind, Weights):
            words.append(f"weight of categories={min(value):g}")
        else:
            words.append(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}")
    return ", ".join(words)


def _record(tried: Tried) -> dict[str, Any]:
    return {
        "model": tried.family,
        "settings": tried.settings,
        "certified_accuracy": tried.certified,
        "withstood": tried.withstood,
        "seconds": tried.seconds,
        "reason": tried.reason,
    }


def _left(done: list[Tried], total: int, out: Path) -> str:
    found = [tried.certified for tried in done if tried.certified is not None]
    best = f", the best with {max(found):.1%}" if found else ""
    return f"{len(done)} of {total} trials are kept in {out}{best}; the same command goes on from there."
