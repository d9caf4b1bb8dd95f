"""A user cannot take the login node from others: who wants too much loses that process, and only that."""

from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On

KILLED = 128 + 9
HOG = "python3 -c 'print(len(bytearray({megabytes} << 20)))'"
MANY = 'python3 -c \'import subprocess; [subprocess.Popen(["sleep", "2"]) for _ in range(60)]; print("all")\''


NOT_MOVED = 97
_ATTEMPTS = 20


def login(on: On, machine: str, user: str, command: str) -> CompletedProcess[str]:
    """A session that systemd moved to its control group, begun from a unit, as sshd begins them.

    What comes from outside of the container systemd sometimes cannot move ("Couldn't move process"), and
    leaves without limits.
    """
    guarded = f"grep -q user.slice/user- /proc/self/cgroup || exit {NOT_MOVED}; {command}"
    for _ in range(_ATTEMPTS):
        unit = ("systemd-run", "--quiet", "--pipe", "--wait", "--collect")
        answer = on(machine, *unit, "su", "--login", user, "--command", guarded, check=False)
        if answer.returncode != NOT_MOVED:
            return answer
    pytest.fail(f"{machine}: no session of {user} came to its control group: {_complaints(on, machine)}")


def begin(on: On, machine: str, unit: str, user: str, command: str) -> None:
    """The same in the background, as a unit."""
    session = ("su", "--login", user, "--command", command)
    for _ in range(_ATTEMPTS):
        on(machine, "systemd-run", f"--unit={unit}", "--property=Type=exec", *session)
        for _ in range(_ATTEMPTS):
            pid = on(machine, "systemctl", "show", unit, "--property=MainPID", "--value").stdout.strip()
            groups = on(machine, "cat", f"/proc/{pid}/cgroup", check=False).stdout
            if "user.slice/user-" in groups:
                return
        end(on, machine, unit)
    pytest.fail(f"{machine}: no session of {user} came to its control group: {_complaints(on, machine)}")


def end(on: On, machine: str, unit: str) -> None:
    on(machine, "systemctl", "stop", unit, check=False)
    on(machine, "systemctl", "reset-failed", unit, check=False)


def _complaints(on: On, machine: str) -> str:
    return on(machine, "sh", "-c", "journalctl --no-pager | grep session- | tail", check=False).stdout


def test_a_hog_is_stopped_and_others_go_on(on: On, machine: str) -> None:
    begin(on, machine, "other", "bob", "sleep 99")
    answer = login(on, machine, "alice", f"{HOG.format(megabytes=400)}; echo ended with $?")
    assert answer.stdout == f"ended with {KILLED}\n"
    assert on(machine, "systemctl", "is-active", "other").stdout == "active\n"
    end(on, machine, "other")


def test_ordinary_work_is_possible(on: On, machine: str) -> None:
    assert login(on, machine, "alice", HOG.format(megabytes=100)).stdout == f"{100 << 20}\n"


def test_two_sessions_count_together(on: On, machine: str) -> None:
    hold = "python3 -c 'import time; x = bytearray(120 << 20); time.sleep(60)'"
    begin(on, machine, "first", "bob", hold)
    answer = login(on, machine, "bob", f"sleep 2; {HOG.format(megabytes=120)}")
    first = on(machine, "systemctl", "is-active", "first", check=False).stdout
    end(on, machine, "first")
    assert (answer.returncode == 0, first == "active\n") in {(True, False), (False, True)}


def test_processes_are_limited(on: On, machine: str) -> None:
    answer = login(on, machine, "alice", MANY)
    assert "all" not in answer.stdout
    assert "Resource temporarily unavailable" in answer.stderr


@pytest.mark.parametrize("user", ["admin", "root"])
def test_admins_have_no_limits(on: On, machine: str, user: str) -> None:
    assert login(on, machine, user, HOG.format(megabytes=400)).stdout == f"{400 << 20}\n"
    assert "all" in login(on, machine, user, MANY).stdout


def test_who_was_logged_in_before_is_limited_too(on: On, machine: str) -> None:
    limit = "/sys/fs/cgroup/memory/user.slice/user-2003.slice/memory.limit_in_bytes"
    unified = "/sys/fs/cgroup/user.slice/user-2003.slice/memory.max"
    answer = on(machine, "sh", "-c", f"cat {limit} 2>/dev/null || cat {unified}")
    assert answer.stdout == f"{192 << 20}\n"
    assert on(machine, "systemctl", "is-active", "early").stdout == "active\n"


def test_who_is_exempt_no_more_is_limited(on: On, converge: Converge) -> None:
    answer = converge(exempt=["nobody-of-this-name"])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine in MACHINES:
        killed = login(on, machine, "admin", f"{HOG.format(megabytes=400)}; echo ended with $?")
        assert killed.stdout == f"ended with {KILLED}\n"
        assert login(on, machine, "root", HOG.format(megabytes=400)).stdout == f"{400 << 20}\n"
    assert converge().returncode == 0
    for machine in MACHINES:
        assert login(on, machine, "admin", HOG.format(megabytes=400)).stdout == f"{400 << 20}\n"
