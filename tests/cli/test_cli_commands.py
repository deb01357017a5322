"""What the commands compute is what the library computes, in every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from poisonproof import CertifiedRegressor, layout, load_certificate
from poisonproof.certificate import Certificate, Interval
from poisonproof.cli.deployed import Deployed
from poisonproof.cli.models import LAYOUTS, MODELS
from poisonproof.schema import Category, Numeric, Schema, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]
    Write = Callable[[Path, list[dict[str, Any]]], None]
    Rows = list[dict[str, Any]]

pytest.importorskip("skops", reason="model files need the io extra")
pytest.importorskip("polars", reason="tables need the io extra")


def columns_of(rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.fixture(scope="module")
def reference(table: Rows, folder: Path) -> tuple[CertifiedRegressor, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The plain model, fitted without any file, with the encoded rows and their prices."""
    schema = Schema.from_toml(folder / "plain.toml")
    train, rows = columns_of(table[:500]), columns_of(table[500:])
    model = CertifiedRegressor(n_partitions=11).fit(schema.transform(train), train["price"])
    return model, schema.transform(rows), np.array(rows["price"])


def test_certify_is_the_librarys_certify(run: Run, folder: Path, reference: Any) -> None:
    model, X, prices = reference
    for arguments, expected in (
        (("--lower", 2000, "--upper", "6e3"), model.certify(X, 2000, 6000)),
        (("--upper", "price"), model.certify(X, None, prices)),
        (("--lower", "price"), model.certify(X, prices)),
        (("--within", 0.2), model.certify(X, within=0.2)),
        (("--within", 300, "--absolute"), model.certify(X, within=300, relative=False)),
        (("--within", 0.2, "--target", "price"), model.certify(X, 0.8 * prices, 1.2 * prices)),
    ):
        result = run("certify", folder / "plain.poisonproof", folder / "rows.csv", "--format", "json", *arguments)
        assert result.exit_code == 0, result.output
        record = json.loads(result.stdout)
        assert record["schema_version"] == 1
        assert record["kind"] == "certificate"
        assert record["radius"] == expected.radius.tolist()
        assert record["prediction"] == expected.prediction.tolist()


def test_budgets_give_intervals(run: Run, folder: Path, reference: Any, tmp_path: Path) -> None:
    model, X, _ = reference
    run("certify", folder / "plain.poisonproof", folder / "rows.csv", "--budget", 2, "-o", tmp_path / "band.json")
    band, expected = load_certificate(tmp_path / "band.json"), model.interval(X, 2)
    assert isinstance(band, Interval)
    np.testing.assert_array_equal(band.lower, expected.lower)
    np.testing.assert_array_equal(band.upper, expected.upper)
    shown = run("certify", folder / "plain.poisonproof", folder / "rows.csv", "--budget", 2).stdout
    assert f"{expected.summary()} ({expected.method})." in shown


def test_a_transformed_target_is_certified_in_its_own_units(
    run: Run, folder: Path, table: Rows, tmp_path: Path
) -> None:
    schema = Schema.from_toml(folder / "schema.toml")
    train, rows = columns_of(table[:500]), columns_of(table[500:])
    model = CertifiedRegressor(n_partitions=11).fit(schema.transform(train), np.log(train["price"]))
    X, prices = schema.transform(rows), np.array(rows["price"])
    votes, lower, upper = np.exp(model.votes(X)), 0.7 * prices, 1.3 * prices
    arguments = (folder / "model.poisonproof", folder / "rows.csv", "--within", 0.3, "--target", "price")
    result = run("certify", *arguments, "-o", tmp_path / "proof.json")
    assert result.exit_code == 0
    proof = load_certificate(tmp_path / "proof.json")
    assert isinstance(proof, Certificate)
    assert proof.lower is not None
    np.testing.assert_allclose(proof.prediction, np.median(votes, axis=0))
    np.testing.assert_allclose(proof.lower, lower)
    # Eleven votes: the median leaves once six of them are out on one side.
    good = np.minimum((votes <= upper).sum(axis=0), (votes >= lower).sum(axis=0))
    np.testing.assert_array_equal(proof.radius, np.maximum(good - 6, -1))

    run("certify", folder / "model.poisonproof", folder / "rows.csv", "--budget", 3, "-o", tmp_path / "band.json")
    band = load_certificate(tmp_path / "band.json")
    assert isinstance(band, Interval)
    ordered = np.sort(votes, axis=0)
    np.testing.assert_allclose(band.lower, ordered[2])
    np.testing.assert_allclose(band.upper, ordered[8])
    assert (band.lower < ordered[2]).all()
    assert (band.upper > ordered[8]).all()


