"""`deploy bootstrap` on machines as installers leave them: an account with a password, no key, no Python."""

import json
import os
import pty
import re
import secrets
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run

pytestmark = pytest.mark.more

PASSWORD = f'it\'s "{secrets.token_hex(6)}"'
AS_INSTALLED = """\
useradd --create-home --shell /bin/bash --groups sudo ubuntu
printf '%s\\n' "ubuntu:$PASSWORD" | chpasswd
printf 'PasswordAuthentication yes\\nKbdInteractiveAuthentication no\\n' > /etc/ssh/sshd_config.d/05-open.conf
systemctl restart ssh
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A lab whose inventory names an account that has a password alone; node1 has no Python."""
    with booted("bootstrap", tmp_path_factory, "--nodes", "1") as made:
        for host in ("ctl1", "login1", "node1"):
            made.on(host, "env", f"PASSWORD={PASSWORD}", "sh", "-c", AS_INSTALLED)
        made.on("node1", "apt-get", "purge", "-qq", "--yes", "python3-minimal", "libpython3-stdlib")
        key, known = made.directory / "key", made.directory / "known"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        text = made.inventory.read_text()
        text = re.sub(r"ansible_user=\S+", "ansible_user=ubuntu", text)
        text = re.sub(r"ansible_ssh_private_key_file=.*", f"ansible_ssh_private_key_file={key}", text)
        text = re.sub(r'UserKnownHostsFile="[^"]*"', f"UserKnownHostsFile={known}", text)
        made.inventory.write_text(text)
        yield made


def typed(cluster: Cluster, *options: str, answers: tuple[str, ...] = ()) -> tuple[int, str]:
    """The exit code and all that a terminal shows; each question is answered when it is there."""
    ours, its = pty.openpty()
    command = [*DEPLOY, "bootstrap", str(cluster.inventory), *options]
    # In a session of its own, passwords are asked for on this terminal.
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command], stdin=its, stdout=its, stderr=its, close_fds=True
    ) as process:
        os.close(its)
        said, left, ends = "", list(answers), time.monotonic() + 300
        while time.monotonic() < ends and select.select([ours], [], [], 300)[0]:
            try:
                said += os.read(ours, 4096).decode()
            except OSError:
                break
            if left and re.search(r"(password: |Type yes to go on: )$", said):
                os.write(ours, f"{left.pop(0)}\n".encode())
                said += "\n"
        code = process.wait(timeout=60)
    os.close(ours)
    return code, said


def test_nothing_is_changed_before_host_keys_are_confirmed(machines: Cluster) -> None:
    done = run(*DEPLOY, "bootstrap", str(machines.inventory), expect=3)
    assert "host-keys-not-confirmed" in done.stderr
    fingerprint = machines.on("node1", "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    assert fingerprint in done.stderr
    assert not (machines.directory / "known").exists()
    machines.on("node1", "test", "!", "-e", "/home/ubuntu/.ssh")


def test_a_wrong_password_lets_nobody_in(machines: Cluster) -> None:
    code, said = typed(machines, "-k", answers=("wrong", "yes"))
    assert code == 4, said
    assert said.count("Permission denied") == 3


def test_sudo_without_its_password_is_named(machines: Cluster) -> None:
    code, said = typed(machines, "-k", "--limit", "login1", answers=(PASSWORD,))
    assert code == 1, said
    assert "failed: sudo asks for a password: type -K" in said


def test_machines_become_ready_and_no_password_is_left(machines: Cluster) -> None:
    code, said = typed(machines, "-k", "-K", answers=(PASSWORD, PASSWORD))
    assert code == 0, said
    # The key is in the home that they share.
    assert re.search(r"node1 +ready: installed python3, let it become root", said), said
    assert re.search(r"login1 +ready: let it become root", said), said
    assert PASSWORD not in said
    rules = machines.on("node1", "sh", "-c", "cat /etc/sudoers.d/deploy-*")
    assert "NOPASSWD" in rules
    for path in Path("/dev/shm").glob("deploy-askpass-*"):
        assert not path.exists()


def test_a_second_time_nothing_changes(machines: Cluster) -> None:
    done = run(*DEPLOY, "bootstrap", str(machines.inventory), "--json")
    assert json.loads(done.stdout)["ready"] == {"ctl1": [], "login1": [], "node1": []}
    keys = machines.on("node1", "cat", "/home/ubuntu/.ssh/authorized_keys").splitlines()
    assert len(keys) == 1
    assert machines.on("node1", "stat", "-c", "%U %a", "/home/ubuntu/.ssh/authorized_keys") == "ubuntu 600\n"


def test_they_are_fit_for_a_cluster(machines: Cluster) -> None:
    assert machines.check()["findings"] == []
    machines.deploy()
