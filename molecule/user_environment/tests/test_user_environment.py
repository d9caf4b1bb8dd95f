"""Login shells and jobs have the variables."""

import pytest

from molecule.conftest import On


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_login_shell_has_those_for_everywhere(on: On, machine: str, shell: str) -> None:
    show = "echo $WORK:$DATA:$TMPDIR"
    answer = on(machine, "su", "--login", f"--shell=/bin/{shell}", "--command", show, "alice")
    assert answer.stdout == "/work/alice:/work/alice/my data:\n"


def test_job_has_those_for_everywhere_and_its_own_win(on: On, machine: str) -> None:
    """As Slurm calls it: the tests of the role scratch have Slurm do it."""
    words = [
        "setpriv",
        "--reuid=alice",
        "--regid=alice",
        "--init-groups",
        "env",
        "USER=alice",
        "SLURM_JOB_ID=7",
    ]
    assert on(machine, *words, "/usr/local/lib/slurm-task-prolog").stdout.splitlines() == [
        "export WORK=/work/alice",
        "export DATA=/work/alice/my data",
        "export TMPDIR=/tmp/7",
        "export DATA=/tmp/7",
    ]
