"""What an attacker may do to the training data, and what one modification counts."""

from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from poisonproof.errors import ParameterError

__all__ = ["Moves", "Threat", "Unit"]

Moves = Literal["insert+delete", "delete", "insert", "relabel"]
Unit = Literal["row", "source"]

_VERBS: Final[dict[Moves, str]] = {
    "insert+delete": "inserted or deleted",
    "delete": "deleted",
    "insert": "inserted",
    "relabel": "relabelled",
}
_NOUNS: Final[dict[Unit, tuple[str, str]]] = {
    "row": ("training row", "training rows"),
    "source": ("training source", "training sources"),
}


@dataclass(frozen=True)
class Threat:
    """What an attacker may do, and what one modification counts.

    Parameters
    ----------
    moves : {"insert+delete", "delete", "insert", "relabel"}
        Which modifications the attacker may make. Changing a row is a deletion and an insertion; "relabel"
        changes labels alone.
    unit : {"row", "source"}
        What the attacker's budget counts: single rows, or sources (all rows of one contributor).

    Examples
    --------
    >>> print(Threat("insert+delete").phrase(12))
    any 12 inserted or deleted training rows
    >>> print(Threat("delete", "source").phrase(1))
    any 1 deleted training source
    """

    moves: Moves = "insert+delete"
    unit: Unit = "row"

    def __post_init__(self) -> None:
        if self.moves not in get_args(Moves):
            raise ParameterError(
                f"threat={self.moves!r} is unknown; use one of {', '.join(map(repr, get_args(Moves)))}"
            )
        if self.unit not in get_args(Unit):
            raise ParameterError(f"unit={self.unit!r} is unknown; use one of {', '.join(map(repr, get_args(Unit)))}")

    @classmethod
    def of(cls, moves: str, unit: str = "row") -> "Threat":
        """The threat of this name, or an error that lists the names there are."""
        return cls(cast("Moves", moves), cast("Unit", unit))

    def __str__(self) -> str:
        return f"{self.moves} of {self.unit}s"

    @property
    def inserts(self) -> bool:
        """Whether new units may appear."""
        return self.moves in ("insert", "insert+delete")

    @property
    def deletes(self) -> bool:
        """Whether present units may disappear."""
        return self.moves in ("delete", "insert+delete")

    def phrase(self, count: int) -> str:
        """The subject of a certificate's sentence: ``any 12 inserted or deleted training rows``."""
        verb = _VERBS[self.moves]
        if self.unit == "source" and self.inserts and self.deletes:
            # Sound because all rows of a source lie in one block: whatever happens inside it touches that block alone.
            verb = "inserted, deleted or altered"
        return f"any {count:,} {verb} {_NOUNS[self.unit][count != 1]}"
