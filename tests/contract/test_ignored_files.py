"""What git ignores is no part of the project: nothing that a demo, a lab or a run leaves is looked at."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tracked import ROOT, copy_tracked

_SETTINGS = (".gitignore", ".yamllint", ".ansible-lint", "pyproject.toml")
_SPOILED = {".yml": "a:    [ 1,2 \n", ".py": "import os,\n"}


def _commands() -> list[str]:
    """What ``make lint`` types; import-linter reads what Python imports, wherever it starts."""
    command = ["make", "--dry-run", "--no-print-directory", "--assume-old=.venv/installed", "lint"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in answer.stdout.splitlines() if line.startswith(".venv/bin/")]
    return [line for line in lines if "lint-imports" not in line]


COMMANDS = _commands()


def _ignored() -> list[str]:
    """A path that each line of .gitignore speaks of; one in the top directory, where it may be anywhere."""
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    patterns = [line.strip("/") for line in lines if line and not line.startswith("#")]
    return [pattern.replace("**", "some/site").replace("*", "some") for pattern in patterns]


def _spoil(place: Path) -> None:
    if place.suffix in _SPOILED:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(_SPOILED[place.suffix])
        return
    place.mkdir(parents=True)
    for suffix, text in _SPOILED.items():
        (place / f"spoiled{suffix}").write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with these settings, this way of linting and hardly anything to lint."""
    for name in _SETTINGS:
        shutil.copyfile(ROOT / name, tmp_path / name)
    copy_tracked("tests/one_ansible", tmp_path / "tests/one_ansible")
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "__init__.py").write_text('"""Nothing."""\n')
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def _run(command: str, project: Path) -> subprocess.CompletedProcess[str]:
    own = {"PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    return subprocess.run(
        command.split(), cwd=project, env={**os.environ, **own}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_lint_does_not_read_what_git_ignores(command: str, project: Path) -> None:
    for name in _ignored():
        if name != ".venv":
            _spoil(project / name)
    answer = _run(command, project)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_lint_reads_what_git_keeps(command: str, project: Path) -> None:
    for name in ("deploy/kept", "roles"):
        _spoil(project / name)
    assert _run(command, project).returncode != 0
