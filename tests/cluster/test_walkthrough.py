"""docs/walkthrough.md: every command in it, as it stands, in an empty directory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.more

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT_CODE = re.compile(r"# exit code (\d+)$")
_LAB = "walk"


def _commands() -> list[str]:
    text = (ROOT / "docs" / "walkthrough.md").read_text(encoding="utf-8")
    return [line for block in _BLOCK.findall(text) for line in block.splitlines()]


def _run(command: str, directory: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    expected = _EXIT_CODE.search(command)
    said = f"{command}\n-> {answer.returncode}\n{answer.stdout[-4000:]}\n{answer.stderr[-2000:]}"
    assert answer.returncode == int(expected[1] if expected else 0), said
    return answer.stdout


def test_every_command_of_the_walkthrough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The labs of a test have their own names, so that several can run at once.
    lab = f"test-{_LAB}-{os.getpid()}"
    monkeypatch.chdir(tmp_path)
    said: dict[str, str] = {}
    try:
        for command in _commands():
            said[command] = said.get(command, "") + _run(
                command.replace(f"--name {_LAB}", f"--name {lab}"), tmp_path
            )
    finally:
        if (
            f"name={lab}"
            in subprocess.run(
                ["podman", "ps", "--all", "--format", 'name={{index .Labels "deploy.lab"}}'],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
        ):
            _run(f"deploy lab down --name {lab} --delete-dir", tmp_path)
    together = "\n".join(said.values())
    assert len(set(re.findall(r"GPU-simulated-(node\d)-0", together))) == 2
    assert "plan: nothing to change" in together
    assert "batch* 2-00:00:00" in together
    assert "impact: reconfigure slurmctld" in together
    assert list(tmp_path.iterdir()) == []
