"""Models as files, through skops: built only of types that are known to be harmless, or that the caller trusts."""

from __future__ import annotations

import hashlib
import platform
import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED

from poisonproof.errors import FileError, MissingExtraError, ParameterTypeError
from poisonproof.store.files import first_line, write_then_rename
from poisonproof.store.manifest import Manifest, sealed, unsealed
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType

    from poisonproof.schema import Schema
    from poisonproof.store.manifest import DataDigest

__all__ = ["StoredModel", "load", "open_model", "save", "types_to_trust"]

_HARMLESS: Final = frozenset({"scipy.sparse._csr.csr_array", "poisonproof.votes.Submodel.vote"})
_COMPRESSION: Final = 6


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model from a file, and what came with it.

    Parameters
    ----------
    model : fitted estimator
        One of the package's estimators.
    schema : Schema or None
        The encoding of the tables it was trained on, where the writer gave one.
    manifest : Manifest
        What the file says about the model.
    """

    model: Any
    schema: Schema | None
    manifest: Manifest


def save(
    model: Any,  # noqa: ANN401  any of the package's fitted estimators
    path: str | Path,
    *,
    schema: Schema | None = None,
    data: DataDigest | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Manifest:
    """Write a fitted model to one file, whole or not at all, and return what the file says about it.

    Parameters
    ----------
    model : fitted estimator
        Any of the package's estimators.
    path : str or Path
        Where to; an existing file is replaced.
    schema : Schema, optional
        The encoding of the tables the model was trained on.
    data : DataDigest, optional
        What :func:`data_digest` gives for the training rows.
    notes : mapping, optional
        JSON values to store beside the model.
    """
    threat = getattr(model, "threat_", None)
    if not isinstance(threat, Threat):
        raise ParameterTypeError(
            f"{type(model).__name__} is not a fitted certified estimator; "
            "fit one of poisonproof's estimators before saving it"
        )
    payload = _dumped(model, schema)
    name, moves, unit, key = _claims(model)
    manifest = Manifest(
        model=name,
        threat=moves,
        unit=unit,
        key=key,
        versions=_versions(),
        payload_sha256=hashlib.sha256(payload).hexdigest(),
        data=data,
        notes=dict(notes or {}),
    )
    write_then_rename(path, sealed(manifest, payload))
    return manifest


def load(path: str | Path, trusted: Iterable[str] = ()) -> Any:  # noqa: ANN401  any of the package's estimators
    """The model in a file; nothing is built that is neither known to be harmless nor ``trusted``.

    Parameters
    ----------
    path : str or Path
        A file that :func:`save` wrote.
    trusted : iterable of str
        Full names of the further types to build; an error lists those the file needs.

    Raises
    ------
    FileError
        The file is missing, damaged, changed, of a later format, or needs types that are not trusted.
    """
    return open_model(path, trusted).model


def open_model(path: str | Path, trusted: Iterable[str] = ()) -> StoredModel:
    """The model in a file together with its manifest; see :func:`load`."""
    manifest, payload = unsealed(Path(path))
    io = _skops()
    needed = _untrusted(io, path, payload)
    if missing := sorted(_doubtful(needed) - set(trusted)):
        raise FileError(
            f"{path} would build {', '.join(missing)}, which is not known to be harmless; "
            "if you trust whoever wrote the file, allow these types with trusted= (or --trust)"
        )
    _warn_of_versions(path, manifest.versions)
    try:
        content = io.loads(payload, trusted=sorted(needed))
        stored = StoredModel(content["model"], content["schema"], manifest)
        said, found = (manifest.model, manifest.threat, manifest.unit, manifest.key), _claims(stored.model)
    except Exception as error:  # whatever goes wrong while building, the file cannot be used
        raise FileError(f"{path} cannot be built with the installed packages: {first_line(error)}") from error
    if said != found:
        # Sound because a radius must not be read under another threat than the one it was proved for.
        raise FileError(f"{path} says that it holds {said} and holds {found}; get the original, or fit again")
    return stored


def types_to_trust(path: str | Path) -> list[str]:
    """The types that :func:`load` builds from a file only if they are trusted."""
    return sorted(_doubtful(_untrusted(_skops(), path, unsealed(Path(path))[1])))


def _claims(model: Any) -> tuple[str, str, str, int]:  # noqa: ANN401  any of the package's fitted estimators
    """What a manifest repeats of a model: its class, its threat, what that counts, and its key."""
    return type(model).__name__, model.threat_.moves, model.threat_.unit, int(getattr(model, "key", 0))


def _dumped(model: Any, schema: Schema | None) -> bytes:  # noqa: ANN401
    io = _skops()
    content = {"model": model, "schema": schema}
    try:
        payload = bytes(io.dumps(content, compression=ZIP_DEFLATED, compresslevel=_COMPRESSION))
        # Whoever loads the file must find functions by their names, and <lambda> is none.
        nameless = [name for name in io.get_untrusted_types(data=payload) if "<" in name]
    except Exception as error:  # whatever skops meets, the model cannot be saved by it
        raise ParameterTypeError(
            f"{type(model).__name__} cannot be saved without pickle: {first_line(error)}; "
            "use an estimator that skops supports"
        ) from error
    if nameless:
        raise ParameterTypeError(f"{nameless[0]} cannot be saved; define the function at the top level of a module")
    return payload


def _untrusted(io: ModuleType, path: str | Path, payload: bytes) -> set[str]:
    try:
        return set(io.get_untrusted_types(data=payload))
    except Exception as error:  # a payload from elsewhere may break the reader in any way
        raise FileError(f"{path} has a payload that skops cannot read: {first_line(error)}") from error


def _doubtful(needed: set[str]) -> set[str]:
    return {name for name in needed if not _is_harmless(name)}


def _is_harmless(name: str) -> bool:
    """Whether the name is one of this package's own classes, or of the few others its models always hold."""
    if name in _HARMLESS:
        return True
    module, _, attribute = name.rpartition(".")
    if not module.startswith("poisonproof."):
        return False
    # Functions are left out: a class only becomes an object, a function would be called.
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            return False  # there is no such module
        text = f"{module} cannot be imported, so this installation is broken; install poisonproof and its needs again"
        raise MissingExtraError(f"{text} ({first_line(error)})") from error
    # What a module merely imported may be somebody else's class, whatever name it is reached by.
    return isinstance(found, type) and found.__module__.startswith("poisonproof.")


def _versions() -> dict[str, str]:
    packages = ("poisonproof", "numpy", "scipy", "scikit-learn", "skops")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}


def _warn_of_versions(path: str | Path, written: Mapping[str, str]) -> None:
    here = _versions()
    differing = [
        f"{name} {then} (here {here[name]})"
        for name, then in written.items()
        if name in here and then.split(".")[:2] != here[name].split(".")[:2]
    ]
    if differing:
        text = (
            f"{path} was written with {', '.join(differing)}: its votes may differ from those it was made with; "
            "fit again where the same votes matter"
        )
        warnings.warn(text, UserWarning, stacklevel=3)


def _skops() -> ModuleType:
    try:
        return import_module("skops.io")
    except ImportError:
        raise MissingExtraError("model files need skops; run: pip install 'poisonproof[io]'") from None
