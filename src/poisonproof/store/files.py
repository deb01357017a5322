"""Whole files: written completely or not at all, read with errors that say what is wrong."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from poisonproof.errors import FileError

__all__ = ["bytes_of", "check_writable", "first_line", "write_then_rename"]


def write_then_rename(path: str | Path, content: bytes) -> None:
    """Put the content at ``path``, whole or not at all: a reader never sees half of it."""
    check_writable(path)
    target = Path(path).resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_usual_mode(target))
        Path(name).replace(target)
    except BaseException as error:
        with suppress(OSError):
            Path(name).unlink()
        if isinstance(error, OSError):
            raise FileError(f"{path} cannot be written: {error.strerror}") from error
        raise


def check_writable(path: str | Path) -> None:
    """Fail now, and not after long work, where nothing can be written at ``path``."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise FileError(f"{path} cannot be written: it exists and is no ordinary file")
    if not target.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise FileError(f"{path} cannot be written: nothing may be written in {target.parent}")


def bytes_of(path: Path) -> bytes:
    """The content of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _usual_mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
