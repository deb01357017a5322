"""``poisonproof data`` lists, adds and refuses files as the library does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from poisonproof.cli.app import app
from poisonproof.datasets import sources

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, arguments)], catch_exceptions=False)


def test_list_says_what_is_at_hand(tmp_path: Path) -> None:
    (tmp_path / "life.csv").write_bytes(b"not life")
    result = run("list", "--data-dir", tmp_path, "--format", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["kind"], document["folder"]) == ("data", str(tmp_path))
    states = {each["name"]: each["file"] for each in document["datasets"]}
    assert list(states) == [each.name for each in sources()]
    assert states["diamonds"] == "part of the package"
    assert states["ames"] == "not here"
    assert states["life"] == "here, but changed or damaged"
    table = run("list", "--data-dir", tmp_path).stdout
    for part in ("15% of SalePrice", "3 of Life expectancy", "the same spam", "CC BY 4.0", str(tmp_path)):
        assert part in table


def test_add_checks_and_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POISONPROOF_DATA", str(tmp_path / "data"))
    given = tmp_path / "other.csv"
    given.write_bytes(b"a,b\n1,2\n")
    refused = run("add", "ames", given)
    assert refused.exit_code == 2
    assert refused.stderr.startswith("Error: ")
    assert refused.stderr.count("\n") == 1
    assert "is not the ames that is known" in refused.stderr
    added = run("add", "ames", given, "--unverified")
    assert (added.exit_code, added.stdout) == (0, f"ames is in {tmp_path / 'data' / 'ames.csv'}.\n")
    listed = json.loads(run("list", "--format", "json").stdout)["datasets"]
    assert listed[0]["file"] == str(tmp_path / "data" / "ames.csv")
    assert run("fetch", "ames").stdout == f"ames is in {tmp_path / 'data' / 'ames.csv'}, checked.\n"


def test_fetch_without_need_or_without_an_address(tmp_path: Path) -> None:
    assert "nothing to fetch" in run("fetch", "diamonds").stdout
    refused = run("fetch", "life", "--data-dir", tmp_path)
    assert refused.exit_code == 2
    assert "put it there as" in refused.stderr
    unknown = run("fetch", "iris")
    assert unknown.exit_code == 2
    assert "there is no data set 'iris'" in unknown.stderr


@pytest.mark.parametrize("command", [[], ["list"], ["fetch"], ["add"]])
def test_help(command: list[str]) -> None:
    assert run(*command, "--help").stdout.startswith("Usage: ")
