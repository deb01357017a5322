"""Bad input: one sentence on standard error, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from poisonproof.cli import report
from poisonproof.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]
    Write = Callable[[Path, list[dict[str, Any]]], None]
    Rows = list[dict[str, Any]]

pytest.importorskip("skops", reason="model files need the io extra")
pytest.importorskip("polars", reason="tables need the io extra")


def check(result: Result, *fragments: str) -> None:
    """Exit code 2, silence on standard output, and one line that holds the fragments."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    *_, last = lines = result.stderr.splitlines()
    assert last.startswith("Error: ")
    assert len(lines) == 1 or lines[0].startswith("Usage: "), "one sentence, below click's usage line if that was wrong"
    for fragment in fragments:
        assert fragment in last


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("--partitions", 150), ("150 must be odd", "149 or 151")),
        (("--partitions", 0), ("0 must be from 1 to 10,000,000",)),
        (("--partitions", -3), ("-3 must be from 1 to 10,000,000",)),
        (("--partitions", 10**20 - 1), ("n_partitions=99999999999999999999 must be from 1 to 10,000,000",)),
        (("--model", "forest", "--set", "n_trees=99999999999999999999"), ("n_trees=99999999999999999999 must be",)),
        (("--max-cost", 2), ("max_cost", "insert+delete", "threat='delete'")),
        (("--max-cost", 2, "--threat", "delete", "--source-column", "cut"), ("counts rows", "max_cost=1")),
        (("--max-cost", 0), ("max_cost=0 must be from 1",)),
        (("--spread", 5), ("spread=5 is not one that layout='triples' has; use spread=4 or 6 or 7",)),
        (("--spread", 0, "--layout", "paired"), ("spread=0 must be from 1 to 1,000",)),
        (("--layout", "fano"), ("--layout fano says how blocks are shared; give a --spread above 1 too",)),
        (("--model", "neighbors", "--spread", 4), ("--model neighbors has no use for --spread",)),
        (("--empty-value", "much"), ("--empty-value much must be a finite number that has a log", "'price'")),
        (("--empty-value", -3), ("--empty-value -3 must be a finite number that has a log, in the units of 'price'",)),
        (("--jobs", 0), ("--jobs 0 must be at least 1, or -1 for all processors",)),
        (("--key", -1), ("key=-1 must be at least 0",)),
        (("--target", "prize"), ("'prize' is missing", "did you mean 'price'?")),
        (("--source-column", "colour"), ("'colour' is missing", "did you mean 'color'?")),
        (("--source-column", "cut", "--partition-by", "row"), ("--partition-by and --source-column",)),
        (("--source-column", "cut", "--model", "neighbors"), ("any number of neighbours", "use --model ensemble")),
        (("--source-column", "cut", "--model", "forest"), ("--model forest counts rows", "use --model ensemble")),
        (("--model", "neighbors", "--set", "n_neighbors=4"), ("n_neighbors=4 must be odd", "use 3 or 5")),
        (("--model", "neighbors", "--set", "n_neighbors=501"), ("n_neighbors=501 is more than", "use at most 499")),
        (("--model", "radius", "--set", "radius=0"), ("radius=0 must be finite and above 0",)),
        (("--set", "alpha"), ("--set alpha must have the form NAME=VALUE",)),
        (("--set", "alfa=1"), ("ridge has no setting 'alfa'; it has alpha",)),
        (("--set", "alpha=-1"), ("all 151 submodels were refused", "alpha")),
        (("--estimator", "oracle"), ("'oracle' is not one of",)),
        (("--partitions", "many"), ("'many' is not a valid integer",)),
        (("--target", "cut"), ("column 'cut', row 0", "is no number, but must be")),
    ],
)
def test_fit_refuses(
    arguments: tuple[Any, ...], fragments: tuple[str, ...], run: Run, folder: Path, tmp_path: Path
) -> None:
    result = run("fit", folder / "train.csv", "--schema", folder / "schema.toml", "-o", tmp_path / "m", *arguments)
    check(result, *fragments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ((), ("one of --lower/--upper, --within and --budget is needed; given: none",)),
        (("--lower", 1, "--within", 0.1), ("given: --lower/--upper and --within",)),
        (("--lower", 5, "--upper", 3), ("lower=5 is above upper=3 in row 0",)),
        (("--lower", "prize"), ("'prize' is missing", "did you mean 'price'?")),
        (("--lower", "cut"), ("'cut', row 0", "numbers are expected")),
        (("--lower", "nan"), ("lower contains NaN",)),
        (("--within", -0.1), ("within=-0.1 must be a finite number of at least 0",)),
        (("--within", "nan"), ("within=nan",)),
        (("--budget", -1), ("budget=-1 must be at least 0",)),
        (("--budget", 1, "--absolute"), ("--target and --absolute say what --within means",)),
        (("--within", 0.1, "-o", "result.tex"), (".csv, .json, .md, .txt, or --format",)),
        (("--within", 0.1, "-o", "nowhere/result.csv"), ("nowhere/result.csv cannot be written",)),
    ],
)
def test_certify_refuses(arguments: tuple[Any, ...], fragments: tuple[str, ...], run: Run, folder: Path) -> None:
    check(run("certify", folder / "plain.poisonproof", folder / "rows.csv", *arguments), *fragments)


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (("--radii", "1;2"), ("must be integers separated by commas",)),
        (("--radii", "-1"), ("negative radius",)),
        (("--require-radius", 3), ("--require-radius and --at-least belong together",)),
        (("--require-radius", -3, "--at-least", 0.1), ("--require-radius -3 must be at least 0",)),
        (("--require-radius", 3, "--at-least", 50), ("--at-least 50 must be a share from 0 to 1",)),
        (("--target", "prices"), ("'prices' is missing", "did you mean 'price'?")),
    ],
)
def test_evaluate_refuses(arguments: tuple[Any, ...], fragments: tuple[str, ...], run: Run, folder: Path) -> None:
    check(run("evaluate", folder / "plain.poisonproof", folder / "rows.csv", *arguments), *fragments)


