import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli import app
from deploy.cli.displays import Output, choose_display
from deploy.engine.options import Options
from deploy.show.live import LiveDisplay


def deploy(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deploy", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
    )


def test_version() -> None:
    assert deploy("--version").stdout.startswith("deploy 0.")


@pytest.mark.parametrize("verb", [[], ["cluster"], ["report"], ["demo"], ["lab"], ["lab", "up"]])
def test_every_verb_has_help(verb: list[str]) -> None:
    result = deploy(*verb, "--help")
    assert result.returncode == 0
    assert "Usage: deploy" in result.stdout


def test_a_missing_inventory_is_bad_input(tmp_path: Path) -> None:
    result = deploy("cluster", str(tmp_path / "none.ini"))
    assert result.returncode == 2
    assert result.stderr.startswith(f"deploy: {tmp_path}/none.ini: no such inventory [inventory-not-found]")
    assert "Traceback" not in result.stderr


def test_an_internal_error_is_kept_in_a_file_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def break_down(prog_name: str) -> None:
        message = f"a fault of {prog_name}"
        raise ValueError(message)

    monkeypatch.setattr(app, "app", break_down)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        app.main()
    assert end.value.code == 70
    said = capsys.readouterr().err
    assert "internal-error" in said
    assert "Traceback" not in said
    assert "a fault" in next(tmp_path.glob("deploy-error-*.txt")).read_text()


@pytest.mark.parametrize(("option", "without"), [([], False), (["--no-color"], True)])
def test_no_color_reaches_the_live_view(
    monkeypatch: pytest.MonkeyPatch, option: list[str], *, without: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert CliRunner().invoke(app.app, [*option, "schema"]).exit_code == 0
    display = choose_display(Output.LIVE, Options())
    assert isinstance(display, LiveDisplay)
    assert display._console.no_color is without
