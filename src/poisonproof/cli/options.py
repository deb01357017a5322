"""Options that several commands have, read in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from poisonproof.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SHARE", "classes_option", "jobs_option"]


class _Share(click.ParamType):  # type: ignore[type-arg]  # not generic in all of click's releases
    """A number, or a percentage."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401
        text = str(value)
        try:
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            self.fail(f"{text!r} must be a share, such as 0.15 or 15%", param, ctx)


SHARE: Final = _Share()


def jobs_option(usual: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--jobs``, how many processes to use, for a command whose ``usual`` number is this."""
    text = f"Processes to use; -1 for all processors.  [default: {usual}]"
    return click.option("--jobs", type=int, callback=_checked_jobs, help=text)


def classes_option(usual: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--classes``, all there may be; ``usual`` says which are meant without."""
    text = f"All classes there may be.  [default: {usual}]"
    return click.option("--classes", metavar="A,B,…", callback=_checked_classes, help=text)


def _checked_classes(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001  click's signature
    if value is not None and not all(name.strip() for name in value.split(",")):
        raise ParameterError(f"--classes {value} holds a class without a name; write each class between single commas")
    return value


def _checked_jobs(ctx: click.Context, param: click.Parameter, value: int | None) -> int | None:  # noqa: ARG001  click's signature
    if value is not None and value < 1 and value != -1:
        raise ParameterError(f"--jobs {value} must be at least 1, or -1 for all processors")
    return value
