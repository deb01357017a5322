"""Classes on the command line are text, and what is certified is what the library certifies."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from poisonproof import CertifiedClassifier, CertifiedNeighborsClassifier, load, load_certificate
from poisonproof.certificate import Certificate
from poisonproof.cli import models
from poisonproof.schema import Numeric, Schema, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]
    Write = Callable[[Path, list[dict[str, Any]]], None]
    Rows = list[dict[str, Any]]
    Trained = tuple[Path, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]

pytest.importorskip("skops", reason="model files need the io extra")
pytest.importorskip("polars", reason="tables need the io extra")

LABELS = np.array(["01", "1", "1.0"])  # three classes for a reader of text, one for a reader of numbers


@pytest.fixture(scope="module")
def trained(run: Run, write: Write, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A folder with train.csv, rows.csv, schema.toml and model.poisonproof; the rows and labels of both tables."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(260, 2)).round(3)
    y = LABELS[np.digitize(X.sum(axis=1) + rng.normal(scale=0.05, size=260), [0.8, 1.2])]
    rows = [{"a": a, "b": b, "kind": label} for (a, b), label in zip(X.tolist(), y, strict=True)]
    write(folder / "train.csv", rows[:200])
    write(folder / "rows.csv", rows[200:])
    Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)], Target("kind")).to_toml(folder / "schema.toml")
    result = fit(run, folder, "--classes", ",".join(LABELS))
    assert result.exit_code == 0, result.output
    return folder, X[:200], y[:200], X[200:], y[200:]


def fit(run: Run, folder: Path, *options: Any, output: str = "model.poisonproof") -> Result:
    defaults = ("--schema", folder / "schema.toml", "--task", "classification", "-o", folder / output)
    partitions = () if "--partitions" in options or "--model" in options else ("--partitions", 12)
    return run("fit", folder / "train.csv", *defaults, *partitions, *options)


def test_certify_is_the_librarys_certify(run: Run, trained: Trained, tmp_path: Path) -> None:
    folder, X, y, rows, truth = trained
    model = CertifiedClassifier(n_partitions=12, classes=list(LABELS)).fit(X, y)
    arguments = ("certify", folder / "model.poisonproof", folder / "rows.csv")
    for more, expected in (((), model.certify(rows)), (("--class", "kind"), model.certify(rows, truth))):
        result = run(*arguments, *more, "--format", "json")
        assert result.exit_code == 0, result.output
        record = json.loads(result.stdout)
        assert (record["schema_version"], record["kind"]) == (1, "certificate")
        assert record["prediction"] == expected.prediction.tolist()
        assert record["target"] == (truth if more else expected.prediction).tolist()
        assert record["radius"] == expected.radius.tolist()
        assert {type(label) for label in record["prediction"]} == {str}
    shown = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").stdout)))
    assert [row["prediction"] for row in shown] == model.predict(rows).tolist()
    assert " predictions are at their class; at least half of those withstand" in run(*arguments).stdout
    run(*arguments, "-o", tmp_path / "proof.json")
    proof = load_certificate(tmp_path / "proof.json")
    assert isinstance(proof, Certificate)
    assert proof.prediction.tolist() == model.predict(rows).tolist()
    assert max(model.certify(rows).radius) > 3


def test_labels_are_text_whatever_the_other_cells_are(trained: Trained) -> None:
    folder, _, y, _, _ = trained
    model = load(folder / "model.poisonproof")
    assert model.classes_.tolist() == sorted(set(y.tolist())) == ["01", "1", "1.0"]


def test_evaluate_counts_rows_that_stay_at_their_true_class(run: Run, trained: Trained) -> None:
    folder, X, y, rows, truth = trained
    cert = CertifiedClassifier(n_partitions=12, classes=list(LABELS)).fit(X, y).certify(rows)
    right = cert.prediction == truth
    expected = [float(np.mean(right & (cert.radius >= radius))) for radius in (0, 2, 4)]
    arguments = ("evaluate", folder / "model.poisonproof", folder / "rows.csv", "--radii", "0,2,4")
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["certified_accuracy"] == expected
    assert "within" not in record
    assert "Right: within" not in run(*arguments).stdout
    assert 0 < expected[2] < expected[0] < 1
    failed = run(*arguments, "--require-radius", 4, "--at-least", 1)
    assert failed.exit_code == 1
    assert "Gate failed" in failed.stderr


def test_parquet_is_read_like_csv(run: Run, trained: Trained, tmp_path: Path) -> None:
    import polars as pl  # noqa: PLC0415  optional

    folder = trained[0]
    frame = pl.read_csv(folder / "rows.csv", schema_overrides={"kind": pl.String})
    numbers = frame.filter(pl.col("kind") == "1").with_columns(pl.col("kind").cast(pl.Int64))
    for name, table, kind in (("text", frame, pl.String), ("whole", numbers, pl.Int64)):
        assert table["kind"].dtype == kind
        table.write_parquet(tmp_path / f"{name}.parquet")
        table.write_csv(tmp_path / f"{name}.csv")
        outputs = [
            run("certify", folder / "model.poisonproof", tmp_path / f"{name}{end}", "--class", "kind").stdout
            for end in (".parquet", ".csv")
        ]
        assert outputs[0] == outputs[1]
        assert "predictions" in outputs[0]


@pytest.mark.parametrize(
    "options",
    [
        ("--rule", "runoff"),
        ("--estimator", "naive-bayes", "--rule", "runoff", "--classes", "01,1,1.0,2"),
        ("--threat", "delete", "--max-cost", 2),
        ("--threat", "delete", "--max-cost", 2, "--estimator", "naive-bayes", "--set", "var_smoothing=0.1"),
        ("--threat", "delete", "--max-cost", 2, "--rule", "runoff", "--estimator", "ridge", "--set", "alpha=2"),
        ("--model", "neighbors", "--set", "n_neighbors=9"),
        ("--model", "kernel", "--classes", "01,1,1.0", "--empty-value", "1.0"),
        ("--spread", 3, "--layout", "fano", "--classes", "01,1,1.0", "--empty-value", "1"),
        ("--model", "radius", "--classes", "01,1,1.0"),
    ],
)
def test_whatever_is_fitted_can_be_stored_and_certified(run: Run, trained: Trained, options: tuple[Any, ...]) -> None:
    folder, *_, rows, _ = trained
    result = fit(run, folder, *options, output="other.poisonproof")
    assert result.exit_code == 0, result.output
    result = run("certify", folder / "other.poisonproof", folder / "rows.csv", "--format", "json")
    assert result.exit_code == 0, result.output
    record, model = json.loads(result.stdout), load(folder / "other.poisonproof")
    assert record["prediction"] == model.predict(rows).tolist()
    assert record["radius"] == model.certify(rows).radius.tolist()
    assert min(record["radius"]) >= 0
    assert max(record["radius"]) >= 2


def test_the_digest_of_the_rows_knows_the_labels(run: Run, trained: Trained, tmp_path: Path) -> None:
    folder = trained[0]
    lines = (folder / "train.csv").read_text().splitlines(keepends=True)
    swapped = lines[-1].replace(",1.0", ",1") if ",1.0" in lines[-1] else lines[-1].rsplit(",", 1)[0] + ",1.0\n"
    digests = []
    for content in (lines, [lines[0], *reversed(lines[1:])], [*lines[:-1], swapped]):
        (tmp_path / "train.csv").write_text("".join(content))
        (tmp_path / "schema.toml").write_text((folder / "schema.toml").read_text())
        result = fit(run, tmp_path, "--format", "json")
        digests.append(json.loads(result.stdout)["data_sha256"])
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (("--classes", "01,1"), ("contains '1.0'", "not one of the classes", "add it to classes=")),
        (("--classes", "1,,01"), ("--classes 1,,01 holds a class without a name", "between single commas")),
        (("--empty-value", "1"), ("empty_value='1' needs declared classes",)),
        (("--classes", "01,1,1.0", "--empty-value", "7"), ("empty_value='7' is not a class",)),
        (("--model", "neighbors", "--empty-value", "1"), ("--model neighbors for classification has no use",)),
        (("--classes", "1"), ("classes= declares one class", "at least 2")),
        (("--log-target",), ("a class has no log", "leave --log-target")),
        (("--model", "forest"), ("--model forest is not for classification", "ensemble")),
        (("--estimator", "huber"), ("--estimator huber is not for classification", "naive-bayes")),
        (("--model", "neighbors", "--rule", "runoff"), ("--model neighbors for classification has no use for --rule",)),
        (("--max-cost", 2), ("max_cost=2", "threat='delete'")),
        (("--target", "sort"), ("'sort' is missing",)),
    ],
)
def test_fit_refuses(run: Run, trained: Trained, options: tuple[Any, ...], fragments: tuple[str, ...]) -> None:
    refused(fit(run, trained[0], *options, output="refused.poisonproof"), *fragments)
    assert not (trained[0] / "refused.poisonproof").exists()


def refused(result: Result, *fragments: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    for fragment in fragments:
        assert fragment in line


def test_what_is_for_numbers_is_refused_for_classes(run: Run, trained: Trained, folder: Path) -> None:
    home = trained[0]
    certify = ("certify", home / "model.poisonproof", home / "rows.csv")
    for options in (("--within", 0.1), ("--lower", 3), ("--budget", 2)):
        refused(run(*certify, *options), "this model predicts classes")
    for more in (("--within", "0.1"), ("--absolute",)):
        refused(run("evaluate", *certify[1:], *more), "this model predicts classes")
    numbers = ("certify", folder / "plain.poisonproof", folder / "rows.csv")
    refused(run(*numbers, "--class", "cut"), "--class, which is for classifiers")
    refused(run(*numbers, "--class", "cut", "--within", 0.1), "--class, which is for classifiers")
    refused(run(*numbers), "given: none")
    fit_numbers = ("fit", folder / "train.csv", "--schema", folder / "plain.toml", "-o", folder / "refused.poisonproof")
    refused(run(*fit_numbers, "--classes", "a,b"), "--classes is about classes; give --task classification too")
    refused(run(*fit_numbers, "--estimator", "logistic"), "--estimator logistic is not for regression")


def test_bad_labels(run: Run, trained: Trained, tmp_path: Path) -> None:
    folder = trained[0]
    certify = ("certify", folder / "model.poisonproof", tmp_path / "rows.csv", "--class", "kind")
    (tmp_path / "rows.csv").write_text("a,b,kind\n0.1,0.2,1\n0.1,0.2,7\n")
    refused(run(*certify), "contains '7'", "not one of the classes")
    (tmp_path / "rows.csv").write_text("a,b,kind\n0.1,0.2,1\n0.1,0.2,\n")
    refused(run(*certify), "column 'kind'", "the label is missing")
    (tmp_path / "rows.csv").write_text("a,b\n0.1,0.2\n")
    refused(run(*certify), "'kind' is missing")


def test_every_kind_and_learner_can_be_made() -> None:
    for name in models.CLASS_ESTIMATORS:
        model = models.unfitted("ensemble", {}, name, [], "classification")
        assert isinstance(model, CertifiedClassifier)
        assert hasattr(model.estimator, "predict")
    assert isinstance(models.unfitted("ensemble", {}, None, [], "classification").estimator, RidgeClassifier)
    assert isinstance(models.unfitted("neighbors", {}, None, [], "classification"), CertifiedNeighborsClassifier)
    for kind, declared in models.CLASS_MODELS.items():
        parameters = models.unfitted(kind, {}, None, [], "classification").get_params(deep=False)
        assert {*declared.takes, *declared.defaults} <= set(parameters)
