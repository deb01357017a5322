"""The command as a process: streams, exit codes, signals, start-up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("skops", reason="model files need the io extra")
pytest.importorskip("polars", reason="tables need the io extra")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals as POSIX has them")

MAIN = "from poisonproof.cli.app import main; main()"
# Trees that learn so little that each has something to do: half a second for a submodel, and there are many.
ENDLESS = ("--estimator", "boosted-trees", "--set", "n_estimators=100000", "--set", "learning_rate=1e-6")
# Reading the table is announced, so that a test can interrupt what comes after it.
ANNOUNCING = """
import sys
from poisonproof.cli import tables
read_table = tables.read_table
def announcing(*arguments):
    frame = read_table(*arguments)
    print("ready", file=sys.stderr, flush=True)
    return frame
tables.read_table = announcing
"""


def start(
    *arguments: Any, before: str = "", stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", before + MAIN, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    return subprocess.Popen(command, env=environment, stdout=stdout, stderr=stderr)  # noqa: S603  our own command


def test_streams_and_exit_codes(folder: Path) -> None:
    process = start(
        "evaluate",
        folder / "plain.poisonproof",
        folder / "rows.csv",
        "--format",
        "json",
        "--require-radius",
        6,
        "--at-least",
        1,
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert json.loads(out)["kind"] == "evaluation"
    assert err.decode().startswith("Gate failed")

    process = start("certify", folder / "rows.csv", folder / "rows.csv", "--lower", 1)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, b"")
    assert err.decode().count("\n") == 1
    assert b"Traceback" not in err


def test_help_is_fast_because_it_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "sklearn", "numba", "polars", "rich", "pandas", "skops")
    loaded = f"[name for name in {heavy} if name in sys.modules]"
    report = f"import atexit, sys; atexit.register(lambda: print({loaded}, file=sys.stderr))\n"
    for arguments in (["--help"], ["fit", "--help"], ["certify", "-h"], ["evaluate", "-h"], ["demo", "-h"]):
        out, err = start(*arguments, before=report).communicate(timeout=60)
        assert out.startswith(b"Usage: ")
        assert err.decode().strip() == "[]", arguments


def test_version() -> None:
    out, _ = start("--version").communicate(timeout=60)
    assert b"version 0." in out


def test_a_closed_pipe_is_no_error(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ("certify", folder / "plain.poisonproof", folder / "rows.csv", "--within", 0.1, "--format", "csv")
    process = start(*arguments, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert err == b""
    assert process.returncode == 141


def test_an_interrupt_is_one_line_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "m").write_text("precious")
    # Far more refits than can end before the signal comes.
    arguments = (
        "--schema",
        folder / "schema.toml",
        "--partitions",
        1,
        "--max-cost",
        3,
        "--threat",
        "delete",
        "--estimator",
        "huber",
    )
    process = start("fit", folder / "train.csv", *arguments, "-o", tmp_path / "m", before=ANNOUNCING)
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == (b"", b"Interrupted.\n")
    assert (tmp_path / "m").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("seconds", [0.5, 1.5])
def test_an_interrupt_in_compiled_code_is_one_too(seconds: float, folder: Path, tmp_path: Path) -> None:
    settings = (*ENDLESS, "--partitions", 41, "--jobs", 1)
    before = f"{ANNOUNCING}\nimport poisonproof.learners.boosted_trees\n"
    arguments = ("fit", folder / "train.csv", "--schema", folder / "schema.toml", "-o", tmp_path / "m", *settings)
    process = start(*arguments, before=before)
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    sleep(seconds)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"Interrupted.\n")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("seconds", [0.0, 0.4, 1.2])
def test_an_interrupt_is_one_line_from_all_processes(seconds: float, folder: Path, tmp_path: Path) -> None:
    settings = (*ENDLESS, "--partitions", 41, "--jobs", 2)
    arguments = ("fit", folder / "train.csv", "--schema", folder / "schema.toml", "-o", tmp_path / "m", *settings)
    before = f"import os; os.setsid(){ANNOUNCING}\nimport poisonproof.learners.boosted_trees\n"
    process = start(*arguments, before=before)
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"Interrupted.\n")
    patience = monotonic() + 20
    while _is_alive(process.pid) and monotonic() < patience:
        sleep(0.05)
    assert not _is_alive(process.pid), "a process goes on"


def _is_alive(group: int) -> bool:
    """Whether any process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams_leave_the_exit_code_as_it_is(closed: tuple[int, ...], folder: Path, tmp_path: Path) -> None:
    restart = "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    closing = f"import os, sys; [os.close(number) for number in {closed}]; {restart}"
    evaluate = ("evaluate", folder / "plain.poisonproof", folder / "rows.csv")
    gate = ("--require-radius", 6, "--at-least", 1)
    output = ("-o", tmp_path / "out.json", "--within", "15%")
    for arguments, code in (((*evaluate, *output), 0), ((*evaluate, *gate), 1), (("evaluate", "absent", "x"), 2)):
        command = [sys.executable, "-c", closing, "-c", MAIN, *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, timeout=60, check=False)  # noqa: S603  our own command
        assert ended.returncode == code, ended.stderr
        assert b"Traceback" not in ended.stdout + ended.stderr
        assert bool(ended.stderr) == (code > 0 and 2 not in closed)
    assert json.loads((tmp_path / "out.json").read_text())["kind"] == "evaluation"


def test_progress_goes_to_a_terminal_on_stderr_and_nowhere_else(folder: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="needs terminals")
    arguments = (
        "fit",
        folder / "train.csv",
        "--schema",
        folder / "schema.toml",
        "--partitions",
        51,
        "-o",
        tmp_path / "m",
        "--format",
        "json",
    )
    main, terminal = pty.openpty()
    process = start(*arguments, stderr=terminal)
    os.close(terminal)
    out, _ = process.communicate(timeout=60)
    shown = os.read(main, 65536)
    os.close(main)
    assert process.returncode == 0
    assert json.loads(out)["n_submodels"] == 51
    assert b"fitting" in shown

    quiet = start(*arguments)
    _, err = quiet.communicate(timeout=60)
    assert err == b""
