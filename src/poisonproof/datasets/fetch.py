"""Data files: found in the data folder, fetched or added to it, and never used before they are checked."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import zlib
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from poisonproof.datasets.registry import source
from poisonproof.errors import FileError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from poisonproof.datasets.registry import Source

__all__ = ["add_file", "data_file", "data_folder", "fetch_file", "held_file", "opened"]

_CHUNK: Final = 1 << 20
_TIMEOUT: Final = 30  # seconds in which a server must say something
_GZIP: Final = b"\x1f\x8b"


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Where data files are kept: ``data_dir``, else the folder POISONPROOF_DATA names, else the user's cache."""
    named = data_dir or os.environ.get("POISONPROOF_DATA")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "poisonproof"


def data_file(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The checked file of a data set; an error that says where to put it where there is none."""
    wanted, folder = source(name), data_folder(data_dir)
    held = held_file(name, folder)
    if held is None:
        raise FileError(f"{name} is not in {folder}; {_way(wanted, folder)}")
    _check(wanted, held, _noted(held))
    return held


def held_file(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of a data set in the data folder, not checked; None where there is none."""
    candidates = _candidates(source(name), data_folder(data_dir))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def add_file(
    name: str, path: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None = None, *, unverified: bool = False
) -> Path:
    """Put a file that is at hand into the data folder, once it is checked; its place there.

    Parameters
    ----------
    name : str
        The data set.
    path : path
        The file, plain or compressed with gzip.
    data_dir : path, optional
        The data folder, see :func:`data_folder`.
    unverified : bool, default=False
        Accept bytes whose digest is not known: their digest is noted and holds from now on. Columns are still checked
        when the rows are read.
    """
    wanted, given = source(name), Path(path)
    digest = _digest(given)
    if wanted.sha256 and digest not in wanted.sha256 and not unverified:
        raise FileError(
            f"{given} is not the {name} that is known: its uncompressed bytes have the SHA-256 {digest}, not "
            f"{' or '.join(wanted.sha256)}; get it from {wanted.page}, or add it with --unverified if you trust it"
        )
    if not wanted.sha256:
        _check_rows(wanted, given)
    suffix = ".gz" if _is_gzip(given) else ""
    place = data_folder(data_dir) / (_named_alike(wanted, given) + suffix)
    _put(given, place)
    _note(place, None if digest in wanted.sha256 else digest)
    for other in _candidates(wanted, place.parent):
        if other != place:
            other.unlink(missing_ok=True)  # one copy only, so that the new one is the one that is used
    return place


def fetch_file(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, progress: bool = False, url: str | None = None
) -> Path:
    """The checked file of a data set, fetched from its official address where it is not at hand.

    Parameters
    ----------
    name : str
        The data set.
    data_dir : path, optional
        The data folder, see :func:`data_folder`.
    progress : bool, default=False
        Whether a bar on standard error shows how far the transfer is.
    url : str, optional
        Another address of the same bytes.
    """
    wanted, folder = source(name), data_folder(data_dir)
    if held_file(name, folder) is not None:
        return data_file(name, folder)
    address = url or wanted.url
    if address is None:
        raise FileError(f"{name} cannot be fetched without an account or a conversion; {_way(wanted, folder)}")
    with tempfile.TemporaryDirectory(prefix="poisonproof-") as scratch:
        arrived = _transfer(wanted, folder, address, Path(scratch), progress=progress)
        return add_file(name, _extracted(wanted, arrived), folder)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The uncompressed bytes of a file, to be read from the beginning."""
    try:
        with cast("IO[bytes]", gzip.open(path, "rb") if _is_gzip(path) else path.open("rb")) as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise FileError(f"{path} is not a complete gzip file; get it again") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None


def _transfer(wanted: Source, folder: Path, url: str, scratch: Path, *, progress: bool) -> Path:
    pooch = _pooch()
    pooch.get_logger().setLevel("ERROR")  # our own errors and the bar say what there is to say
    answers: list[Any] = []
    downloader = pooch.HTTPDownloader(
        timeout=_TIMEOUT,
        progressbar=_Bar(wanted) if progress else False,
        hooks={"response": lambda answer, **_: answers.append(answer)},
    )
    try:
        arrived = pooch.retrieve(url, known_hash=None, fname="arrived", path=scratch, downloader=downloader)
    except Exception as error:  # noqa: BLE001  the transfer's libraries raise a dozen unrelated kinds
        root = _root(error)
        reason = getattr(root, "strerror", None) or " ".join(str(root).split()) or type(root).__name__
        raise FileError(f"{url} cannot be fetched ({reason}); {_way(wanted, folder, fetchable=False)}") from None
    finally:
        for answer in answers:
            answer.close()  # a transfer that fails leaves its connection open
    return Path(arrived)


def _root(error: BaseException) -> BaseException:
    """What was wrong in the first place, before libraries wrapped it in their own words."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _pooch() -> ModuleType:
    try:
        return import_module("pooch")
    except ImportError:
        raise MissingExtraError(
            "fetching data needs pooch; run: pip install 'poisonproof[data]', or add a file that is at hand"
        ) from None


class _Bar:
    """A progress bar of rich, with the few methods that a transfer calls."""

    def __init__(self, wanted: Source) -> None:
        from rich.console import Console  # noqa: PLC0415  only where a bar is drawn
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn  # noqa: PLC0415

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._task = self._progress.add_task(wanted.name, total=None)
        self._progress.start()

    @property
    def total(self) -> float | None:
        """How many bytes there will be."""
        return self._progress.tasks[0].total

    @total.setter
    def total(self, count: int) -> None:
        self._progress.update(self._task, total=count or None)

    def update(self, count: int) -> None:
        """Say that these many bytes came."""
        self._progress.advance(self._task, count)

    def reset(self) -> None:
        """Begin again."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Stop drawing."""
        self._progress.stop()


def _extracted(wanted: Source, arrived: Path) -> Path:
    if wanted.member is None or not tarfile.is_tarfile(arrived):
        return arrived
    with tarfile.open(arrived) as archive:
        for entry in archive:
            content = archive.extractfile(entry) if Path(entry.name).name == wanted.member else None
            if content is not None:
                member = arrived.with_name("member")
                with content, member.open("wb") as file:
                    shutil.copyfileobj(content, file, _CHUNK)
                return member
    raise FileError(f"the archive of {wanted.name} holds no {wanted.member}; get it by hand from {wanted.page}")


def _check(wanted: Source, path: Path, noted: str | None) -> None:
    accepted = wanted.sha256 if noted is None else (*wanted.sha256, noted)
    if accepted and (digest := _digest(path)) not in accepted:
        raise FileError(
            f"{path} is not the {wanted.name} that is known: its uncompressed bytes have the SHA-256 {digest}, not "
            f"{' or '.join(accepted)}; delete it and {_way(wanted, path.parent)}"
        )


def _check_rows(wanted: Source, path: Path) -> None:
    with opened(path) as file:
        named = wanted.target.encode() in file.readline().rstrip().split(b",")
        count = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(_CHUNK), b""))
    if not named or count != wanted.rows:
        rows = f"{count:,} rows, {wanted.target} {'' if named else 'not '}among its columns"
        raise FileError(
            f"{path} is not the whole {wanted.name}: it has {rows}; {wanted.rows:,} rows and {wanted.target} are "
            f"expected; get it from {wanted.page}"
        )


