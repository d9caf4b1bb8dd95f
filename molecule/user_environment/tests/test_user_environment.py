"""Login shells and jobs have the variables."""

import pytest

from molecule.conftest import Converge, On


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


def test_a_session_of_a_job_has_them_too(on: On, machine: str) -> None:
    """As sshd has PAM set them; the tests of the role job_ssh log in."""
    lines = on(machine, "cat", "/etc/security/job-environment.conf").stdout.splitlines()
    assert lines[2:] == [
        'WORK DEFAULT="/work/@{PAM_USER}"',
        'DATA DEFAULT="${WORK}/my data"',
        'TMPDIR DEFAULT="/tmp/${SLURM_JOB_ID}"',
        'DATA DEFAULT="${TMPDIR}"',
    ]


def test_a_virtual_environment_is_made(on: On, machine: str) -> None:
    on(machine, "python3", "-m", "venv", "--clear", "/srv/environment")
    assert on(machine, "/srv/environment/bin/pip", "--version").stdout.startswith("pip ")


def test_a_locale_is_there_and_one_that_was_chosen_stays(on: On, machine: str, converge: Converge) -> None:
    show = ["cat", "/etc/default/locale"]
    assert on(machine, *show).stdout == "LANG=C.UTF-8\n"
    on(machine, "sh", "-c", "echo LANG=de_DE.UTF-8 > /etc/default/locale; chown nobody /etc/default/locale")
    assert converge(only=machine, tags="configure").returncode == 0
    assert on(machine, *show).stdout == "LANG=de_DE.UTF-8\n"
    assert on(machine, "stat", "--dereference", "--format=%U", "/etc/default/locale").stdout == "root\n"
    assert converge(only=machine, tags="configure", locale="C.UTF-8").returncode == 0
    assert on(machine, *show).stdout == "LANG=C.UTF-8\n"


def test_further_packages_are_there(on: On, machine: str) -> None:
    assert on(machine, "tree", "--version").stdout.startswith("tree v")
    assert on(machine, "make", "--version").stdout.startswith("GNU Make")
