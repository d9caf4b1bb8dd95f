"""What tells Slurm's daemons that their logs were put by, with each release's systemctl."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.roles.loading import ROOT

SYSTEMCTL = """\
#!/bin/sh
words=$(getopt --options '' --longoptions {option}:,signal: -- "$@") || exit 1
echo "$words" >> {calls}
"""


@pytest.mark.parametrize(
    ("file", "daemons"),
    [
        ("slurm_packages/files/logrotate", ["slurmctld", "slurmdbd", "slurmd"]),
        ("slurmd/templates/etc/logrotate.d/slurmd.j2", ["slurmd"]),
    ],
)
# systemd 249, as Ubuntu 22.04 has it, and from 252 on.
@pytest.mark.parametrize("option", ["kill-who", "kill-whom"])
def test_daemons_open_their_logs_anew(tmp_path: Path, file: str, daemons: list[str], option: str) -> None:
    calls, stand_in = tmp_path / "calls", tmp_path / "systemctl"
    calls.touch()
    stand_in.write_text(SYSTEMCTL.format(option=option, calls=calls))
    stand_in.chmod(0o755)
    scripts = re.findall(r"postrotate\n(.*?)endscript", (ROOT / "roles" / file).read_text(), re.DOTALL)
    for script in scripts:
        environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", script], env=environment, check=True)
    assert calls.read_text().splitlines() == [
        f" --{option} 'main' --signal 'USR2' -- 'kill' '{daemon}'" for daemon in daemons
    ]
