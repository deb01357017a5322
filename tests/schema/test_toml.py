"""A declaration survives its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poisonproof.errors import FileError, SchemaError
from poisonproof.schema import Category, Column, Numeric, Ordinal, Schema, Target
from poisonproof.schema.cells import label_text

if TYPE_CHECKING:
    from pathlib import Path

SMALL = Schema([Numeric("x", 0, 1), Category("kind", ["a", "b"])])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
FINITE = st.floats(-1e9, 1e9)
EXACT = 2**53 - 1
WORDS = TEXT.filter(lambda text: text.lower() not in {"true", "false"})
LABEL = st.one_of(WORDS, st.integers(-EXACT, EXACT), st.booleans(), st.floats(-EXACT, EXACT))


def distinct_texts(label: str | float) -> tuple[str, ...]:
    return label_text(label).upper(), label_text(label).lower()


LABELS = st.lists(LABEL, min_size=2, max_size=5, unique_by=lambda label: distinct_texts(label)[0])


@st.composite
def columns(draw: st.DrawFn) -> Column:
    name, weight, kind = draw(TEXT), draw(st.floats(1e-3, 1e3)), draw(st.sampled_from([Numeric, Category, Ordinal]))
    rest: dict[str, Any] = {"weight": weight}
    if kind is Numeric:
        low, high = sorted(draw(st.lists(FINITE, min_size=2, max_size=2, unique_by=round)))
        rest["transform"] = draw(st.sampled_from([None, "log", "log1p"])) if low > 0 and high - low > 1 else None
        rest["fill"] = draw(st.one_of(st.none(), st.floats(low, high)))
        rest["indicator"] = rest["fill"] is not None and draw(st.booleans())
        return Numeric(name, low, high, scale=draw(st.booleans()), **rest)
    labels = draw(LABELS)
    rest["fill"] = draw(st.one_of(st.none(), st.sampled_from(labels)))
    rest["unknown"] = draw(st.sampled_from(["error", "missing"]))
    rest["indicator"] = rest["fill"] is not None and draw(st.booleans())
    if kind is Ordinal:
        return Ordinal(name, labels, **rest)
    changes: list[dict[str, Any]] = [{}, {"unknown": "zero"}, {"indicator": True}]
    return Category(name, labels, **(rest | draw(st.sampled_from(changes))))


def exactly(column: Column) -> str:
    return repr(column)  # unlike ==, it tells 1 from True and 0.0 from -0.0


@given(
    st.lists(columns(), min_size=1, max_size=4, unique_by=lambda column: column.name),
    st.one_of(st.none(), st.builds(Target, st.just("the target"), st.sampled_from([None, "log"]))),
)
def test_a_file_gives_back_what_was_declared(
    tmp_path_factory: pytest.TempPathFactory, declared: list[Column], target: Target
) -> None:
    file = tmp_path_factory.getbasetemp() / "schema.toml"
    try:
        Schema(declared, target).to_toml(file)
    except SchemaError as error:
        assert "declared twice" in str(error)  # noqa: PT017  drawn names may make the same feature
        return
    read = Schema.from_toml(file)
    assert [exactly(column) for column in read.columns] == [exactly(column) for column in declared]
    assert read.target == target
    Schema(read.columns, read.target).to_toml(file.with_suffix(".again"))
    assert file.read_bytes() == file.with_suffix(".again").read_bytes()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "schema.toml"
    SMALL.to_toml(str(file))
    before = file.read_bytes()
    with pytest.raises(SchemaError, match="no character of Unicode text"):
        Schema([Category("c", ["\ud800"])]).to_toml(file)
    with pytest.raises(SchemaError, match="declares no columns"):
        Schema([]).to_toml(file)
    assert file.read_bytes() == before
    with pytest.raises(FileError, match="cannot be written"):
        SMALL.to_toml(tmp_path / "nowhere" / "schema.toml")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        SMALL.to_toml(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "schema.toml"]


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (b"columns = [", FileError, "is not TOML"),
        (b"\xff", FileError, "is not TOML"),
        (b"columns = 3", SchemaError, r"begin each column with \[\[columns\]\]"),
        (b"columns = [3]", SchemaError, r"begin each column with \[\[columns\]\]"),
        (b"", SchemaError, "schema.toml': the schema declares no columns"),
        (b"colums = []", SchemaError, r"the file has the unknown key 'colums'; did you mean 'columns'\?"),
        (b"target = 'y'", SchemaError, r"write \[target\]"),
        (b"[target]\nnom = 'y'\nx = 1", SchemaError, "target has the unknown key 'nom'"),
        (b"[target]\n", SchemaError, "target has no name"),
        (b"[[columns]]\nname = 'x'", SchemaError, "column 'x': kind=None must be one of 'numeric'"),
        (b"[[columns]]\nname = 'x'\nkind = []", SchemaError, "must be one of"),
        (b"[[columns]]\nkind = 'numeric'\nname = 'x'\nlow = 1", SchemaError, "column 'x' has no high"),
        (
            b"[[columns]]\nkind = 'numeric'\nname = 'x'\nzz = 1",
            SchemaError,
            "unknown key 'zz'; known are 'name', 'low'",
        ),
        (
            b"[[columns]]\nkind = 'category'\nname = 'x'\ncategories = [1979-05-27]",
            SchemaError,
            "must be text, a finite",
        ),
        (
            b"[[columns]]\nkind = 'numeric'\nname = 'x'\nlow = 0\nhigh = inf",
            SchemaError,
            "schema.toml': column 'x': high=inf",
        ),
    ],
)
def test_files_that_cannot_be_used_say_why(tmp_path: Path, text: bytes, error: type[Exception], said: str) -> None:
    file = tmp_path / "schema.toml"
    file.write_bytes(text)
    with pytest.raises(error, match=said):
        Schema.from_toml(file)


def test_an_absent_file_is_said_to_be_absent(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: No such file"):
        Schema.from_toml(tmp_path / "schema.toml")
