"""Models survive a file bit by bit, and no damaged or foreign file becomes a model."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import Ridge

import poisonproof
from poisonproof import CertifiedRegressor, store
from poisonproof.certificate import Certificate, Interval
from poisonproof.errors import DataError, FileError, MissingExtraError, ParameterTypeError
from poisonproof.schema import Category, Numeric, Schema, Target
from poisonproof.store.models import _is_harmless
from poisonproof.threat import Threat

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("skops", reason="model files need the io extra")

rng = np.random.default_rng(0)
X = rng.uniform(size=(120, 3))
y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=120)


def fitted(**parameters: Any) -> CertifiedRegressor:
    return CertifiedRegressor(**{"n_partitions": 9, **parameters}).fit(X, y)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("store") / "model.poisonproof"
    store.save(fitted(key=7), path, data=store.data_digest(X, y))
    return path.read_bytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"estimator": Ridge(0.5), "key": 3, "threat": "relabel"},
        {"max_cost": 2, "threat": "delete"},
        {"n_partitions": 201},
        {"partition_by": "row", "empty_value": 2.0},
    ],
)
@pytest.mark.filterwarnings("ignore:.*submodels have no rows:UserWarning")
def test_a_loaded_model_is_the_saved_one(parameters: dict[str, Any], tmp_path: Path) -> None:
    model = fitted(**parameters)
    poisonproof.save(model, tmp_path / "model")
    loaded = poisonproof.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.votes(X), model.votes(X))
    before, after = (one.certify(X, y - 0.5, y + 0.5) for one in (model, loaded))
    np.testing.assert_array_equal(after.radius, before.radius)
    assert (after.threat, after.method) == (before.threat, before.method)
    np.testing.assert_array_equal(loaded.blocks(X, y), model.blocks(X, y))


def test_schema_and_manifest_travel_along(tmp_path: Path) -> None:
    schema = Schema([Numeric("a", 0, 1), Category("b", ["x", "y"])], Target("c", "log"))
    written = store.save(fitted(key=5), tmp_path / "m", schema=schema, notes={"why": ["test", 1]})
    found = store.open_model(tmp_path / "m")
    assert found.schema is not None
    assert found.schema.columns == schema.columns
    assert found.schema.target == schema.target
    assert found.manifest == written
    assert (written.model, written.threat, written.unit, written.key) == (
        "CertifiedRegressor",
        "insert+delete",
        "row",
        5,
    )
    assert written.notes == {"why": ["test", 1]}
    assert written.data is None
    assert {"python", "numpy", "scikit-learn", "poisonproof"} <= set(written.versions)


def test_the_manifest_can_be_read_by_eye(content: bytes) -> None:
    magic, _, head, _ = content.split(b"\n", 3)
    assert magic == b"poisonproof model 1"
    record = json.loads(head)
    assert record["key"] == 7
    assert (record["data"]["n_rows"], record["data"]["n_features"]) == (120, 3)


@given(st.data())
def test_any_changed_byte_is_noticed(
    content: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    # The head is where a change could be mistaken for another valid file, so half of the draws fall there.
    place = data.draw(st.one_of(st.integers(0, 600), st.integers(0, len(content) - 1)))
    changed = bytearray(content)
    changed[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "changed"
    path.write_bytes(changed)
    with pytest.raises(FileError):
        store.load(path)


@pytest.mark.parametrize("keep", [0, 5, 20, 90, 500, -1])
def test_a_cut_file_is_noticed(content: bytes, keep: int, tmp_path: Path) -> None:
    (tmp_path / "cut").write_bytes(content[:keep])
    with pytest.raises(FileError):
        store.load(tmp_path / "cut")


def resealed(content: bytes, change: Any) -> bytes:
    """The file with a changed manifest and a digest that fits it."""
    magic, _, head, payload = content.split(b"\n", 3)
    body = json.dumps(change(json.loads(head))).encode() + b"\n" + payload
    return magic + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def test_files_that_are_something_else(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m"
    with pytest.raises(FileError, match="cannot be read: No such file"):
        store.load(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="not a poisonproof model file"):
        store.load(path)
    path.write_bytes(content.replace(b"model 1\n", b"model 2\n", 1))
    with pytest.raises(FileError, match="has format 2; this release reads format 1"):
        store.load(path)
    for change in (
        lambda head: {"model": head["model"]},
        lambda head: [head],
        lambda head: head | {"versions": {"numpy": 2}},
        lambda head: head | {"more": 1},
    ):
        path.write_bytes(resealed(content, change))
        with pytest.raises(FileError, match="a manifest that cannot be read"):
            store.load(path)
    magic, _, head, payload = content.split(b"\n", 3)
    body = b"[" * 200_000 + b"\n" + payload
    path.write_bytes(magic + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.raises(FileError, match="a manifest that cannot be read"):
        store.load(path)
    body = head + b"\n" + payload[: len(payload) // 2]
    path.write_bytes(magic + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.raises(FileError, match="a payload that skops cannot read"):
        store.load(path)
    body = head + b"\n" + pytest.importorskip("skops.io").dumps({"nothing": 1})
    path.write_bytes(magic + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    with pytest.raises(FileError, match="cannot be built with the installed packages"):
        store.load(path)


def test_other_versions_are_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(resealed(content, lambda head: head | {"versions": head["versions"] | {"numpy": "1.0.3"}}))
    with pytest.warns(UserWarning, match=r"written with numpy 1\.0\.3 \(here"):
        store.load(path)


def doubled(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return 2 * rows[:, 0]


def test_types_that_are_not_known_to_be_harmless_are_asked_for(tmp_path: Path) -> None:
    sys_path_name = f"{doubled.__module__}.doubled"
    store.save(fitted(offset=doubled), tmp_path / "m")
    with pytest.raises(FileError, match=re.escape(sys_path_name)):
        store.load(tmp_path / "m")
    loaded = store.load(tmp_path / "m", trusted=[sys_path_name])
    np.testing.assert_array_equal(loaded.predict(X), fitted(offset=doubled).predict(X))


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("poisonproof.threat.Threat", True),
        ("poisonproof.ensemble.CertifiedRegressor", True),
        ("poisonproof.votes.Submodel.vote", True),
        ("poisonproof.store.models.Path", False),  # a class, but not ours
        ("poisonproof.store.models.save", False),  # ours, but no class
        ("poisonproof.nowhere.Thing", False),
        ("poisonproofed.Thing", False),
        ("posix.system", False),
    ],
)
def test_what_is_harmless(name: str, harmless: bool) -> None:
    assert _is_harmless(name) is harmless


def test_a_broken_installation_is_no_doubtful_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> None:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")

    monkeypatch.setattr("poisonproof.store.models.import_module", broken)
    with pytest.raises(MissingExtraError, match=r"poisonproof\.regions cannot be imported, .* broken; .*'numba'"):
        _is_harmless("poisonproof.regions.Thing")


def test_only_fitted_models_of_this_package_are_saved(tmp_path: Path) -> None:
    for model in (CertifiedRegressor(), Ridge()):
        with pytest.raises(ParameterTypeError, match="is not a fitted certified estimator"):
            store.save(model, tmp_path / "m")
    with pytest.raises(ParameterTypeError, match=r"<lambda> cannot be saved; define the function at the top level"):
        store.save(fitted(offset=lambda rows: rows[:, 0]), tmp_path / "m")
    model = fitted()
    model.buffer_ = io.BytesIO()
    with pytest.raises(ParameterTypeError, match="cannot be saved without pickle"):
        store.save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_without_skops_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'poisonproof\[io\]'"):
        store.save(fitted(), tmp_path / "m")


def test_data_digest_is_of_the_rows_not_of_their_order() -> None:
    digest = store.data_digest(X, y)
    order = rng.permutation(len(X))
    assert store.data_digest(X[order], y[order]) == digest
    assert store.data_digest(X, y[::-1]) != digest
    assert store.data_digest(X[1:], y[1:]) != digest
    assert store.data_digest(np.concatenate([X, X[:1]]), np.append(y, y[0])) != digest
    # The same numbers in another shape are other rows.
    assert store.data_digest(np.zeros((2, 1)), np.zeros(2)) != store.data_digest(np.zeros((1, 2)), np.zeros(1))
    with pytest.raises(DataError, match="one entry for each row"):
        store.data_digest(X, y[1:])


@pytest.mark.parametrize("kind", [str, object, np.bytes_])
def test_labels_have_a_digest_too(kind: type) -> None:
    labels: np.ndarray[Any, Any] = np.where(y > 0, "ham", "spam").astype(kind)
    digest = store.data_digest(X, labels)
    order = rng.permutation(len(X))
    assert store.data_digest(X[order], labels[order]) == digest
    assert store.data_digest(X, labels[::-1]) != digest
    ones: list[np.ndarray[Any, Any]] = [np.where(labels == labels[0], one, "spam").astype(kind) for one in ("1", "1.0")]
    assert store.data_digest(X, ones[0]) != store.data_digest(X, ones[1])
    with pytest.raises(DataError, match="one entry for each row"):
        store.data_digest(X, labels[:, None])


def test_numbers_have_the_digest_that_they_have_as_objects() -> None:
    assert store.data_digest(X, y.astype(object)) == store.data_digest(X, y)
    assert store.data_digest(X, y > 0) == store.data_digest(X, np.where(y > 0, 1.0, 0.0))


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_label_has_no_digest(missing: float | None) -> None:
    with pytest.raises(DataError, match="y contains a label that is missing"):
        store.data_digest(X[:2], np.array(["a", missing], dtype=object))


floats = st.floats(allow_nan=False, allow_infinity=False, width=64)
ends = st.one_of(floats, st.just(np.inf), st.just(-np.inf))


@given(hnp.arrays(np.float64, 4, elements=floats), st.lists(st.integers(-1, 2**40), min_size=4, max_size=4))
def test_certificates_survive_their_file(
    tmp_path_factory: pytest.TempPathFactory, prediction: np.ndarray[Any, Any], radii: list[int]
) -> None:
    radius = np.array(radii, dtype=np.int64)
    proof = Certificate(
        prediction=prediction,
        radius=radius,
        attack=radius + 3,
        unbreakable=radius > 5,
        threat=Threat.of("delete", "source"),
        method="unit cost",
        lower=np.full(4, -np.inf),
        upper=prediction,
    )
    path = tmp_path_factory.getbasetemp() / "proof.json"
    store.save_certificate(proof, path)
    found = store.load_certificate(path)
    assert isinstance(found, Certificate)
    assert found.trusted_solver is None
    assert found.target is None
    assert (found.threat, found.method) == (proof.threat, proof.method)
    for name in ("prediction", "radius", "attack", "unbreakable", "lower", "upper"):
        column = getattr(found, name)
        np.testing.assert_array_equal(column, getattr(proof, name))
        assert column.dtype == getattr(proof, name).dtype


def test_intervals_and_classes_survive_too(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    band = Interval(np.array([-np.inf, 0.1]), np.array([0.5, np.inf]), np.array([0.2, 0.3]), 4, Threat(), "unit cost")
    store.save_certificate(band, path)
    found = store.load_certificate(path)
    assert isinstance(found, Interval)
    for name in ("lower", "upper", "prediction"):
        np.testing.assert_array_equal(getattr(found, name), getattr(band, name))
    assert (found.budget, found.threat, found.method) == (4, Threat(), "unit cost")

    names = np.array(["ham", "spam"])
    one = np.array([1, 2], dtype=np.int64)
    proof = Certificate(names, one, one + 1, one > 5, Threat(), "plurality", target=names, trusted_solver=one > 1)
    store.save_certificate(proof, path)
    classes = store.load_certificate(path)
    assert isinstance(classes, Certificate)
    assert classes.target is not None
    assert classes.target.tolist() == ["ham", "spam"]
    assert classes.trusted_solver is not None
    assert classes.trusted_solver.tolist() == [False, True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"radius": [4]', '"radius": [4.7]'),
        ('"radius": [4]', '"radius": [true]'),
        ('"radius": [4]', '"radius": [5]'),
        ('"radius": [4]', '"radius": [4, 4]'),
        ('"radius": [4]', '"radius": 4'),
        ('"schema_version": 1', '"schema_version": 2'),
        ('"threat": "delete"', '"threat": "anything"'),
        ('"kind": "certificate"', '"kind": "promise"'),
        ('"unbreakable": [false]', '"unbreakable": ["no"]'),
        ('"method"', '"way"'),
        ("{", "["),
        ('"radius": [4]', f'"radius": [{10**30}]'),
        ("{", "[" * 200_000),
    ],
)
def test_certificates_that_are_none(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    proof = Certificate(np.zeros(1), np.array([4]), np.array([5]), np.array([False]), Threat("delete"), "unit cost")
    store.save_certificate(proof, path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(FileError, match="is not a certificate file"):
        store.load_certificate(path)


def test_intervals_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    store.save_certificate(Interval(np.zeros(1), np.ones(1), np.zeros(1), 4, Threat(), "unit cost"), path)
    path.write_text(path.read_text().replace('"budget": 4', '"budget": Infinity', 1))
    with pytest.raises(FileError, match="is not a certificate file"):
        store.load_certificate(path)


def test_a_write_that_is_interrupted_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    store.write_then_rename(path, b"old")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write_then_rename(path, b"new")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        store.write_then_rename(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    (tmp_path / "plain").write_bytes(b"")
    store.write_then_rename(path, b"1")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    path.chmod(0o600)
    store.write_then_rename(path, b"2")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileError, match="cannot be written: there is no folder"):
        store.write_then_rename(tmp_path / "nowhere" / "file", b"")


def test_what_is_no_ordinary_file_stays(tmp_path: Path) -> None:
    for path in (tmp_path, os.devnull):
        with pytest.raises(FileError, match="it exists and is no ordinary file"):
            store.write_then_rename(path, b"")
    assert not os.path.isfile(os.devnull)  # noqa: PTH113  the device is still there


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    store.write_then_rename(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
