"""``poisonproof data``: the data sets of the evaluation, what is at hand of them, and how to come by the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from poisonproof.cli.report import DOCUMENT_VERSION, Report, output_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from poisonproof.datasets.registry import Source

__all__ = ["command"]


@click.group("data")
def command() -> None:
    """List, fetch and add the data sets of the evaluation.

    Files are kept in the folder that --data-dir or the variable POISONPROOF_DATA names, otherwise in the user's cache,
    and are checked before they are used.
    """


def _data_dir(wrapped: Callable[..., None]) -> Callable[..., None]:
    option = click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False), help="The data folder.")
    return option(wrapped)


@command.command("list")
@_data_dir
@output_options
def list_all(*, data_dir: Path | None, form: str | None) -> None:
    """List the data sets, and whether their files are at hand."""
    from poisonproof.datasets.fetch import data_folder  # noqa: PLC0415  a fast --help
    from poisonproof.datasets.registry import sources  # noqa: PLC0415

    known, folder = sources(), data_folder(data_dir)
    states = [_state(each, data_dir) for each in known]
    Report(
        columns={
            "data set": [each.name for each in known],
            "what": [each.title for each in known],
            "right within": [_threshold(each) for each in known],
            "licence": [each.licence for each in known],
            "file": states,
        },
        document={
            "schema_version": DOCUMENT_VERSION,
            "kind": "data",
            "folder": str(folder),
            "datasets": [
                {"name": each.name, "page": each.page, "licence": each.licence, "target": each.target, "file": state}
                for each, state in zip(known, states, strict=True)
            ],
        },
        notes=[f"Files are looked for in {folder}."],
    ).emit(form)


@command.command("fetch")
@click.argument("name")
@_data_dir
def fetch(name: str, *, data_dir: Path | None) -> None:
    """Fetch data set NAME from its official address and check it."""
    from poisonproof.datasets.fetch import fetch_file  # noqa: PLC0415  a fast --help
    from poisonproof.datasets.registry import source  # noqa: PLC0415

    if source(name).bundled:
        click.echo(f"{name} is part of the package; there is nothing to fetch.")
        return
    click.echo(f"{name} is in {fetch_file(name, data_dir, progress=sys.stderr.isatty())}, checked.")


@command.command("add")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@_data_dir
@click.option(
    "--unverified", is_flag=True, help="Accept bytes that are not known; they are noted and hold from now on."
)
def add(name: str, file: Path, *, data_dir: Path | None, unverified: bool) -> None:
    """Check FILE, which holds data set NAME, and put it into the data folder."""
    from poisonproof.datasets.fetch import add_file  # noqa: PLC0415  a fast --help

    click.echo(f"{name} is in {add_file(name, file, data_dir, unverified=unverified)}.")


def _state(wanted: Source, data_dir: Path | None) -> str:
    from poisonproof.datasets.fetch import data_file, held_file  # noqa: PLC0415  a fast --help
    from poisonproof.errors import FileError  # noqa: PLC0415

    if wanted.bundled:
        return "part of the package"
    if held_file(wanted.name, data_dir) is None:
        return "not here"
    try:
        return str(data_file(wanted.name, data_dir))
    except FileError:
        return "here, but changed or damaged"


def _threshold(wanted: Source) -> str:
    if wanted.relative:
        return f"{wanted.within:.0%} of {wanted.target}"
    return f"{wanted.within:g} of {wanted.target}" if wanted.within else f"the same {wanted.target}"
