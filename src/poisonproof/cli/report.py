"""What a command says: one table, as text, CSV, JSON or Markdown, on standard output or in a file."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["DOCUMENT_VERSION", "Report", "check_output", "output_options"]

Command = TypeVar("Command", bound="Callable[..., Any]")

DOCUMENT_VERSION: Final = 1
_FORMATS: Final = ("table", "csv", "json", "md")
_SUFFIXES: Final = {".csv": "csv", ".json": "json", ".md": "md", ".txt": "table"}
_SHOWN_ROWS: Final = 20
_WIDE: Final = 200  # a file or a pipe has no width: wide enough for every table here


def output_options(command: Command) -> Command:
    """``--format`` for a command that prints a report."""
    allowed = click.Choice(_FORMATS)
    option = click.option("--format", "form", type=allowed, help="How to write the result.  [default: table]")
    return option(command)


@dataclass(frozen=True)
class Report:
    """A result to be read by people and programs.

    Parameters
    ----------
    columns : mapping of str to sequence
        The table, column by column: numbers, texts, booleans, or None.
    document : mapping
        The whole result for programs, ready for JSON.
    notes : sequence of str
        Sentences that belong below the table where a person reads it.
    title : str
        What stands above it.
    outward : mapping of str to str
        Columns with ends of what was proved, and how :mod:`decimal` calls the way to round them where people read them.
    repeated : mapping
        What holds for the whole table, and stands in every row where programs read it.
    """

    columns: Mapping[str, Sequence[Any]]
    document: Mapping[str, Any]
    notes: Sequence[str] = ()
    title: str = ""
    # Sound because a table says no more than was proved.
    outward: Mapping[str, str] = field(default_factory=lambda: {"lower": ROUND_FLOOR, "upper": ROUND_CEILING})
    repeated: Mapping[str, Any] = field(default_factory=dict)

    def emit(self, form: str | None, path: Path | None = None) -> None:
        """Write in this format to standard output, or to a file, whole or not at all."""
        if path is None:
            click.echo(self.render(form or "table", all_rows=False), nl=False)
            return
        from poisonproof.store import write_then_rename  # noqa: PLC0415  numpy only where something is written

        write_then_rename(path, self.render(form or _format_of(path), all_rows=True).encode())

    def render(self, form: str, *, all_rows: bool) -> str:
        """The text in one of the formats; as a table of a few rows only, unless ``all_rows``."""
        if form == "json":
            return json.dumps(self.document, allow_nan=False) + "\n"
        if form == "csv":
            return self._csv()
        if form == "md":
            return self._markdown()
        return self._table(all_rows=all_rows)

    def _rows(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.columns.values(), strict=True))

    def _texts(self, count: int | None = None) -> list[tuple[str, ...]]:
        """The first rows, or all of them, as people read them."""
        columns = ((self.outward.get(name), column[:count]) for name, column in self.columns.items())
        return list(zip(*([_shown(cell, rounding) for cell in column] for rounding, column in columns), strict=True))

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self.columns, *self.repeated])
        rows = [(*row, *self.repeated.values()) for row in self._rows()]
        writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
        return text.getvalue()

    def _markdown(self) -> str:
        ruler = ["---:" if _is_number(column) else "---" for column in self.columns.values()]
        rows = [list(self.columns), ruler, *([_escaped(cell) for cell in row] for row in self._texts())]
        lines = [f"| {' | '.join(cells)} |" for cells in rows]
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def _table(self, *, all_rows: bool) -> str:
        from rich.console import Console  # noqa: PLC0415  only where a table is drawn
        from rich.table import Table  # noqa: PLC0415

        count = len(next(iter(self.columns.values())))
        shown = self._texts(None if all_rows else _SHOWN_ROWS)
        drawn = Table()
        for place, (name, column) in enumerate(self.columns.items()):
            # Sound because a number is never cut short, however narrow the terminal.
            least = max((len(row[place]) for row in shown), default=0) if _is_number(column) else None
            drawn.add_column(name, justify="left" if least is None else "right", min_width=least)
        for row in shown:
            drawn.add_row(*row)
        text = io.StringIO()
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() and not all_rows else _WIDE
        console = Console(file=text, width=width, color_system=None, markup=False, highlight=False, emoji=False)
        if self.title:
            console.print(self.title, soft_wrap=True)
        console.print(drawn, crop=False)
        if len(shown) < count:
            console.print(f"… and {count - len(shown):,} more rows; all of them with --format csv, json or md")
        for note in self.notes:
            console.print(note, soft_wrap=True)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def check_output(form: str | None, path: Path | None) -> None:
    """Fail before the work where its outcome could not be written."""
    if path is not None:
        from poisonproof.store import check_writable  # noqa: PLC0415  numpy only where something is written

        check_writable(path)
        if form is None:
            _format_of(path)


def _format_of(path: Path) -> str:
    if path.suffix.lower() not in _SUFFIXES:
        raise ParameterError(
            f"the format of {path} cannot be told from its name; use one of {', '.join(_SUFFIXES)}, or --format"
        )
    return _SUFFIXES[path.suffix.lower()]


def _is_number(column: Sequence[Any]) -> bool:
    return all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in column if cell is not None)


def _shown(cell: object, rounding: str | None = None) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float) and rounding is not None:
        from poisonproof.certificate import number_text  # noqa: PLC0415  numpy only where bounds are shown

        return number_text(cell, rounding)
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return str(cell)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
