"""``poisonproof schema``: an encoding proposed from trusted rows."""

from __future__ import annotations

from pathlib import Path

import click

from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options
from poisonproof.errors import FileError, ParameterError

__all__ = ["command"]


@click.command("schema")
@click.argument("trusted", type=click.Path(path_type=Path))
@click.option("--target", help="The column to predict; it is kept out of the features.")
@click.option("--log-target", is_flag=True, help="Learn the target's logarithm.")
@click.option("--max-categories", type=int, default=50, show_default=True, help="Categories a column may have.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=Path("schema.toml"), show_default=True, help="Where to."
)
@click.option("--force", is_flag=True, help="Replace the file if there is one, whatever was corrected in it.")
@output_options
def command(
    trusted: Path,
    *,
    target: str | None,
    log_target: bool,
    max_categories: int,
    output: Path,
    force: bool,
    form: str | None,
) -> None:
    """Propose an encoding from TRUSTED, a CSV or Parquet file of rows that no attacker can touch.

    Ranges and categories are declared once and learn nothing from training rows, so that one row cannot change how
    another is read. Read the file and correct it before use.
    """
    from poisonproof.cli.tables import read_table  # noqa: PLC0415  a fast --help
    from poisonproof.schema import propose_schema  # noqa: PLC0415
    from poisonproof.store import check_writable  # noqa: PLC0415

    if log_target and target is None:
        raise ParameterError("--log-target needs --target, the column to predict")
    check_writable(output)
    if output.exists() and not force:
        raise FileError(f"{output} exists, and may hold corrections; name another with -o, or give --force")
    proposed = propose_schema(
        read_table(trusted),
        target=target,
        target_transform="log" if log_target else None,
        max_categories=max_categories,
    )
    proposed.to_toml(output)
    kinds = [type(column).__name__.lower() for column in proposed.columns]
    names = list(proposed.column_names)
    widths = [len(column.features) for column in proposed.columns]
    Report(
        columns={"column": names, "kind": kinds, "features": widths},
        document={
            "schema_version": DOCUMENT_VERSION,
            "kind": "schema",
            "path": str(output),
            "target": target,
            "columns": [
                {"name": name, "kind": kind, "n_features": width}
                for name, kind, width in zip(names, kinds, widths, strict=True)
            ],
        },
        notes=[f"Written to {output}; read and correct it before use."],
    ).emit(form)
