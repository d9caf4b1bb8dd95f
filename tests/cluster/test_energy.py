"""Energy of jobs in Slurm's accounting: by registers that stand in for a processor's, and without any."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, booted, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_REGISTERS = "/dev/cpu/0/msr"
_METER = f"""\
import os, time
unit, counter = 0x606, 0x611
with open("{_REGISTERS}", "r+b", buffering=0) as registers:
    # An eighth of a joule; 400 of them a second are 50 W.
    os.pwrite(registers.fileno(), (3 << 8).to_bytes(8, "little"), unit)
    value = 0
    while True:
        os.pwrite(registers.fileno(), value.to_bytes(4, "little"), counter)
        value += 40
        time.sleep(0.1)
"""
"""A processor that takes 50 W: registers are at offsets of the file, as Linux shows them."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One node, without energy accounting."""
    with booted("energy", tmp_path_factory, "--nodes", "1") as made:
        made.deploy()
        yield made


def _say(cluster: Cluster, **variables: object) -> None:
    path = cluster.directory / "group_vars/slurm-master.yml"
    old = yaml.safe_load(path.read_text()) if path.exists() else {}
    path.write_text(yaml.safe_dump({**(old or {}), **variables}))


def _watts(cluster: Cluster) -> str:
    shown = cluster.on("ctl1", "scontrol", "--oneliner", "show", "node", "node1")
    return next(word.partition("=")[2] for word in shown.split() if word.startswith("CurrentWatts="))


def test_a_node_without_registers_is_named_and_jobs_go_on(cluster: Cluster) -> None:
    job = submit(cluster, "", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    _say(cluster, slurmctld_energy_sources=["rapl"], slurmctld_energy_node_seconds=5)
    said = cluster.deploy().stdout
    assert "energy by rapl stays empty: there is no /dev/cpu/0/msr" in said
    assert "acct_gather_energy/rapl" in cluster.on("ctl1", "scontrol", "show", "config")
    assert job_state(cluster, job) == "RUNNING"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")
    wait_until("Slurm knows that it measures nothing", lambda: _watts(cluster) == "n/a", 60)
    assert "energy by rapl stays empty" in json.dumps(cluster.status(expect=None))


def test_energy_of_a_job_is_in_the_accounting(cluster: Cluster) -> None:
    cluster.on("node1", "mkdir", "--parents", "/dev/cpu/0")
    cluster.on("node1", "truncate", "--size=4096", _REGISTERS)
    cluster.on("node1", "sh", "-c", f"cat > /run/meter.py <<'END'\n{_METER}END")
    cluster.on("node1", "systemd-run", "--unit=meter", "/usr/bin/python3", "/run/meter.py")
    cluster.on("node1", "systemctl", "restart", "slurmd")
    assert "stays empty" not in cluster.deploy().stdout
    assert cluster.plan().strip() == "plan: nothing to change"
    wait_until("Slurm measures 50 W", lambda: 35 <= int(_watts(cluster).replace("n/a", "0")) <= 65, 60)
    job = submit(cluster, "", "srun sleep 20")
    wait_for_job(cluster, job, "COMPLETED", 120)
    rows = (
        "sacct",
        "--noheader",
        "--parsable2",
        "--format=jobid,elapsedraw,consumedenergyraw",
        "--jobs",
        job,
    )
    steps = {}

    def is_there() -> bool:
        for line in cluster.on("ctl1", *rows).splitlines():
            name, seconds, joules = line.split("|")
            steps[name] = (int(seconds), float(joules or 0))
        return steps.get(f"{job}.0", (0, 0.0))[1] > 0

    wait_until("accounting has the energy of the step", is_there, 60)
    seconds, joules = steps[f"{job}.0"]
    # By a meter that is asked when the step begins and when it ends.
    assert 0.5 * 50 * seconds <= joules <= 1.5 * 50 * (seconds + 2)
    usage = cluster.on("ctl1", "sacct", "--noheader", "--format=tresusageintot%200", "--jobs", f"{job}.0")
    assert "energy=" in usage


def test_sensors_of_a_mainboard_that_there_is_not(cluster: Cluster) -> None:
    """Up to the edge of what no container has: the plugin is loaded, with its settings."""
    sensors = {"seconds": 10, "interpolate": True, "power_sensors": "Node=DCMI"}
    _say(cluster, slurmctld_energy_sources=["ipmi"], slurmctld_energy_sensors=sensors)
    said = cluster.deploy().stdout
    assert "energy by ipmi stays empty: there is no /dev/ipmi0" in said
    shown = cluster.on("ctl1", "scontrol", "show", "config")
    for line in ("Frequency=10", "CalcAdjustment=yes", "PowerSensors=Node=DCMI"):
        assert f"EnergyIPMI{line}" in shown.replace(" ", "")
    assert cluster.node_states()["node1"].rstrip("*") == "idle"
    assert cluster.as_user("srun hostname").strip() == "node1"


def test_none_is_none_again(cluster: Cluster) -> None:
    _say(cluster, slurmctld_energy_sources=[], slurmctld_energy_sensors={})
    cluster.deploy()
    cluster.on("ctl1", "test", "!", "-e", "/etc/slurm/acct_gather.conf")
    assert "acct_gather_energy" not in cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf")
    assert cluster.as_user("srun hostname").strip() == "node1"
    assert cluster.plan().strip() == "plan: nothing to change"