def test_bounds_that_a_logarithm_does_not_reach(run: Run, folder: Path) -> None:
    everything = run("certify", folder / "model.poisonproof", folder / "rows.csv", "--lower", -5, "--format", "json")
    nothing = run("certify", folder / "model.poisonproof", folder / "rows.csv", "--upper", 0, "--format", "json")
    own = run("certify", folder / "model.poisonproof", folder / "rows.csv", "--within", 0.5, "--format", "json")
    # Every price is above -5, so nothing an attacker does puts a vote below.
    assert min(json.loads(everything.stdout)["radius"]) >= 5
    assert set(json.loads(nothing.stdout)["radius"]) == {-1}
    assert min(json.loads(own.stdout)["radius"]) >= 0


def test_log1p_targets(table: Rows, folder: Path) -> None:
    text = (folder / "schema.toml").read_text().replace('"log"', '"log1p"')
    (folder / "log1p.toml").write_text(text)
    schema = Schema.from_toml(folder / "log1p.toml")
    train = columns_of(table[:200])
    deployed = Deployed(CertifiedRegressor(n_partitions=5), schema)
    X = schema.transform(train)
    deployed.model.fit(X, deployed.target.encode(train["price"]))
    votes = np.expm1(deployed.model.votes(X))
    proof = deployed.certify(X, None, np.full(200, 3000.0))
    good = (votes <= 3000).sum(axis=0)
    np.testing.assert_array_equal(proof.radius, np.maximum(good - 3, -1))


def test_rounding_can_only_lower_a_radius(table: Rows, folder: Path) -> None:
    schema = Schema.from_toml(folder / "schema.toml")
    train = columns_of(table[:200])
    deployed = Deployed(CertifiedRegressor(n_partitions=5), schema)
    X = schema.transform(train)
    deployed.model.fit(X, deployed.target.encode(train["price"]))
    prediction = deployed.predict(X)
    # At the very edge nobody knows on which side rounding left a transformed prediction, so nothing is promised.
    assert (deployed.certify(X, None, prediction).radius == -1).all()
    assert (deployed.certify(X, prediction, None).radius == -1).all()
    assert (deployed.certify(X, None, prediction * (1 + 1e-9)).radius >= 0).all()
    assert (deployed.certify(X, prediction * (1 - 1e-9), None).radius >= 0).all()


