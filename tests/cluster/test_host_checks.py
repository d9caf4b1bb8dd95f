"""Everything that a check looks for on machines is broken there for real, one thing after the other.

The machines are fresh; each test fixes what it broke.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.errors import ExitCode
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run

Break = Callable[[Cluster], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Machines on which nothing is ever deployed."""
    with booted("check", tmp_path_factory, "--nodes", "2", "--gpus", "2") as made:
        yield made


@contextmanager
def wrong_host_key(cluster: Cluster) -> Iterator[None]:
    """node2 shows a key that is not the known one."""
    keys = cluster.directory / ".lab" / "known_hosts"
    good = keys.read_text()
    address = address_of(cluster, "node2")
    other = next(line.split(" ", 1)[1] for line in good.splitlines() if not line.startswith(f"{address} "))
    lines = [f"{address} {other}" if line.startswith(f"{address} ") else line for line in good.splitlines()]
    keys.write_text("\n".join(lines) + "\n")
    try:
        yield
    finally:
        keys.write_text(good)


@contextmanager
def no_sudo(cluster: Cluster) -> Iterator[None]:
    """The admin may no longer use sudo without a password on node1."""
    with moved(cluster, "node1", "/etc/sudoers.d/admin"):
        yield


@contextmanager
def clock_ahead(cluster: Cluster) -> Iterator[None]:
    """node1 says that it is three quarters of a minute later than it is.

    Containers share the kernel's clock and cannot set it. So the Python there that Ansible uses is told
    another time; all that measures and judges is as ever.
    """
    fast = "import time; real = time.time; time.time = lambda: real() + 45.3"
    start = '#!/bin/sh\nPYTHONPATH=/opt/fast exec /usr/bin/python3 "$@"'
    script = (
        f"mkdir -p /opt/fast; echo '{fast}' > /opt/fast/sitecustomize.py; echo '{start}' > /opt/fast/python"
    )
    cluster.on("node1", "sh", "-c", f"{script}; chmod 755 /opt/fast/python")
    text = cluster.inventory.read_text()
    cluster.inventory.write_text(
        re.sub(
            "^(node1 .*)$",
            r"\1 ansible_python_interpreter=/opt/fast/python",
            text,
            count=1,
            flags=re.MULTILINE,
        )
    )
    try:
        yield
    finally:
        cluster.inventory.write_text(text)
        cluster.on("node1", "rm", "-r", "/opt/fast")


@contextmanager
def full_disk(cluster: Cluster) -> Iterator[None]:
    """The file system of slurmd's spool directory is full."""
    spool = "/var/spool/slurmd"
    cluster.on("node1", "sh", "-c", f"mkdir {spool} && mount -t tmpfs -o size=8m none {spool}")
    cluster.on("node1", "dd", "if=/dev/zero", f"of={spool}/much", "bs=1M", expect=1)
    try:
        yield
    finally:
        cluster.on("node1", "sh", "-c", f"umount {spool} && rmdir {spool}")


@contextmanager
def taken_port(cluster: Cluster) -> Iterator[None]:
    """Another program listens where slurmctld should."""
    server = ("systemd-run", "--quiet", "--unit", "squatter", "python3", "-m", "http.server", "6817")
    cluster.on("ctl1", *server)
    cluster.on("ctl1", "sh", "-c", "until ss -tlnH 'sport = :6817' | grep -q .; do sleep 0.1; done")
    try:
        yield
    finally:
        cluster.on("ctl1", "systemctl", "stop", "squatter")


@contextmanager
def other_address(cluster: Cluster) -> Iterator[None]:
    """login1 was told another address for node2."""
    cluster.on("login1", "sh", "-c", "cp /etc/hosts /root/hosts; echo '10.9.9.9 node2' >> /etc/hosts")
    try:
        yield
    finally:
        # In place: what podman mounted there cannot be replaced.
        cluster.on("login1", "sh", "-c", "cat /root/hosts > /etc/hosts")


@contextmanager
def missing_gpu(cluster: Cluster) -> Iterator[None]:
    """One of node2's two GPUs is gone."""
    with moved(cluster, "node2", "/dev/nvidia1"):
        yield


