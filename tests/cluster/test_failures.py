"""What fails stops what comes after it: every other phase is done, and what is not is named."""

import json
from collections.abc import Iterator

import pytest

from deploy.plan.catalog import PHASES, prerequisites
from tests.cluster.lab_cluster import Cluster, booted, wait_until

pytestmark = pytest.mark.more


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with monitoring, and a host that keeps the logs of all."""
    with booted("failing", tmp_path_factory, "--nodes", "1", "--gpus", "0", "--monitoring") as made:
        made.inventory.write_text(made.inventory.read_text() + "\n[slurm-log]\nlogin1\n")
        made.deploy()
        yield made


@pytest.mark.parametrize(
    ("phase", "host", "program", "change"),
    [
        ("log_server", "login1", "/usr/sbin/rsyslogd", {"log_server_port": 6515}),
        ("monitoring", "ctl1", "/usr/bin/promtool", {"prometheus_external_labels": {"a": "b"}}),
        ("database", "ctl1", "/usr/sbin/mariadbd", {"mariadb_parameters": {"max_connections": 199}}),
    ],
)
def test_a_failure_stops_what_comes_after_it(
    whole: Cluster, phase: str, host: str, program: str, change: dict[str, object]
) -> None:
    text = f"without {phase}"
    for name, variables in ((host, change), ("login1", {"motd_text": [text]})):
        path = whole.directory / f"host_vars/{name}.yml"
        path.parent.mkdir(exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, **variables}))
    whole.on(host, "chmod", "-x", program)
    said = whole.deploy("--full", "--yes", expect=1).stdout
    report = whole.report()
    assert {failure["host"] for failure in report["failures"]} == {host}
    missing = {part["phase"] for part in report["not_run"]}
    after = {one.name for one in PHASES if phase in prerequisites(one.name)}
    assert missing
    assert missing <= after
    assert all(part["why"].endswith(f"failed on {host}") for part in report["not_run"])
    assert "not run" in said
    assert text in whole.on("login1", "cat", "/etc/motd.d/10-cluster")
    whole.on(host, "chmod", "+x", program)
    whole.deploy("--yes")
    whole.deploy()
    assert all(one["verified"] and not one["ok"] for one in whole.report()["hosts"].values())


def test_a_daemon_that_dies_again_and_again_fails_every_run_until_it_runs(whole: Cluster) -> None:
    """systemd says of it that it is activating."""
    whole.on("node1", "chmod", "-x", "/usr/sbin/slurmd")
    whole.on("node1", "systemctl", "kill", "--signal=KILL", "slurmd")
    wait_until("slurmd is to be started again", lambda: "auto-restart" in _state(whole), 60)
    for options in ((), (), ("--full",)):
        whole.deploy(*options, expect=1)
        assert [failure["task"] for failure in whole.report()["failures"]] == ["Run slurmd"]
    whole.on("node1", "chmod", "+x", "/usr/sbin/slurmd")
    whole.deploy()
    assert _state(whole) == "running"
    whole.as_user("srun -w node1 true")


def _state(cluster: Cluster) -> str:
    return cluster.on("node1", "systemctl", "show", "slurmd", "--property=SubState", "--value").strip()


def test_a_full_disk_is_named_and_leaves_nothing_half_written(whole: Cluster) -> None:
    place, said = "/etc/profile.d", whole.directory / "group_vars/slurm-node.yml"
    before = said.read_text() if said.exists() else ""
    names = whole.on("node1", "ls", "-A", place).split()
    whole.on("node1", "sh", "-ec", f"cp -a {place} /run/kept; mount -t tmpfs -o size=1m tmpfs {place}")
    whole.on(
        "node1",
        "sh",
        "-c",
        f"cp -a /run/kept/. {place}; cat /dev/zero > {place}/.much; test -s {place}/.much",
    )
    said.write_text(before + "\nuser_environment_variables: [{name: A_FULL_DISK, value: 'no'}]\n")
    failed = whole.deploy("--yes", expect=1)
    assert f"No space left on device: '{place}/user-environment.sh'" in failed.stdout + failed.stderr
    assert "[host-disk-full]" in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stdout + failed.stderr
    assert sorted(whole.on("node1", "ls", "-A", place).split()) == sorted([*names, ".much"])
    whole.on("node1", "rm", f"{place}/.much")
    whole.deploy("--yes")
    assert "A_FULL_DISK" in whole.on("node1", "cat", f"{place}/user-environment.sh")
    whole.on("node1", "umount", place)
    said.write_text(before)
    whole.deploy("--yes")
    whole.deploy()
    assert not any(host["changed"] for host in whole.report()["hosts"].values())
