"""The command line's entrance: which commands there are, and what becomes of errors, interrupts and broken pipes."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from threading import Timer, current_thread, main_thread
from traceback import format_exc
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

import click

from poisonproof.errors import PoisonproofError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["app", "main"]

USAGE_OR_INPUT_ERROR: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells count
PIPE_CLOSED: Final = 141  # 128 + SIGPIPE
FAULT: Final = 70  # as sysexits.h calls a fault of the program's own; 1 means that a gate failed

_COMPILED: Final = ("numba.core.serialize", "llvmlite.binding.executionengine")  # whose callbacks lose exceptions
_PATIENCE: Final = 0.02  # seconds until an interrupt at a bad moment comes again

_COMMANDS: Final = {
    "demo": "Certify the bundled diamonds and compare with the published figures.",
    "schema": "Propose an encoding from a table of trusted rows.",
    "fit": "Train a certified model on a table and save it.",
    "certify": "Certify the predictions for the rows of a table.",
    "evaluate": "Measure certified accuracy on rows with known targets.",
    "tune": "Search settings on trusted rows.",
    "paper": "Run the published evaluation again, beside its figures and ours.",
    "data": "List, fetch and add the data sets of the evaluation.",
    "doctor": "Check this installation.",
}


class Application(click.Group):
    """A group whose commands are imported when they are run, and whose errors are one sentence each."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """The commands in the order in which a newcomer needs them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        if cmd_name not in _COMMANDS:
            near = get_close_matches(cmd_name, _COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(_COMMANDS)}"
            raise click.UsageError(f"there is no command {cmd_name!r}; {hint}", ctx)
        command: click.Command = import_module(f"poisonproof.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's signature
        """The list of commands, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, which may ask for help or the version."""
        with _ending_quietly(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  click's signature
        """Run the command."""
        with _ending_quietly(ctx):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def main(self, *args: Any, **extra: Any) -> NoReturn:  # noqa: ANN401  click's signature
        """Run with these arguments and exit: 0 done, 1 a gate failed, 2 usage or input error."""
        _prepare_streams()
        try:
            with _plain_warnings(), _careful_interrupts():
                code = super().main(*args, **extra | {"standalone_mode": False})
        except click.Abort:
            click.echo("Interrupted.", err=True)
            code = INTERRUPTED
        except click.ClickException as error:
            error.show()
            code = USAGE_OR_INPUT_ERROR
        except (PoisonproofError, OSError, MemoryError) as error:
            click.echo(f"Error: {_sentence(error)}", err=True)
            code = USAGE_OR_INPUT_ERROR
        except Exception:  # noqa: BLE001  a fault must not look like a failed gate
            click.echo(f"{format_exc()}This is a fault of poisonproof itself; please report it.", err=True)
            code = FAULT
        sys.exit(code or 0)


@click.group(cls=Application, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="poisonproof")
def app() -> None:
    """Train models whose predictions come with a proof against poisoned training data."""


def main() -> NoReturn:
    """Run the command line."""
    app.main()


@contextmanager
def _ending_quietly(ctx: click.Context) -> Iterator[None]:
    """Exit where an interrupt or a closed pipe ends the work, without a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        ctx.exit(INTERRUPTED)
    except BrokenPipeError:
        _silence_stdout()
        ctx.exit(PIPE_CLOSED)


def _prepare_streams() -> None:
    """Write what an old terminal's encoding lacks as question marks, and what has no reader nowhere, and go on."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _sink(number))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _sink(number: int) -> TextIO:
    """A stream to nowhere on a descriptor that was closed, which else the next file opened would get, and its text."""
    sink = os.open(os.devnull, os.O_WRONLY)
    if sink != number:
        os.dup2(sink, number)
        os.close(sink)
    os.set_inheritable(number, True)
    return open(number, "w", encoding="utf-8", closefd=False)


@contextmanager
def _careful_interrupts() -> Iterator[None]:
    """Ctrl-C at moments that bear it; where it is ignored, as behind nohup, it stays ignored."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is not signal.default_int_handler or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Stop, but not while compiled code hands over its result: there an interrupt would be lost, or end in a crash."""
    while frame is not None:
        if frame.f_globals.get("__name__") in _COMPILED:
            again = Timer(_PATIENCE, signal.raise_signal, (number,))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings meant for the user as one line on standard error, each once; notes to developers not at all."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        click.echo(f"Warning: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = show
        yield


def _silence_stdout() -> None:
    """Send what is still buffered nowhere, so that Python's last flush does not complain either."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