@pytest.mark.parametrize(
    ("column", "cell", "fragments"),
    [
        ("carat", "nan", ("'carat', row 3", "missing")),
        ("carat", "", ("'carat', row 3", "missing")),
        ("carat", "heavy", ("column 'carat', row 3: 'heavy' is no number",)),
        ("price", "inf", ("'price', row 3: inf must be a finite number",)),
        ("price", "", ("'price', row 3: the value is missing; it must be a finite number",)),
        ("price", -5, ("'price', row 3: -5.0 must be a finite number above 0",)),
        ("cut", "Idealistic", ("'cut', row 3", "'Idealistic'", "'Ideal'")),
    ],
)
def test_a_bad_cell(  # noqa: PLR0917  pytest gives them by name
    column: str,
    cell: Any,
    fragments: tuple[str, ...],
    run: Run,
    folder: Path,
    table: Rows,
    tmp_path: Path,
    write: Write,
) -> None:
    rows = [dict(row) for row in table[:40]]
    rows[3][column] = cell
    write(tmp_path / "bad.csv", rows)
    check(run("fit", tmp_path / "bad.csv", "--schema", folder / "schema.toml", "-o", tmp_path / "m"), *fragments)
    assert not (tmp_path / "m").exists()


def test_tables_that_cannot_be_read(run: Run, folder: Path, table: Rows, tmp_path: Path, write: Write) -> None:
    import polars as pl  # noqa: PLC0415  optional

    def fit(name: str) -> Result:
        return run("fit", tmp_path / name, "--schema", folder / "schema.toml", "-o", tmp_path / "m")

    check(fit("nothing.csv"), "nothing.csv cannot be read: No such file or directory")
    (tmp_path / "void.csv").write_text("")
    check(fit("void.csv"), "void.csv cannot be read as CSV, with commas and in UTF-8")
    (tmp_path / "header.csv").write_text("carat,x,cut,price\n")
    check(fit("header.csv"), "header.csv has no rows; at least one is needed")
    for mark, said in ((";", "';'"), ("\t", "tabs")):
        (tmp_path / "marks.csv").write_text(f"carat{mark}x{mark}price\n1{mark}2{mark}3\n")
        check(fit("marks.csv"), f"marks.csv seems to be separated by {said}; write it with commas")
    (tmp_path / "junk.csv").write_bytes(bytes(range(256)) * 4)
    check(fit("junk.csv"))
    write(tmp_path / "short.csv", [{name: row[name] for name in row if name != "carat"} for row in table[:9]])
    check(fit("short.csv"), "column 'carat' is missing")
    check(fit("."), "cannot be read: Is a directory")
    pl.read_csv(folder / "rows.csv").write_parquet(tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    check(fit("cut.parquet"), "cut.parquet cannot be read as a complete Parquet file")
    assert not (tmp_path / "m").exists()


def test_rows_without_their_true_value(run: Run, folder: Path, table: Rows, tmp_path: Path, write: Write) -> None:
    write(tmp_path / "rows.csv", [row | {"price": ""} if place == 2 else row for place, row in enumerate(table[:5])])
    result = run("evaluate", folder / "plain.poisonproof", tmp_path / "rows.csv")
    check(result, "column 'price', row 2: the value is missing; every row needs a number here")


def test_model_files_that_cannot_be_read(run: Run, folder: Path, tmp_path: Path) -> None:
    def certify(name: str) -> Result:
        return run("certify", tmp_path / name, folder / "rows.csv", "--within", 0.1)

    check(certify("nothing"), "cannot be read: No such file or directory")
    content = bytearray((folder / "plain.poisonproof").read_bytes())
    content[-100] ^= 1
    (tmp_path / "changed").write_bytes(content)
    check(certify("changed"), "was changed or damaged since it was written")
    (tmp_path / "other").write_text("hello")
    check(certify("other"), "is not a poisonproof model file")


def test_a_model_without_schema_cannot_read_tables(run: Run, folder: Path, tmp_path: Path) -> None:
    from poisonproof import load, save  # noqa: PLC0415  as a user would

    save(load(folder / "plain.poisonproof"), tmp_path / "m")
    check(run("certify", tmp_path / "m", folder / "rows.csv", "--within", 0.1), "without the schema of its tables")


def test_schemas_that_cannot_be_used(run: Run, folder: Path, tmp_path: Path) -> None:
    def fit(name: str) -> Result:
        return run("fit", folder / "train.csv", "--schema", tmp_path / name, "-o", tmp_path / "m")

    check(fit("nothing.toml"), "cannot be read: No such file or directory")
    (tmp_path / "bad.toml").write_text("columns = [")
    check(fit("bad.toml"), "is not TOML")
    text = (folder / "plain.toml").read_text()
    (tmp_path / "aimless.toml").write_text(text[text.index("[[columns]]") :])
    check(fit("aimless.toml"), "declares no target; name the column to predict with --target")
    check(run("schema", folder / "train.csv", "--log-target"), "--log-target needs --target")
    check(
        run("schema", folder / "train.csv", "-o", tmp_path / "no" / "s.toml"), "cannot be written: there is no folder"
    )
    (tmp_path / "rows.csv").write_text("x,price\n1,2.5\n3,NA\n4,5.5\n")
    log = ("--target", "price", "--log-target", "-o", tmp_path / "log.toml")
    check(run("schema", tmp_path / "rows.csv", *log), "'NA' in row 1, so it has no log")
    check(run("schema", folder / "train.csv", "--target", "prize", "-o", tmp_path / "s"), "did you mean 'price'?")


def test_unknown_commands_have_near_matches(run: Run) -> None:
    check(run("certifi"), "there is no command 'certifi'; did you mean 'certify'?")
    check(run("xyz"), "use one of demo, schema, fit")


def test_without_polars_the_error_names_the_extra(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    result = run("certify", folder / "plain.poisonproof", folder / "rows.csv", "--within", 0.1)
    check(result, "needs polars; run: pip install 'poisonproof[io]'")


def test_an_old_result_survives_a_failure(run: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "m").write_text("precious")
    arguments = ("--schema", folder / "schema.toml", "--partitions", 4, "-o", tmp_path / "m")
    check(run("fit", folder / "train.csv", *arguments), "must be odd")
    assert (tmp_path / "m").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_markdown_cells_do_not_break_the_table() -> None:
    shown = report.Report({"a|b": ["x|y\nz", None], "n": [True, False]}, {}).render("md", all_rows=True)
    assert shown.splitlines()[2:] == ["| x\\|y z | yes |", "|  | no |"]


def test_every_failure_of_writing_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        report.Report({"a": [1]}, {}).emit("csv", tmp_path / "nowhere" / "x.csv")
