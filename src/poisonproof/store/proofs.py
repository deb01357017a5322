"""Certificates and intervals as JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from poisonproof.certificate import SCHEMA_VERSION, Certificate, Interval
from poisonproof.errors import FileError, PoisonproofError
from poisonproof.store.files import bytes_of, first_line, write_then_rename
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["certificate_document", "load_certificate", "save_certificate"]


def save_certificate(proof: Certificate | Interval, path: str | Path) -> None:
    """Write a certificate or an interval as JSON, whole or not at all."""
    write_then_rename(path, (json.dumps(certificate_document(proof), allow_nan=False) + "\n").encode())


def certificate_document(proof: Certificate | Interval) -> dict[str, Any]:
    """What a certificate file holds, as plain lists and strings."""
    return {"kind": type(proof).__name__.lower()} | proof.to_dict()


def load_certificate(path: str | Path) -> Certificate | Interval:
    """The certificate or interval in a file that :func:`save_certificate` wrote."""
    content = bytes_of(Path(path))
    try:
        return _proof(json.loads(content))
    except (PoisonproofError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise FileError(f"{path} is not a certificate file this release reads: {first_line(error)}") from error


def _proof(document: Mapping[str, Any]) -> Certificate | Interval:
    if document["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema version {document['schema_version']!r}, this release reads version {SCHEMA_VERSION}")
    threat = Threat.of(document["threat"], document["unit"])
    if document["kind"] == "interval":
        return _interval(document, threat)
    if document["kind"] == "certificate":
        return _certificate(document, threat)
    raise ValueError(f"kind {document['kind']!r}, expected 'certificate' or 'interval'")


def _certificate(document: Mapping[str, Any], threat: Threat) -> Certificate:
    count = len(document["radius"])

    def column(name: str, kind: type | None, missing: float = np.nan) -> Any:  # noqa: ANN401
        if name not in document:
            return None
        return _column(document[name], kind, count, missing)

    return Certificate(
        prediction=column("prediction", None),
        radius=column("radius", int),
        attack=column("attack", int),
        unbreakable=column("unbreakable", bool),
        threat=threat,
        method=str(document["method"]),
        lower=column("lower", float, -np.inf),
        upper=column("upper", float, np.inf),
        target=column("target", None),
        trusted_solver=column("trusted_solver", bool),
    )


def _interval(document: Mapping[str, Any], threat: Threat) -> Interval:
    count = len(document["prediction"])
    lower, upper, prediction = (
        _column(document[name], float, count, missing)
        for name, missing in (("lower", -np.inf), ("upper", np.inf), ("prediction", np.nan))
    )
    return Interval(lower, upper, prediction, int(document["budget"]), threat, str(document["method"]))


def _column(values: list[Any], kind: type | None, count: int, missing: float) -> Any:  # noqa: ANN401
    """One column of a certificate, of exactly the declared type: a radius of 3.7 or true is refused, not rounded."""
    if len(values) != count:
        raise ValueError(f"columns have {count} and {len(values)} entries")
    if kind in (int, bool) and any(type(value) is not kind for value in values):
        raise TypeError(f"a column of {kind} holds something else")
    filled = [missing if value is None else value for value in values]
    return np.asarray(filled, dtype={int: np.int64, bool: np.bool_, float: np.float64}.get(kind) if kind else None)