def _digest(path: Path) -> str:
    total = hashlib.sha256()
    with opened(path) as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def _is_gzip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == _GZIP
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None


def _candidates(wanted: Source, folder: Path) -> list[Path]:
    return [folder / (name + suffix) for name in wanted.files for suffix in ("", ".gz")]


def _named_alike(wanted: Source, given: Path) -> str:
    ending = Path(given.name.removesuffix(".gz")).suffix
    return next((name for name in wanted.files if Path(name).suffix == ending), wanted.files[0])


def _noted(path: Path) -> str | None:
    note = path.with_name(f"{path.name}.sha256")
    return note.read_text(encoding="ascii").strip() if note.is_file() else None


def _note(path: Path, digest: str | None) -> None:
    note = path.with_name(f"{path.name}.sha256")
    if digest is None:
        note.unlink(missing_ok=True)
    else:
        note.write_text(f"{digest}\n", encoding="ascii")


def _put(given: Path, place: Path) -> None:
    """Copy a file to its place, whole or not at all."""
    draft: Any = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with given.open("rb") as file, tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as draft:
            shutil.copyfileobj(file, draft, _CHUNK)
        Path(draft.name).chmod(0o644)
        Path(draft.name).replace(place)
    except OSError as error:
        if draft is not None:
            Path(draft.name).unlink(missing_ok=True)
        raise FileError(f"{place} cannot be written: {error.strerror or error}") from None


def _way(wanted: Source, folder: Path, *, fetchable: bool = True) -> str:
    """How to come by the file."""
    named = "" if folder == data_folder() else f" --data-dir {folder}"
    by_hand = (
        f"put it there as {folder / wanted.files[0]} (or with .gz), "
        f"or run: poisonproof data add {wanted.name} FILE{named}"
    )
    if wanted.url is None:
        return f"get {wanted.get} ({wanted.page}), then {by_hand}"
    ways = f"get it from {wanted.page} and {by_hand}"
    return f"run: poisonproof data fetch {wanted.name}{named}; or {ways}" if fetchable else ways