@contextmanager
def wrong_system(cluster: Cluster) -> Iterator[None]:
    """login1 runs a Debian that is too old."""
    change = "s/13/11/g; s/trixie/bullseye/g"
    cluster.on("login1", "sh", "-c", "cp /usr/lib/os-release /etc/debian_version /root/")
    cluster.on("login1", "sed", "-i", change, "/usr/lib/os-release", "/etc/debian_version")
    try:
        yield
    finally:
        cluster.on("login1", "cp", "/root/os-release", "/usr/lib/os-release")
        cluster.on("login1", "cp", "/root/debian_version", "/etc/debian_version")


@contextmanager
def other_slurm(cluster: Cluster) -> Iterator[None]:
    """Somebody built and installed a slurmd on node1."""
    cluster.on("node1", "cp", "/bin/true", "/usr/local/sbin/slurmd")
    try:
        yield
    finally:
        cluster.on("node1", "rm", "/usr/local/sbin/slurmd")


@contextmanager
def dead_package_source(cluster: Cluster) -> Iterator[None]:
    """login1 gets its packages from where nobody answers."""
    with moved(cluster, "login1", "/etc/apt"):
        line = "deb http://127.0.0.1:9/debian trixie main"
        cluster.on("login1", "sh", "-c", f"mkdir /etc/apt; echo '{line}' > /etc/apt/sources.list")
        try:
            yield
        finally:
            cluster.on("login1", "rm", "-r", "/etc/apt")


@contextmanager
def powered_off(cluster: Cluster) -> Iterator[None]:
    """node2 does not run."""
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node2")
    try:
        yield
    finally:
        run(*DEPLOY, "lab", "start", "--name", cluster.name, "node2")


@contextmanager
def moved(cluster: Cluster, host: str, path: str) -> Iterator[None]:
    """A file or directory of a host is out of the way."""
    cluster.on(host, "mv", path, "/root/moved")
    try:
        yield
    finally:
        cluster.on(host, "mv", "/root/moved", path)


