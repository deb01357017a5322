"""``poisonproof tune``: the line it prints fits what it tried, it goes on, and it says what stands in the way."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import signal
import subprocess
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from poisonproof import CertifiedNeighborsRegressor
from poisonproof.cli.deployed import Deployed
from poisonproof.holdout import HoldOut
from poisonproof.schema import Numeric, Schema, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]
    Write = Callable[[Path, list[dict[str, Any]]], None]
    Rows = list[dict[str, Any]]

for module in ("optuna", "polars", "skops"):
    pytest.importorskip(module, reason="tuning tables and fitting models needs the tune and io extras")

LOG = ("--log-target", "--radius", 3, "--within", "15%")
_ENTER = """
from poisonproof.cli import app
app.main()
"""


@pytest.fixture
def tune(run: Run, folder: Path, tmp_path: Path) -> Run:
    """``tune`` on 500 diamonds, with the schema that learns plain prices unless another is asked for."""

    def invoke(*arguments: Any, schema: str | None = "plain.toml") -> Result:
        given = () if schema is None else ("--schema", folder / schema)
        return run("tune", folder / "train.csv", *given, "--out", tmp_path / "out", *arguments)

    return invoke


def answer(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def untimed(record: dict[str, Any]) -> Any:
    return [{key: value for key, value in trial.items() if key != "seconds"} for trial in record["trials"]]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--model", "neighbors", "--threat", "delete", "--key", 3),
        ("--estimator", "ridge", "--estimator", "tree", "--partition-by", "row", "--jobs", 1),
        ("--estimator", "ridge", "--max-cost", 2, "--threat", "delete", "--set", "alpha=0.25"),
        ("--model", "radius", "--model", "kernel", "--set", "metric=chebyshev"),
        ("--model", "forest"),
        ("--preset", "paper", "--partitions", 25),
    ],
)
def test_the_line_fits_what_was_tried(options: tuple[Any, ...], tune: Run, run: Run, folder: Path) -> None:
    record = answer(tune("--radius", 2, "--within", 0.2, *options, "--max-trials", 5, "--format", "json"))
    assert record["kind"] == "tuning"
    assert record["schema_version"] == 1
    line = shlex.split(record["command"])
    assert line == record["fit"]
    assert line[:3] == ["poisonproof", "fit", "TRAIN.csv"]
    line[2], line[-1] = str(folder / "train.csv"), str(folder / "tuned.poisonproof")
    result = run(*line[1:])
    assert result.exit_code == 0, result.output
    model = Deployed.open(folder / "tuned.poisonproof", ["sklearn.tree._tree.Tree"]).model
    settings = model.get_params()
    best = record["best"]
    assert best == max(record["trials"], key=lambda trial: (trial["certified_accuracy"], trial["withstood"]))
    assert {name: settings[name] for name in best["settings"]} == best["settings"]
    words = list(map(str, options))
    if "--set" in words:
        name, _, value = words[words.index("--set") + 1].partition("=")
        assert str(settings.get(name, settings.get(f"estimator__{name}"))) == value
        assert not any(name == each.removeprefix("estimator__") for each in best["settings"])
    for option, name in (("--threat", "threat"), ("--partition-by", "partition_by"), ("--max-cost", "max_cost")):
        if option in words:
            assert str(settings[name]) == words[words.index(option) + 1]


def test_what_it_reports_is_what_the_hold_out_says(tune: Run, folder: Path, table: Rows) -> None:
    options = ("--model", "neighbors", "--set", "n_neighbors=25", "--set", "metric=manhattan", "--set", "weights=null")
    record = answer(tune(*LOG, *options, "--train-rows", 800, "--max-trials", 1, "--format", "json"))
    schema = Schema.from_toml(folder / "plain.toml")
    columns = {name: [row[name] for row in table[:500]] for name in table[0]}
    prices = np.array(columns["price"])
    # A little inside of the bounds, as certificates of transformed targets are: some prices lie on them.
    low, high = np.log(0.85 * prices) + 1e-11, np.log(1.15 * prices) - 1e-11
    rows = HoldOut.folded(
        schema.transform(columns), np.log(prices), radius=3, n_rows=800, lower=low, upper=high, fewest=11
    )
    shares = rows.withstood(CertifiedNeighborsRegressor(25, metric="manhattan"))
    assert 0 < record["best"]["certified_accuracy"] == np.mean(shares >= 1)
    assert record["best"]["withstood"] == pytest.approx(np.mean(shares))
    assert (record["radius"], record["within"], record["relative"]) == (3, 0.15, True)
    assert (record["n_trusted"], record["n_train"]) == (500, 800)


def test_classes(run: Run, folder: Path, write: Write, table: Rows, tmp_path: Path) -> None:
    rows = [{**row, "size": "big" if row["price"] > 2500 else "small"} for row in table]
    write(folder / "sizes.csv", rows)
    Schema([Numeric("carat", 0, 5), Numeric("depth", 40, 80)], Target("size")).to_toml(folder / "sizes.toml")
    options = ("--schema", folder / "sizes.toml", "--task", "classification", "--classes", "big,small", "--radius", 4)
    arguments = (*options, "--out", tmp_path, "--max-trials", 5, "--format", "json")
    record = answer(run("tune", folder / "sizes.csv", *arguments))
    assert {trial["model"] for trial in record["trials"]} == {"ridge", "naive-bayes", "neighbors"}
    assert record["best"]["certified_accuracy"] > 0.8
    line = [*record["fit"][1:]]
    line[1], line[-1] = str(folder / "sizes.csv"), str(folder / "sizes.poisonproof")
    assert run(*line).exit_code == 0
    model = Deployed.open(folder / "sizes.poisonproof").model
    assert list(model.classes) == ["big", "small"]
    paper = answer(run("tune", folder / "sizes.csv", *arguments, "--preset", "paper"))
    assert {trial["model"] for trial in paper["trials"]} == {"ridge", "neighbors"}


def test_without_a_schema_one_is_proposed_and_kept(tune: Run, tmp_path: Path) -> None:
    arguments = ("--target", "price", *LOG, "--model", "neighbors", "--max-trials", 2, "--format", "json")
    result = tune(*arguments, schema=None)
    (place,) = tmp_path.glob("out/schema-*.toml")
    assert f"Proposed the encoding in {place}" in result.stderr
    record = answer(result)
    assert record["fit"][record["fit"].index("--schema") + 1] == str(place)
    schema = Schema.from_toml(place)
    assert schema.target == Target("price", "log")
    Schema([column for column in schema.columns if column.name != "depth"], schema.target).to_toml(place)
    corrected = tune(*arguments, schema=None)
    assert "Proposed" not in corrected.stderr
    assert "depth" not in place.read_text()
    assert untimed(answer(corrected)) != untimed(record)


def test_the_same_command_goes_on(tune: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("--radius", 2, "--within", 0.2, "--model", "neighbors", "--format", "json")
    few = answer(tune(*arguments, "--max-trials", 3))
    more = answer(tune(*arguments, "--max-trials", 6))
    assert more["trials"][:3] == few["trials"]
    monkeypatch.setattr(HoldOut, "withstood", lambda *_, **__: pytest.fail("computed again"))
    assert answer(tune(*arguments, "--max-trials", 6)) == more
    monkeypatch.undo()
    for other in (("--seed", 1), ("--radius", 3), ("--within", 0.1), ("--absolute",), ("--folds", 4)):
        record = answer(tune(*arguments, "--max-trials", 3, *other))
        assert untimed(record) != untimed(few)


def test_an_interrupt_leaves_what_was_found_and_says_how_to_go_on(folder: Path, tmp_path: Path) -> None:
    options = ["tune", folder / "train.csv", "--schema", folder / "plain.toml", "--radius", 2, "--within", 0.2]
    options += ["--estimator", "kernel-ridge", "--max-trials", 100_000, "--out", tmp_path, "--format", "json"]
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler){_ENTER}"
    given = [sys.executable, "-c", code, *map(str, options)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        journal, started = tmp_path / "trials.journal", monotonic()
        while not (journal.exists() and journal.read_text().count('"certified"') >= 2):
            assert monotonic() - started < 60
            sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    kept = int(err.split(" of 100000 trials are kept in ")[0].splitlines()[-1])
    assert kept >= 2
    assert "the best with " in err
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    options[options.index(100_000)] = kept
    again = subprocess.run([*given[:3], *map(str, options)], capture_output=True, text=True, check=True)  # noqa: S603
    assert len(json.loads(again.stdout)["trials"]) == kept


def test_every_format_says_the_same(tune: Run) -> None:
    arguments = (*LOG, "--model", "neighbors", "--max-trials", 3)
    record = answer(tune(*arguments, "--format", "json"))
    text = tune(*arguments).stdout
    assert "Certified accuracy at radius 3 (insert+delete) of 500 trusted rows" in text
    assert "chosen on trusted rows, which keeps proofs honest" in text
    assert "Settings are for about" in text
    assert text.splitlines()[-1] == record["command"]
    rows = list(csv.DictReader(io.StringIO(tune(*arguments, "--format", "csv").stdout)))
    ranked = sorted((trial["certified_accuracy"], trial["withstood"]) for trial in record["trials"])[::-1]
    assert [(float(row["certified accuracy"]), float(row["of the radius"])) for row in rows] == ranked
    assert record["command"] in tune(*arguments, "--format", "md").stdout


def test_trials_that_fail_are_told(tune: Run) -> None:
    result = tune("--radius", 1, "--within", 0.2, "--estimator", "linear", "--estimator", "ridge", "--preset", "paper")
    assert result.exit_code == 2
    assert "no ranges were published for LinearRegression" in result.stderr
    # Neighbours that are half of 5,000 rows cannot be searched among 500 only if they were not scaled down.
    result = tune("--radius", 1, "--within", 0.2, "--preset", "paper", "--model", "neighbors", "--train-rows", 5000)
    assert result.exit_code == 0, result.output
    result = tune("--radius", 1, "--within", 0.2, "--model", "neighbors", "--set", "n_neighbors=4", "--max-trials", 2)
    assert result.exit_code == 2
    assert "all 2 trials failed; the first: n_neighbors=4 must be odd" in result.stderr
    arguments = ("--estimator", "ridge", "--model", "ensemble", "--model", "neighbors", "--set", "p=3")
    assert "ridge has no setting 'p'" in tune("--radius", 1, "--within", 0.2, *arguments).stderr
    options = ("--estimator", "ridge", "--model", "ensemble", "--model", "neighbors", "--threat", "delete")
    result = tune("--radius", 1, "--within", 0.2, *options, "--partitions", 4, "--max-trials", 3)
    assert result.exit_code == 2
    assert "--model neighbors has no use for --partitions; it takes --threat" in result.stderr


def test_some_trials_fail(tune: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = HoldOut.withstood

    def picky(rows: HoldOut, model: Any, **more: Any) -> Any:
        if model.metric == "manhattan":
            raise ValueError("no blocks of houses here\nand none there")
        return real(rows, model, **more)

    monkeypatch.setattr(HoldOut, "withstood", picky)
    text = tune("--radius", 1, "--within", 0.2, "--model", "neighbors", "--max-trials", 6).stdout
    assert "of 6 trials failed; the first: neighbors: no blocks of houses here" in text
    assert "and none there" not in text


def test_a_radius_out_of_reach_is_said_and_is_no_error(tune: Run) -> None:
    result = tune("--radius", 5000, "--within", 0.2, "--model", "neighbors", "--max-trials", 2)
    assert result.exit_code == 0, result.output
    assert "No settings reached radius 5,000 on any row" in result.stdout


@pytest.mark.parametrize("model", ["neighbors", "radius"])
def test_few_trusted_rows_for_many_are_said_to_be_rough(model: str, tune: Run) -> None:
    result = tune("--radius", 9, "--within", 0.2, "--model", model, "--train-rows", 50_000, "--max-trials", 2)
    assert "rows stood in for 50,000, so the figures are rough" in result.stdout
    result = tune("--radius", 9, "--within", 0.2, "--model", model, "--train-rows", 500, "--max-trials", 2)
    assert "rough" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--radius", 1), "--within is missing; say how far"),
        (("--radius", 1, "--within", "much"), "'much' must be a share, such as 0.15 or 15%"),
        (("--radius", 1, "--within", "-5%"), "--within -0.05 must be a finite number of at least 0"),
        (("--radius", -1, "--within", 0.1), "--radius -1 must be at least 0"),
        (("--within", 0.1), "Missing option '--radius'"),
        ((*LOG, "--train-rows", 499), "--train-rows 499 must be at least the 500 trusted rows"),
        ((*LOG, "--folds", 1), "--folds 1 must be at least 2"),
        ((*LOG, "--folds", 501), "500 trusted rows cannot be cut into 501 folds"),
        ((*LOG, "--model", "oracle"), "'oracle' is not one of"),
        ((*LOG, "--estimator", "oracle"), "'oracle' is not one of"),
        ((*LOG, "--estimator", "logistic"), "--estimator logistic is not for regression"),
        ((*LOG, "--model", "neighbors", "--estimator", "ridge"), "--model neighbors has no submodels"),
        ((*LOG, "--task", "classification"), "--within and --absolute are about numbers"),
        (("--radius", 1, "--task", "classification", "--log-target"), "a class has no log"),
        (("--radius", 1, "--task", "classification", "--model", "forest"), "--model forest is not for classification"),
        ((*LOG, "--set", "alfa=1"), "has no setting 'alfa'"),
        ((*LOG, "--max-trials", 0), "--max-trials 0 must be at least 1"),
        ((*LOG, "--seed", -1), "--seed -1 must be at least 0"),
        (("--radius", 1, "--within", "inf"), "--within inf must be a finite number of at least 0"),
        ((*LOG, "--jobs", 0), "--jobs 0 must be at least 1, or -1 for all processors"),
        (
            ("--radius", 1, "--task", "classification", "--classes", "a,,b"),
            "--classes a,,b holds a class without a name",
        ),
        ((*LOG, "--timeout", 0), "--timeout 0 must be above 0"),
        ((*LOG, "--target", "prize"), "did you mean 'price'?"),
        ((*LOG, "--preset", "ours"), "'ours' is not 'paper'"),
        ((*LOG, "--preset", "paper", "--estimator", "kernel-ridge"), "no ranges were published for KernelRidge"),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_sentence(
    arguments: tuple[Any, ...], says: str, tune: Run, tmp_path: Path
) -> None:
    result = tune(*arguments)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        ("--within", "-5%"),
        ("--folds", 1),
        ("--folds", 501),
        ("--max-trials", 0),
        ("--seed", -1),
        ("--timeout", 0),
        ("--train-rows", 499),
        ("--estimator", "logistic"),
    ],
)
def test_nothing_is_proposed_for_what_cannot_be_asked(wrong: tuple[Any, ...], tune: Run, tmp_path: Path) -> None:
    result = tune(*LOG, "--target", "price", *wrong, schema=None)
    assert result.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_said_with_what_is_kept(tune: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415  optional

    append, withstood, tried = JournalFileBackend.append_logs, HoldOut.withstood, []

    def counted(*given: Any, **more: Any) -> Any:
        tried.append(True)
        return withstood(*given, **more)

    def full(*given: Any) -> None:
        if len(tried) > 2:
            raise OSError(28, "No space left on device")
        append(*given)

    monkeypatch.setattr(HoldOut, "withstood", counted)
    monkeypatch.setattr(JournalFileBackend, "append_logs", full)
    arguments = ("--radius", 2, "--within", 0.2, "--model", "neighbors", "--max-trials", 6, "--format", "json")
    result = tune(*arguments)
    assert result.exit_code == 2
    journal = tmp_path / "out" / "trials.journal"
    assert f"{journal}: No space left on device; 2 of 6 trials are kept in {tmp_path / 'out'}" in result.stderr
    monkeypatch.undo()
    assert len(answer(tune(*arguments))["trials"]) == 6


def test_without_schema_and_target_nothing_can_be_proposed(tune: Run) -> None:
    result = tune(*LOG, schema=None)
    assert result.exit_code == 2
    assert "--target is missing; name the column to predict, or give a --schema" in result.stderr


def test_no_more_than_help_needs_is_imported() -> None:
    said = "import sys, poisonproof.cli.tune; sys.exit(bool({'numpy', 'optuna', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", said], check=False).returncode == 0  # noqa: S603


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_a_bar_is_drawn_on_a_terminal_only(folder: Path, tmp_path: Path) -> None:
    options = ["tune", folder / "train.csv", "--schema", folder / "plain.toml", "--radius", 2, "--within", 0.2]
    options += ["--model", "neighbors", "--max-trials", 4, "--out", tmp_path, "--format", "json"]
    near, far = os.openpty()
    given = [sys.executable, "-c", _ENTER, *map(str, options)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=far, env={**os.environ, "TERM": "xterm"}) as process:  # noqa: S603
        os.close(far)
        out, _ = process.communicate(timeout=120)
    drawn = os.read(near, 1 << 16).decode()
    os.close(near)
    assert "best so far" in drawn
    assert "/4" in drawn
    assert len(json.loads(out)["trials"]) == 4
    quiet = subprocess.run([*given, "--seed", "1"], capture_output=True, text=True, check=True)  # noqa: S603
    assert quiet.stderr == ""