def test_every_format_says_the_same(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("certify", folder / "plain.poisonproof", folder / "rows.csv", "--within", 0.2)
    record = json.loads(run(*arguments, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv").stdout)))
    assert [int(row["radius"]) for row in rows] == record["radius"]
    assert [float(row["prediction"]) for row in rows] == record["prediction"]
    assert {row["threat"] for row in rows} == {"insert+delete"}
    assert {row["method"] for row in rows} == {record["method"]}
    lines = run(*arguments, "--format", "md").stdout.splitlines()
    assert lines[0].startswith("| row | prediction |")
    assert [int(line.split("|")[5]) for line in lines[2:102]] == record["radius"]
    shown = run(*arguments).stdout
    assert "… and 80 more rows" in shown
    assert "100 of 100 predictions are within their bounds" in shown
    for suffix, form in ((".csv", "csv"), (".md", "md"), (".json", "json")):
        run(*arguments, "-o", tmp_path / f"out{suffix}")
        assert (tmp_path / f"out{suffix}").read_text() == run(*arguments, "--format", form).stdout
    run(*arguments, "-o", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text().count("insert+delete") == 100


def test_parquet_is_read_like_csv(run: Run, folder: Path, tmp_path: Path) -> None:
    import polars as pl  # noqa: PLC0415  optional

    pl.read_csv(folder / "rows.csv").write_parquet(tmp_path / "rows.parquet")
    results = [
        run("certify", folder / "plain.poisonproof", path, "--within", 0.2, "--format", "csv").stdout
        for path in (folder / "rows.csv", tmp_path / "rows.parquet")
    ]
    assert results[0] == results[1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_tables_are_read_from_pipes_and_compressed(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("--within", 0.2, "--format", "csv")
    expected = run("certify", folder / "plain.poisonproof", folder / "rows.csv", *arguments).stdout
    content = (folder / "rows.csv").read_bytes()
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(content))
    assert run("certify", folder / "plain.poisonproof", tmp_path / "rows.csv.gz", *arguments).stdout == expected
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    # Twice, as tune reads its rows once to propose a schema and once by it.
    for _ in range(2):
        assert run("certify", folder / "plain.poisonproof", tmp_path / "pipe", *arguments).stdout == expected
    writer.join()


def test_blank_lines_at_the_end_are_no_rows(run: Run, folder: Path, tmp_path: Path) -> None:
    content = (folder / "rows.csv").read_text()
    commas = "," * content.splitlines()[0].count(",")
    (tmp_path / "rows.csv").write_text(f"{content}\n{commas}\n\n")
    arguments = ("--within", 0.2, "--format", "csv")
    whole, blank = (
        run("certify", folder / "plain.poisonproof", each / "rows.csv", *arguments).stdout
        for each in (folder, tmp_path)
    )
    assert blank == whole


def test_a_category_that_nobody_declared_is_said(
    run: Run, folder: Path, table: Rows, tmp_path: Path, write: Write
) -> None:
    schema = Schema([Numeric("carat", 0, 5), Category("cut", ["Ideal", "Fair"])], Target("price"))
    schema.to_toml(tmp_path / "schema.toml")
    options = ("--schema", tmp_path / "schema.toml", "--partitions", 5, "-o", tmp_path / "m")
    assert run("fit", folder / "train.csv", *options).exit_code == 0
    cuts = ["Ideal", "Fair", "Atlantis", "Ideal", "Eden"]
    write(tmp_path / "rows.csv", [row | {"cut": cut} for row, cut in zip(table[:5], cuts, strict=True)])
    which = "'Atlantis' in row 2 and 1 more row"
    said = f"Warning: column 'cut': {which} is no declared category, and is read as none of them.\n"
    for arguments in (("certify", "--within", 0.2), ("evaluate",)):
        command, *more = arguments
        assert run(command, tmp_path / "m", tmp_path / "rows.csv", *more).stderr == said
    write(tmp_path / "rows.csv", [row | {"cut": "Fair"} for row in table[:5]])
    assert run("evaluate", tmp_path / "m", tmp_path / "rows.csv").stderr == ""


def test_evaluate_counts_radii(run: Run, folder: Path, reference: Any) -> None:
    model, X, prices = reference
    radius = model.certify(X, 0.7 * prices, 1.3 * prices).radius
    arguments = ("evaluate", folder / "plain.poisonproof", folder / "rows.csv", "--within", 0.3, "--radii", "0,2,4")
    result = run(*arguments, "--format", "json")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (record["schema_version"], record["kind"], record["gate"]) == (1, "evaluation", None)
    assert record["certified_accuracy"] == [float(np.mean(radius >= asked)) for asked in (0, 2, 4)]
    assert "certified accuracy" in run(*arguments).stdout
    absolute = run(
        "evaluate",
        folder / "plain.poisonproof",
        folder / "rows.csv",
        "--within",
        500,
        "--absolute",
        "--format",
        "json",
        "--target",
        "price",
    )
    expected = model.certify(X, prices - 500, prices + 500).radius
    assert json.loads(absolute.stdout)["certified_accuracy"][0] == float(np.mean(expected >= 0))


def test_evaluate_says_within_what(run: Run, folder: Path) -> None:
    arguments = ("evaluate", folder / "plain.poisonproof", folder / "rows.csv", "--radii", "0,2")
    for more, note, within, relative in (
        ((), "Right: within 15% of price.", 0.15, True),
        (("--within", "7.5%"), "Right: within 7.5% of price.", 0.075, True),
        (("--within", 3, "--absolute"), "Right: within 3 of price.", 3, False),
    ):
        assert note in run(*arguments, *more).stdout
        record = json.loads(run(*arguments, *more, "--format", "json").stdout)
        assert (record["within"], record["relative"], record["target"]) == (within, relative, "price")
        rows = list(csv.DictReader(io.StringIO(run(*arguments, *more, "--format", "csv").stdout)))
        assert [float(row["certified accuracy"]) for row in rows] == record["certified_accuracy"]
        for row in rows:
            assert (row["threat"], row["unit"], row["method"]) == ("insert+delete", "row", record["method"])
            assert (float(row["within"]), row["target"]) == (within, "price")


def test_a_percentage_is_a_share(run: Run, folder: Path) -> None:
    for command in ("certify", "evaluate"):
        arguments = (command, folder / "plain.poisonproof", folder / "rows.csv", "--format", "json", "--within")
        assert run(*arguments, "20%").stdout == run(*arguments, 0.2).stdout


def test_evaluate_takes_several_trials(run: Run, folder: Path) -> None:
    rows = folder / "rows.csv"
    record = json.loads(run("evaluate", folder / "plain.poisonproof", rows, rows, "--format", "json").stdout)
    assert record["n_trials"] == 2
    assert set(record["sd"]) == {0.0}


def test_gates(run: Run, folder: Path) -> None:
    arguments = ("evaluate", folder / "plain.poisonproof", folder / "rows.csv", "--within", 0.5, "--format", "json")
    passed = run(*arguments, "--require-radius", 1, "--at-least", 0.2)
    failed = run(*arguments, "--require-radius", 6, "--at-least", 0.01)
    assert passed.exit_code == 0
    assert failed.exit_code == 1
    assert json.loads(passed.stdout)["gate"]["passed"] is True
    assert json.loads(failed.stdout)["gate"] == {"radius": 6, "at_least": 0.01, "reached": 0.0, "passed": False}
    assert "Gate failed: 0.0% of rows have radius 6, 1.0% must." in failed.stderr
    assert run(*arguments, "--require-radius", 6, "--at-least", 0).exit_code == 0


def test_fit_reports_and_writes_what_was_asked(run: Run, folder: Path, tmp_path: Path) -> None:
    options = (
        "--threat",
        "delete",
        "--max-cost",
        2,
        "--partitions",
        51,
        "--key",
        9,
        "--set",
        "alpha=0.5",
        "--set",
        "solver=svd",
    )
    more = ("--estimator", "ridge", "--partition-by", "row", "--jobs", 1, "--log-target", "--target", "price")
    result = run(
        "fit",
        folder / "train.csv",
        "--schema",
        folder / "plain.toml",
        *options,
        *more,
        "-o",
        tmp_path / "m",
        "--format",
        "json",
    )
    record = json.loads(result.stdout)
    assert (record["threat"], record["key"], record["n_submodels"], record["n_rows"]) == ("delete", 9, 51, 500)
    assert record["manifest"]["notes"]["options"]["settings"] == ["alpha=0.5", "solver=svd"]
    deployed = Deployed.open(tmp_path / "m")
    assert deployed.model.estimator.get_params()["alpha"] == 0.5
    assert deployed.model.estimator.get_params()["solver"] == "svd"
    assert (deployed.model.max_cost, deployed.model.partition_by) == (2, "row")
    assert deployed.target.transform == "log"
    proof = json.loads(run("certify", tmp_path / "m", folder / "rows.csv", "--within", 0.3, "--format", "json").stdout)
    assert proof["threat"] == "delete"
    assert "costs ≤ 2" in proof["method"]
    assert max(proof["radius"]) > 25, "more than one deletion is needed to move a submodel"


def test_overlap_and_the_declared_constant_can_be_asked_for(run: Run, folder: Path, tmp_path: Path) -> None:
    def fit(schema: str, *options: Any) -> Any:
        result = run("fit", folder / "train.csv", "--schema", folder / schema, *options, "-o", tmp_path / "m")
        assert result.exit_code == 0, result.output
        return Deployed.open(tmp_path / "m")

    options = ("--partitions", 9, "--spread", 4, "--layout", "plane", "--empty-value")
    plain, logs = fit("plain.toml", *options, 3000).model, fit("schema.toml", *options, 3000).model
    for model in (plain, logs):
        assert (model.spread, model.layout, model.layout_.name, model.layout_.spread) == (4, "plane", "plane", 4)
    assert plain.empty_value == 3000
    assert logs.empty_value == pytest.approx(np.log(3000))
    for kind in ("radius", "kernel", "forest"):
        assert fit("schema.toml", "--model", kind, "--empty-value", "1e3").model.empty_value == pytest.approx(
            np.log(1e3)
        )
    assert fit("schema.toml", "--partitions", 5).model.empty_value == 0


def test_the_layouts_on_offer_are_those_there_are() -> None:
    assert layout.LAYOUTS == LAYOUTS


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "ensemble"])
def test_every_kind_of_model_certifies_tables(kind: str, run: Run, folder: Path, table: Rows, tmp_path: Path) -> None:
    # Scaled features, as models that measure distances or cut declared ranges need them.
    schema = Schema([Numeric("carat", 0, 5), Numeric("x", 0, 12)], Target("price", "log"))
    schema.to_toml(tmp_path / "schema.toml")
    arguments = ("--schema", tmp_path / "schema.toml", "--model", kind, "--threat", "delete", "--format", "json")
    result = run("fit", folder / "train.csv", *arguments, "-o", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_submodels"] is None
    shown = run("certify", tmp_path / "m", folder / "rows.csv", "--lower", 2000, "--upper", 9000, "--format", "json")
    deployed = Deployed.open(tmp_path / "m")
    X = deployed.schema.transform(columns_of(table[500:]))
    expected = deployed.model.certify(X, np.log(2000), np.log(9000))
    assert json.loads(shown.stdout)["radius"] == expected.radius.tolist()
    assert json.loads(shown.stdout)["threat"] == "delete"
    assert run("fit", folder / "train.csv", *arguments, "--estimator", "ridge", "-o", tmp_path / "m").exit_code == 2


def test_sources_are_the_unit(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("--schema", folder / "schema.toml", "--source-column", "clarity", "--partitions", 5)
    result = run("fit", folder / "train.csv", *arguments, "-o", tmp_path / "m", "--format", "json")
    assert json.loads(result.stdout)["unit"] == "source"
    assert "altered training source" in run("certify", tmp_path / "m", folder / "rows.csv", "--within", 0.3).stdout


def test_another_target_than_the_schemas(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("--schema", folder / "schema.toml", "--target", "x", "--partitions", 5)
    result = run("fit", folder / "train.csv", *arguments, "-o", tmp_path / "m", "--format", "json")
    assert json.loads(result.stdout)["n_features"] == 6, "x is no feature of itself"
    deployed = Deployed.open(tmp_path / "m")
    assert (deployed.target.name, deployed.target.transform) == ("x", None)


def test_schema_proposes_what_fit_takes(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "proposed.toml"
    arguments = ("schema", folder / "train.csv", "--target", "price", "--log-target", "-o", path)
    record = json.loads(run(*arguments, "--format", "json").stdout)
    assert {column["name"] for column in record["columns"]} >= {"carat", "cut", "color", "clarity"}
    proposed = path.read_text()
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert f"{path} exists, and may hold corrections; name another with -o, or give --force" in refused.stderr
    path.write_text("corrected")
    assert run(*arguments).exit_code == 2
    assert path.read_text() == "corrected"
    assert "read and correct it" in run(*arguments, "--force").stdout
    assert path.read_text() == proposed
    assert run("fit", folder / "train.csv", "--schema", path, "--partitions", 5, "-o", tmp_path / "m").exit_code == 0
    assert Deployed.open(tmp_path / "m").target.transform == "log"


def test_partitions_without_rows_are_a_warning_on_stderr(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("--schema", folder / "schema.toml", "--partitions", 901, "--format", "json", "-o", tmp_path / "m")
    result = run("fit", folder / "train.csv", *arguments)
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: ")
    assert "more partitions than rows" in result.stderr
    assert json.loads(result.stdout)["n_constant_submodels"] > 400


def test_types_can_be_trusted(run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("--schema", folder / "schema.toml", "--partitions", 5, "--estimator", "tree", "-o", tmp_path / "m")
    run("fit", folder / "train.csv", *arguments)
    asked = run("certify", tmp_path / "m", folder / "rows.csv", "--within", 0.3)
    assert asked.exit_code == 2
    assert "sklearn.tree._tree.Tree" in asked.stderr
    assert "--trust" in asked.stderr
    trusted = run("certify", tmp_path / "m", folder / "rows.csv", "--within", 0.3, "--trust", "sklearn.tree._tree.Tree")
    assert trusted.exit_code == 0


def test_doctor_finds_a_healthy_installation(run: Run) -> None:
    result = run("doctor", "--format", "json")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    assert record["healthy"] is True
    assert record["findings"][-1] == {"check": "self-test", "ok": True, "found": "certified radius 4, expected 4"}
    assert "Everything needed is in order." in run("doctor").stdout


def test_demo_is_near_the_published_figures(run: Run) -> None:
    result = run("demo", "--format", "json")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    assert record["radius"] == [1, 35, 70]
    assert [figure["mean"] for figure in record["published"]] == [0.746, 0.644, 0.386]
    for mine, theirs in zip(record["certified_accuracy"], record["published"], strict=True):
        assert abs(mine - theirs["mean"]) < 2 * theirs["sd"]


def test_demo_shows_examples_and_the_comparison(run: Run) -> None:
    result = run("demo")
    assert "Training 151 ridge submodels on 48,546 diamonds" in result.stderr
    assert "true price" in result.stdout
    assert "74.6% ± 3.8" in result.stdout
    assert "any " in result.stdout
