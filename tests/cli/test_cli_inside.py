"""The parts of the command line that no ordinary run reaches."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from poisonproof.cli import app as entrance
from poisonproof.cli import doctor, models
from poisonproof.cli.deployed import Deployed
from poisonproof.ensemble import CertifiedRegressor
from poisonproof.errors import ParameterError
from poisonproof.schema import Numeric, Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    Run = Callable[..., Result]

ROWS = ("certify", "plain.poisonproof", "rows.csv", "--within", 0.2)


@pytest.fixture
def certify(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], Result]:
    """Certify, and meet this exception on the way."""
    monkeypatch.chdir(folder)

    def meet(error: BaseException) -> Result:
        def failing(*_: object) -> None:
            raise error

        monkeypatch.setattr("poisonproof.cli.tables.read_table", failing)
        return run(*ROWS)

    return meet


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interrupts(certify: Callable[[BaseException], Result], error: BaseException) -> None:
    result = certify(error)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted.\n")


def test_closed_pipes(certify: Callable[[BaseException], Result], monkeypatch: pytest.MonkeyPatch) -> None:
    silenced = []
    monkeypatch.setattr(entrance, "_silence_stdout", lambda: silenced.append(True))
    result = certify(BrokenPipeError())
    assert (result.exit_code, result.stderr, silenced) == (141, "", [True])


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), MemoryError("cannot\n allocate"), MemoryError()]
)
def test_the_machines_limits_are_one_line(certify: Callable[[BaseException], Result], error: BaseException) -> None:
    result = certify(error)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_what_is_buffered_goes_nowhere_once_the_pipe_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "out").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        stream.write("buffered")
        entrance._silence_stdout()
        stream.flush()
        monkeypatch.undo()
    assert (tmp_path / "out").read_text() == ""


def test_the_commands_are_listed_in_order_and_all_exist() -> None:
    context = entrance.app.make_context("poisonproof", ["doctor"])
    names = entrance.app.list_commands(context)
    assert names[0] == "demo"
    for name in names:
        command = entrance.app.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.help


def test_main_is_the_entrance(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["poisonproof", "--help"])
    with pytest.raises(SystemExit) as exit_info:
        entrance.main()
    assert exit_info.value.code == 0
    assert "certify" in capsys.readouterr().out


def test_doctor_fails_where_something_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "_NEEDED", ("numpy", "no-such-package"))
    monkeypatch.setattr(doctor, "_EXTRAS", {"io": ("no_such_module",)})
    result = CliRunner().invoke(entrance.app, ["doctor", "--format", "json"])
    assert result.exit_code == 1
    findings = {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert findings["no-such-package"] == {
        "check": "no-such-package",
        "ok": False,
        "found": "not installed; run: pip install no-such-package",
    }
    assert findings["extra io"]["ok"] is None
    assert "pip install 'poisonproof[io]'" in findings["extra io"]["found"]
    shown = CliRunner().invoke(entrance.app, ["doctor"]).stdout
    assert "Something needed is not in order." in shown
    del tmp_path


def test_doctor_looks_for_a_place_to_keep_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    assert doctor._cache() == doctor.Finding("kernel cache", ok=True, found=f"{tmp_path / 'kernels'} is writable")

    # A file stands where each directory would have to be made.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    monkeypatch.setattr(doctor, "__file__", str(tmp_path / "file" / "cli" / "doctor.py"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "file")
    assert doctor._cache().ok is None


def test_models_without_submodels_take_the_settings_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = models.ModelKind("sklearn.linear_model:Lasso", takes=("alpha",), defaults={"tol": 0.5})
    monkeypatch.setitem(models.MODELS, "lasso", kind)
    made = models.unfitted("lasso", {"alpha": 3.0}, None, ["max_iter=7", "selection=random"])
    parameters: dict[str, Any] = made.get_params()
    assert (parameters["alpha"], parameters["tol"], parameters["max_iter"]) == (3.0, 0.5, 7)
    assert parameters["selection"] == "random"
    with pytest.raises(ParameterError, match="has no use for --key; it takes alpha"):
        models.unfitted("lasso", {"key": 1}, None, [])
    with pytest.raises(ParameterError, match="has no submodels; leave --estimator ridge out"):
        models.unfitted("lasso", {}, "ridge", [])


def test_every_learner_can_be_made() -> None:
    for name in models.ESTIMATORS:
        model = models.unfitted("ensemble", {}, name, [])
        assert isinstance(model, CertifiedRegressor)
        assert model.n_partitions == 151
        assert hasattr(model.estimator, "fit")


def test_a_deployed_model_needs_a_target() -> None:
    deployed = Deployed(CertifiedRegressor(), Schema([Numeric("a", 0, 1)]))
    with pytest.raises(TypeError, match="target"):
        deployed.certify(np.zeros((1, 1)), np.zeros(1), np.ones(1))


def test_tables_fit_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from poisonproof.cli.report import Report  # noqa: PLC0415  beside what it is for

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    report = Report({"name": ["a" * 30, "b"], "value": [1234.5, 0.5], "note": ["c" * 30, None]}, {}, title="Title")
    shown = report.render("table", all_rows=False)
    assert shown.startswith("Title\n")
    assert max(map(len, shown.splitlines())) <= 40
    assert max(map(len, report.render("table", all_rows=True).splitlines())) > 60


@pytest.mark.parametrize("kind", list(models.MODELS))
def test_every_kind_has_the_parameters_it_declares(kind: str) -> None:
    model = models.unfitted(kind, {}, None, [])
    assert {*models.MODELS[kind].takes, *models.MODELS[kind].defaults} <= set(model.get_params(deep=False))