def address_of(cluster: Cluster, host: str) -> str:
    found = re.search(rf"^{host} ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert found
    return found.group(1)


@dataclass(frozen=True)
class Case:
    """What is broken, and the only finding that it may lead to; ``message`` is a regular expression."""

    broken: Break
    exit_code: ExitCode
    where: str
    reference: str
    message: str
    hint: str

    def __str__(self) -> str:
        return self.reference


CASES = [
    Case(
        wrong_host_key,
        ExitCode.UNREACHABLE,
        "node2",
        "host-key-wrong",
        "its SSH host key is not the one that is known here, or none is known",
        "ssh-keygen -R",
    ),
    Case(
        powered_off,
        ExitCode.UNREACHABLE,
        "node2",
        "host-unreachable",
        ".*(No route to host|timed out).*",
        "ssh",
    ),
    Case(
        no_sudo,
        ExitCode.FAILED,
        "node1",
        "sudo-password-needed",
        "sudo asks for a password",
        "--ask-become-pass",
    ),
    Case(
        clock_ahead,
        ExitCode.FAILED,
        "node1",
        "clock-off",
        r"the clock is about [34]\d s ahead of the one of the machine that runs deploy, and nothing .*",
        "sudo date --set",
    ),
    Case(
        full_disk,
        ExitCode.FAILED,
        "node1",
        "disk-full",
        "the file system of /var/spool/slurmd has 0 MiB free, 200 are needed",
        "df -h /var/spool/slurmd",
    ),
    Case(
        taken_port,
        ExitCode.FAILED,
        "ctl1",
        "port-taken",
        r"port 6817/tcp, which slurmctld needs, is taken by python3 \(process \d+\)",
        "systemctl status",
    ),
    Case(
        other_address,
        ExitCode.FAILED,
        "login1",
        "name-resolves-elsewhere",
        r"node2 is 10\.9\.9\.9 in /etc/hosts:\d+, and \S+ in the inventory",
        "remove node2 from this line",
    ),
    Case(
        missing_gpu,
        ExitCode.FAILED,
        "node2",
        "hardware-below-contract",
        "gpus: the contract says 2, the machine shows 1",
        "nvidia-smi -L",
    ),
    Case(
        wrong_system,
        ExitCode.FAILED,
        "login1",
        "unsupported-system",
        r"Debian 11\S* is not supported: supported are Debian 12/13/14, Ubuntu 22\.04/24\.04",
        "docs/support.md",
    ),
    Case(
        other_slurm,
        ExitCode.FAILED,
        "node1",
        "other-slurm-installed",
        "/usr/local/sbin/slurmd is not from a package of the distribution: .*",
        "dpkg -S /usr/local/sbin/slurmd",
    ),
    Case(
        dead_package_source,
        ExitCode.FAILED,
        "login1",
        "package-source-unreachable",
        r"packages have to be installed, and the package source 127\.0\.0\.1:9 does not answer: .*",
        "apt-get update",
    ),
]


def test_fresh_machines_are_fit_and_a_check_changes_nothing(fresh: Cluster) -> None:
    before = contents(fresh.directory)
    started = fresh.on("node1", "date", "+%s").strip()
    answer = fresh.check()
    assert answer["findings"] == []
    assert {host["verdict"] for host in answer["hosts"].values()} == {"fit"}
    assert {"4 names", "clock", "disk space", "package sources"} <= set(answer["hosts"]["node1"]["checked"])
    assert contents(fresh.directory) == before
    newer = (
        "find",
        "/etc",
        "/usr",
        "/opt",
        "/root",
        "/var/lib/apt",
        "/var/lib/dpkg",
        "-newermt",
        f"@{started}",
    )
    assert fresh.on("node1", *newer, "-type", "f") == ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_broken_is_found(fresh: Cluster, case: Case) -> None:
    with case.broken(fresh):
        answer = fresh.check(expect=case.exit_code)
    (finding,) = answer["findings"]
    assert (finding["where"], finding["reference"], finding["severity"]) == (
        case.where,
        case.reference,
        "error",
    )
    assert re.fullmatch(case.message, finding["message"]), finding["message"]
    assert case.hint in finding["hint"]
    assert {name for name, host in answer["hosts"].items() if host["verdict"] == "fit"} == (
        {"ctl1", "login1", "node1", "node2"} - {case.where}
    )


def test_a_sudo_that_wants_a_terminal_gets_one(fresh: Cluster) -> None:
    rule = "/etc/sudoers.d/terminal"
    fresh.on("node1", "sh", "-c", f"echo 'Defaults requiretty' > {rule}; chmod 440 {rule}")
    try:
        answer = fresh.check()
    finally:
        fresh.on("node1", "rm", rule)
    assert answer["hosts"]["node1"]["verdict"] == "fit"


def test_a_wrong_site_is_never_connected_to(fresh: Cluster) -> None:
    variables = fresh.directory / "host_vars" / "ctl1.yml"
    variables.parent.mkdir()
    variables.write_text("slurmctld_cluster_nam: x\n")
    try:
        with no_sudo(fresh):
            answer = fresh.check(expect=ExitCode.BAD_INPUT)
    finally:
        variables.unlink()
        variables.parent.rmdir()
    assert [finding["reference"] for finding in answer["findings"]] == ["unknown-variable"]
    assert answer["hosts"] == {}


def test_deploy_cluster_says_the_same_of_all_machines_and_changes_nothing(fresh: Cluster) -> None:
    before = {path for path in contents(fresh.directory) if ".deploy" not in path}
    with taken_port(fresh), other_slurm(fresh), missing_gpu(fresh), wrong_system(fresh):
        found = fresh.check(expect=ExitCode.FAILED)["findings"]
        said = fresh.deploy(expect=ExitCode.FAILED).stdout
    assert [finding["where"] for finding in found] == ["ctl1", "login1", "node1", "node2"]
    for finding in found:
        assert f"{finding['where']}: {finding['message']} [{finding['reference']}]\n  -> " in said
    assert "deploy check" in said.splitlines()[-1]
    assert {path for path in contents(fresh.directory) if ".deploy" not in path} == before
    for host in ("ctl1", "login1", "node1", "node2"):
        fresh.on(host, "sh", "-c", "! command -v munged && ! grep -q deploy /etc/hosts")


def contents(directory: Path) -> set[str]:
    """Every file below a directory, with its text."""
    return {f"{path}\n{path.read_text(errors='replace')}" for path in directory.rglob("*") if path.is_file()}
