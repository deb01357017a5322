"""Files are checked before they are used, wherever they come from: a folder, a hand, or a server with a bad day."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from poisonproof.datasets import add_file, data_file, data_folder, fetch, fetch_file, source
from poisonproof.errors import FileError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTENT = b"kind,price\r\n" + b"a,1\r\nb,2\r\n" * 2000
CHANGED = CONTENT.replace(b"a,1", b"a,9", 1)
SHA = hashlib.sha256(CONTENT).hexdigest()


def _archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("data/readme.txt"))
        entry = tarfile.TarInfo("data/train.csv")
        entry.size = len(CONTENT)
        archive.addfile(entry, io.BytesIO(CONTENT))
    return packed.getvalue()


PAGES = {"/good": CONTENT, "/packed": gzip.compress(CONTENT), "/wrong": CHANGED, "/tar": _archive()}


class Server(BaseHTTPRequestHandler):
    """Answers from PAGES; /truncated promises more than it sends."""

    timeout = 5

    def do_GET(self) -> None:
        page = PAGES.get(self.path, CONTENT[:1000] if self.path == "/truncated" else None)
        if page is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT) if self.path == "/truncated" else len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    pytest.importorskip("pooch", reason="fetching needs the data extra")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder, where life is a small file that can be fetched."""
    small = replace(source("life"), sha256=("0" * 64, SHA), url="http://127.0.0.1:9/nowhere", get=None)
    monkeypatch.setattr(fetch, "source", lambda name: small if name == "life" else source(name))
    monkeypatch.setenv("POISONPROOF_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_where_files_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert data_folder() == tmp_path / "data"
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.delenv("POISONPROOF_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "cache" / "poisonproof"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "poisonproof"


@pytest.mark.parametrize("name", ["life.csv", "life.csv.gz"])
def test_files_at_hand_are_checked(folder: Path, name: str) -> None:
    folder.mkdir()
    pack = gzip.compress if name.endswith(".gz") else bytes
    (folder / name).write_bytes(pack(CONTENT))
    path = data_file("life")
    assert path == folder / name
    with fetch.opened(path) as file:
        assert file.read() == CONTENT
    (folder / name).write_bytes(pack(CHANGED))
    with pytest.raises(
        FileError, match=f"{name} is not the life that is known: .* have the SHA-256 .*, not 0000"
    ) as found:
        data_file("life")
    assert hashlib.sha256(CHANGED).hexdigest() in str(found.value)


def test_damaged_and_missing_files(folder: Path) -> None:
    with pytest.raises(FileError, match=r"life is not in .*data; run: poisonproof data fetch life; or get it .* put"):
        data_file("life")
    with pytest.raises(FileError, match=r"ames is not in .*; get AmesHousing.csv.*then put it there as .*ames.csv"):
        data_file("ames")
    folder.mkdir()
    (folder / "life.csv.gz").write_bytes(gzip.compress(CONTENT)[:-20])
    with pytest.raises(FileError, match="not a complete gzip file"):
        data_file("life")
    with pytest.raises(ParameterError, match="no data set 'lives'"):
        data_file("lives")
    with pytest.raises(FileError, match="cannot be read: No such file"), fetch.opened(folder / "none"):
        pass


def test_adding_a_file(folder: Path, tmp_path: Path) -> None:
    given = tmp_path / "Life Expectancy Data.csv.gz"
    given.write_bytes(gzip.compress(CONTENT))
    assert add_file("life", given) == folder / "life.csv.gz"
    assert data_file("life").read_bytes() == given.read_bytes()
    plain = tmp_path / "plain"
    plain.write_bytes(CONTENT)
    assert add_file("life", plain) == folder / "life.csv"
    assert [path.name for path in folder.iterdir()] == ["life.csv"], "one copy, the new one"


def test_other_bytes_are_refused_until_they_are_trusted(folder: Path, tmp_path: Path) -> None:
    given = tmp_path / "other.csv"
    given.write_bytes(CHANGED)
    with pytest.raises(FileError, match=r"is not the life that is known: .* or add it with --unverified"):
        add_file("life", given)
    assert not folder.exists()
    place = add_file("life", given, unverified=True)
    assert data_file("life") == place
    place.write_bytes(CHANGED + b"c,3\r\n")
    with pytest.raises(FileError, match="not the life that is known"):
        data_file("life")
    given.write_bytes(CONTENT)
    add_file("life", given)
    assert [path.name for path in folder.iterdir()] == ["life.csv"], "nothing is noted of bytes that are known"


def test_without_a_known_digest_rows_and_columns_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    thin = replace(source("weather"), rows=4000, target="price")
    monkeypatch.setattr(fetch, "source", lambda _: thin)
    given = tmp_path / "train.csv"
    given.write_bytes(CONTENT)
    place = add_file("weather", given)
    place.write_bytes(CHANGED)
    with pytest.raises(FileError, match="not the weather that is known"):
        data_file("weather")
    for content, message in (
        (CONTENT[:-9], "it has 3,998 rows, price among its columns; 4,000 rows"),
        (b"kind,cost\n" + b"a,1\n" * 4000, "price not among its columns"),
    ):
        given.write_bytes(content)
        with pytest.raises(FileError, match=message):
            add_file("weather", given)


def test_spambase_keeps_the_ending_that_says_what_it_is(folder: Path, tmp_path: Path) -> None:
    for name, expected in (("my.csv", "spambase.csv"), ("my.data", "spambase.data"), ("mail", "spambase.data")):
        given = tmp_path / name
        given.write_bytes(CONTENT)
        assert add_file("spambase", given, unverified=True) == folder / expected


def test_nothing_half_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "given.csv"
    given.write_bytes(CONTENT)
    place = add_file("life", given)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(FileError, match=r"life.csv cannot be written: No space left on device"):
        add_file("life", given)
    assert [path.name for path in folder.iterdir()] == ["life.csv"]
    assert place.read_bytes() == CONTENT
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match=r"cannot be written"):
        add_file("life", given, tmp_path / "file" / "folder")


@pytest.mark.parametrize("page", ["good", "packed"])
def test_fetching(folder: Path, address: str, page: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = fetch_file("life", progress=True, url=f"{address}/{page}")
    with fetch.opened(place) as file:
        assert file.read() == CONTENT
    assert "life" in capsys.readouterr().err, "a bar was drawn"
    # What is at hand is not fetched again.
    assert fetch_file("life", url=f"{address}/wrong") == place
    assert place.parent == folder


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("truncated", "cannot be fetched .*; get it from .* and put it there as .*life.csv"),
        ("missing", "cannot be fetched .*404"),
        ("wrong", "is not the life that is known"),
    ],
)
def test_bad_transfers_leave_nothing(folder: Path, address: str, page: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        fetch_file("life", url=f"{address}/{page}")
    assert not folder.exists() or not any(folder.iterdir())


def test_no_network(folder: Path) -> None:
    pytest.importorskip("pooch", reason="fetching needs the data extra")
    with pytest.raises(FileError, match=r"127.0.0.1:9/nowhere cannot be fetched .*put it there as"):
        fetch_file("life")
    assert not folder.exists()


def test_what_needs_an_account_is_not_fetched() -> None:
    with pytest.raises(FileError, match=r"austin cannot be fetched without an account .* get austinHousingData.csv"):
        fetch_file("austin")


def test_archives(monkeypatch: pytest.MonkeyPatch, address: str, folder: Path) -> None:
    packed = replace(source("life"), sha256=(SHA,), member="train.csv", get=None)
    monkeypatch.setattr(fetch, "source", lambda _: packed)
    place = fetch_file("life", url=f"{address}/tar")
    assert place.read_bytes() == CONTENT
    place.unlink()
    assert fetch_file("life", url=f"{address}/good") == folder / "life.csv", "the file itself will do"
    place.unlink()
    empty = replace(packed, member="rows.csv")
    monkeypatch.setattr(fetch, "source", lambda _: empty)
    with pytest.raises(FileError, match=r"holds no rows\.csv"):
        fetch_file("life", url=f"{address}/tar")


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'poisonproof\[data\]'"):
        fetch_file("life")


def test_a_disk_that_fails_while_it_is_read(tmp_path: Path) -> None:
    given = tmp_path / "given.csv"
    given.write_bytes(CONTENT)
    with pytest.raises(FileError, match=r"given\.csv cannot be read: Input/output error"), fetch.opened(given):
        raise OSError(5, "Input/output error")


def test_the_bar_knows_how_far_it_goes() -> None:
    bar = fetch._Bar(source("life"))
    assert bar.total is None
    bar.total = 10
    assert bar.total == 10
    bar.close()
