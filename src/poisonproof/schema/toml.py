"""Schemas as TOML files: one table per column, strict in what it reads, whole or absent in what it writes."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from poisonproof.errors import FileError, SchemaError
from poisonproof.schema.columns import Category, Numeric, Ordinal, Target
from poisonproof.schema.tables import near_phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from poisonproof.schema.cells import Label
    from poisonproof.schema.columns import Column

__all__ = ["read_declaration", "write_declaration"]

_KINDS: Final[dict[str, type[Column]]] = {"numeric": Numeric, "category": Category, "ordinal": Ordinal}
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def read_declaration(path: str | os.PathLike[str]) -> tuple[tuple[Column, ...], Target | None]:
    """The columns and the target declared in this file."""
    try:
        document = tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except OSError as error:
        raise FileError(f"the schema {os.fspath(path)!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, or nested without end
        raise FileError(f"the schema {os.fspath(path)!r} is not TOML: {error}") from None
    return _parse(document)


def write_declaration(path: str | os.PathLike[str], columns: Sequence[Column], target: Target | None) -> None:
    """Write columns and target to this file; what was there stays until the new text is complete."""
    tables = [] if target is None else ["[target]\n" + _lines(target)]
    tables += [f'[[columns]]\nkind = "{_kind(column)}"\n' + _lines(column) for column in columns]
    text = _encoded("\n".join(tables))
    goal = Path(path).resolve()
    if goal.exists() and not goal.is_file():
        raise FileError(f"the schema {os.fspath(path)!r} cannot be written: it exists and is no ordinary file")
    draft = goal.parent / f".{goal.name}.{os.getpid()}.part"
    try:
        draft.write_bytes(text)
        draft.replace(goal)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise FileError(f"the schema {os.fspath(path)!r} cannot be written: {error.strerror or error}") from None
        raise


def _parse(document: dict[str, Any]) -> tuple[tuple[Column, ...], Target | None]:
    _check_keys("the file", document, ("columns", "target"))
    entries = document.get("columns", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaError("columns must be an array of tables; begin each column with [[columns]]")
    target = document.get("target")
    if target is not None and not isinstance(target, dict):
        raise SchemaError(f'target={target!r} must be a table; write [target] and name = "…"')
    return tuple(_column(entry) for entry in entries), None if target is None else _declared(Target, target, "target")


def _column(entry: dict[str, Any]) -> Column:
    kind = entry.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise SchemaError(f"column {entry.get('name')!r}: kind={kind!r} must be one of {', '.join(map(repr, _KINDS))}")
    rest = {key: value for key, value in entry.items() if key != "kind"}
    column: Column = _declared(_KINDS[kind], rest, f"column {entry.get('name')!r}")
    return column


def _declared(kind: type[Any], entry: dict[str, Any], where: str) -> Any:  # noqa: ANN401  an instance of kind
    _check_keys(where, entry, [field.name for field in fields(kind)])
    for field in fields(kind):
        if field.default is MISSING and field.name not in entry:
            raise SchemaError(f"{where} has no {field.name}; it must be declared")
    return kind(**entry)


def _check_keys(where: str, entry: dict[str, Any], known: Sequence[str]) -> None:
    for key in entry:
        if key not in known:
            raise SchemaError(f"{where} has the unknown key {key!r}{near_phrase(key, known, 'known are')}")


def _kind(column: Column) -> str:
    return next(name for name, kind in _KINDS.items() if type(column) is kind)


def _lines(declared: Column | Target) -> str:
    given = {
        field.name: getattr(declared, field.name)
        for field in fields(declared)
        if getattr(declared, field.name) != field.default
    }
    return "".join(f"{name} = {_literal(value)}\n" for name, value in given.items())


def _literal(value: Label | tuple[Label, ...]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return f'"{"".join(map(_escaped, value))}"'
    return repr(float(value)) if isinstance(value, float) else repr(int(value))


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{ord(character):04X}" if character < " " or character == "\x7f" else character


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        wrong = text[error.start : error.end]
        raise SchemaError(f"the schema cannot be written as TOML: {wrong!r} is no character of Unicode text") from None
