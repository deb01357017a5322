"""A small table, its schema and models of it, made once, by the commands themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

from poisonproof.cli.app import app
from poisonproof.datasets import load_diamonds
from poisonproof.schema import Category, Numeric, Schema, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Run = Callable[..., Result]


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command with these arguments; fail on exceptions that are not an exit."""
    pytest.importorskip("polars", reason="tables need the io extra")
    runner = CliRunner()

    def invoke(*arguments: Any) -> Result:
        return runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)

    return invoke


@pytest.fixture(scope="session")
def table() -> list[dict[str, Any]]:
    """600 diamonds, one dict each."""
    diamonds = load_diamonds()
    chosen = np.random.default_rng(0).choice(len(diamonds), 600, replace=False)
    columns = {name: column[chosen].tolist() for name, column in diamonds.columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, table: list[dict[str, Any]], run: Run) -> Path:
    """train.csv, rows.csv, schema.toml (learns log prices), plain.toml, model.poisonproof, plain.poisonproof."""
    folder = tmp_path_factory.mktemp("cli")
    write_csv(folder / "train.csv", table[:500])
    write_csv(folder / "rows.csv", table[500:])
    columns = (
        Numeric("carat", 0, 5, scale=False),
        Numeric("x", 0, 12, scale=False),
        Category("cut", ["Fair", "Good", "Very Good", "Premium", "Ideal"], unknown="error"),
    )
    Schema(columns, Target("price", "log")).to_toml(folder / "schema.toml")
    Schema(columns, Target("price")).to_toml(folder / "plain.toml")
    for schema, model in (("schema.toml", "model.poisonproof"), ("plain.toml", "plain.poisonproof")):
        options = ("--schema", folder / schema, "--partitions", 11, "-o", folder / model)
        result = run("fit", folder / "train.csv", *options)
        assert result.exit_code == 0, result.output
    return folder


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def write() -> Callable[[Path, list[dict[str, Any]]], None]:
    return write_csv
