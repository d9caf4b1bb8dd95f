"""What is declared is mounted, now and by fstab, and goes when it is no longer declared."""

import time
from collections.abc import Iterator

import pytest

from molecule.conftest import MACHINES, Converge, On


def source(on: On, machine: str, path: str) -> str:
    return on(machine, "findmnt", "--noheadings", "--output=SOURCE", path, check=False).stdout.strip()


def test_what_is_written_is_in_the_storage_cluster(on: On, machine: str) -> None:
    on(machine, "sh", "-c", "echo hello > /mnt/data/file")
    assert on(machine, "cat", "/srv/data/file").stdout == "hello\n"
    on(machine, "rm", "/mnt/data/file")


def test_own_options_hold(on: On, machine: str) -> None:
    answer = on(machine, "touch", "/mnt/other/file", check=False)
    assert "Read-only file system" in answer.stderr


def test_fstab_mounts_the_same_at_boot(on: On, machine: str) -> None:
    on(machine, "umount", "/mnt/data")
    on(machine, "mount", "/mnt/data")
    assert source(on, machine, "/mnt/data").endswith(":/data")


def test_storage_that_was_away_at_boot_is_mounted_when_it_is_back(on: On, waiting: str) -> None:
    on(waiting, "gluster", "--mode=script", "volume", "stop", "data")
    on(waiting, "umount", "/mnt/data")
    assert "A dependency job" in on(waiting, "systemctl", "start", "waits", check=False).stderr
    on(waiting, "systemctl", "start", "stopped")
    on(waiting, "systemctl", "restart", "network-mounts")
    on(waiting, "systemctl", "stop", "stopped")
    assert (source(on, waiting, "/mnt/data"), state(on, waiting)) == ("", "inactive")
    on(waiting, "gluster", "--mode=script", "volume", "start", "data")
    deadline = time.monotonic() + 180
    while state(on, waiting) != "active" or state(on, waiting, "network-mounts", "SubState") != "exited":
        assert time.monotonic() < deadline, on(waiting, "journalctl", "-u", "network-mounts").stdout
        time.sleep(1)
    assert source(on, waiting, "/mnt/data").endswith(":/data")
    assert state(on, waiting, "stopped") == "inactive"


def state(on: On, machine: str, unit: str = "waits", what: str = "ActiveState") -> str:
    return on(machine, "systemctl", "show", f"--property={what}", "--value", unit).stdout.strip()


@pytest.fixture
def waiting(on: On, machine: str) -> Iterator[str]:
    """A machine with a service that needs a mount, as slurmd does, and with one that does not."""
    runs = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
    units = {"waits": f"[Unit]\nRequiresMountsFor=/mnt/data\n{runs}", "stopped": runs}
    for name, text in units.items():
        on(machine, "tee", f"/etc/systemd/system/{name}.service", data=text)
    on(machine, "systemctl", "daemon-reload")
    on(machine, "systemctl", "enable", *units)
    yield machine
    on(machine, "systemctl", "disable", "--now", *units)
    on(machine, "rm", *(f"/etc/systemd/system/{name}.service" for name in units))
    on(machine, "systemctl", "daemon-reload")


def test_keys_of_ceph_are_for_root(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%U %a", "/etc/ceph/cluster.secret").stdout == "root 600\n"
    assert on(machine, "cat", "/etc/ceph/cluster.secret").stdout == "QVFDa2V5Zm9yYXRlc3Q=\n"


def test_a_key_goes_with_its_user_and_those_of_others_stay(on: On, converge: Converge) -> None:
    for name in MACHINES:
        on(name, "tee", "/etc/ceph/others.secret", data="of somebody else\n")
    answer = converge(secrets={"cluster": "QVFDa2V5Zm9yYXRlc3Q="})
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        assert on(name, "ls", "/etc/ceph").stdout.split() == ["cluster.secret", "others.secret"]


def test_what_became_read_only_is_mounted_again(on: On, converge: Converge) -> None:
    for name in MACHINES:
        on(name, "mount", "--options", "remount,bind,ro", "/mnt/data")
        assert on(name, "touch", "/mnt/data/file", check=False).returncode != 0
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for name in MACHINES:
        on(name, "touch", "/mnt/data/file")
        on(name, "rm", "/mnt/data/file")


@pytest.fixture
def reader(on: On, converge: Converge) -> Iterator[None]:
    """A process on every machine that works in one of the mounted directories."""
    for name in MACHINES:
        on(name, "systemd-run", "--quiet", "--unit=reader", "--working-directory=/mnt/data", "sleep", "600")
    yield
    for name in MACHINES:
        on(name, "systemctl", "stop", "reader", check=False)
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.usefixtures("reader")
def test_what_is_no_longer_declared_goes_when_nobody_uses_it(on: On, converge: Converge) -> None:
    answer = converge(filesystems=[])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "left as it is until the next boot" in answer.stdout + answer.stderr
    for name in MACHINES:
        assert source(on, name, "/mnt/data").endswith(":/data")
        assert source(on, name, "/mnt/other") == ""
        assert "glusterfs" not in on(name, "cat", "/etc/fstab").stdout
