"""The wheel carries its playbooks and roles, and finds them there."""

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.tracked import ROOT, tracked


def test_the_wheel_holds_every_file_of_playbooks_and_roles(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    kept = [path.relative_to(ROOT) for name in ("playbooks", "roles") for path in tracked(name)]
    assert kept
    assert {f"deploy/content/{path}" for path in kept} <= held
    assert "deploy/show/page.html.j2" in held
    found = subprocess.run(
        [sys.executable, "-P", "-c", "from deploy.content import playbook; print(playbook('cluster'))"],
        env={"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert found == str(tmp_path / "installed/deploy/content/playbooks/cluster.yml")
