"""A first job on a new lab, typed by one of its users on the login node."""

import subprocess
import time

from deploy.errors import ExitCode, error
from deploy.lab.enter import exec_command
from deploy.lab.state import need_lab

USER = "alice"
_LOGIN = "login1"
_SECONDS_FOR_ACCOUNTING = 30.0


def type_command(lab: str, *command: str) -> None:
    """Types a command, whose output is the terminal's. Raises DeployError ``demo-command-failed``."""
    if _on_login(lab, *command, capture=False).returncode != 0:
        raise error(
            "demo-command-failed",
            f"{command[0]} failed on the new cluster",
            where=_LOGIN,
            hint=f"look inside: deploy lab exec --name {lab} ctl1 -- journalctl -u slurmctld",
            exit_code=ExitCode.FAILED,
        )


def wait_for_row(lab: str, job: str) -> None:
    """Waits until the accounting has the job's end, which slurmctld sends some seconds later.

    Raises DeployError ``demo-no-accounting``.
    """
    deadline = time.monotonic() + _SECONDS_FOR_ACCOUNTING
    command = ("sacct", "--allocations", "--noheader", f"--name={job}", "--format=State")
    while "COMPLETED" not in _on_login(lab, *command, capture=True).stdout:
        if time.monotonic() > deadline:
            raise error(
                "demo-no-accounting",
                f"after {_SECONDS_FOR_ACCOUNTING:.0f} s sacct does not know the end of the job {job}",
                where=_LOGIN,
                hint=f"look inside: deploy lab exec --name {lab} ctl1 -- journalctl -u slurmdbd",
                exit_code=ExitCode.FAILED,
            )
        time.sleep(0.5)


def _on_login(lab: str, *command: str, capture: bool) -> subprocess.CompletedProcess[str]:
    call = exec_command(need_lab(lab), _LOGIN, command, user=USER, terminal=False)
    return subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=capture, text=True, check=False)
