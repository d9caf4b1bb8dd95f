"""The wheel carries its playbooks and roles, and finds them there."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_every_file_of_playbooks_and_roles(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    tracked = subprocess.run(
        ["git", "ls-files", "playbooks", "roles"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert tracked
    assert {f"deploy/content/{name}" for name in tracked} <= held
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
