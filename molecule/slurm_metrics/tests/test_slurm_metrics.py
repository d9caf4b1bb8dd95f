"""What Prometheus gets is what Slurm says, now; and a controller that is gone is told, not remembered."""

import time
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from molecule.conftest import On

URL = "http://127.0.0.1:9341/metrics"
FETCH = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=5).read().decode())"
Samples = Mapping[str, Mapping[tuple[str, ...], float]]


def scrape(on: On, machine: str) -> Samples:
    """Values by metric and by the values of its labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(on(machine, "python3", "-c", FETCH, URL).stdout):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def wait_for(on: On, machine: str, told: Callable[[Samples], bool]) -> Samples:
    deadline = time.monotonic() + 120
    while not told(found := scrape(on, machine)):
        assert time.monotonic() < deadline, {name: found[name] for name in found if name.startswith("slurm_")}
        time.sleep(0.5)
    return found


def state(found: Samples) -> str:
    return next((key[1] for key in found.get("slurm_node_state", {})), "")


def test_node_and_partition_are_told(on: On, idle: str) -> None:
    found = wait_for(on, idle, lambda told: state(told) == "idle")
    name = f"molecule-slurm-metrics-{idle}"
    assert found["slurm_node_state"] == {(name, "idle"): 1}
    assert found["slurm_nodes"]["idle",] == 1
    assert sum(count for key, count in found["slurm_gpus"].items() if "idle" in key) == 2
    assert found["slurm_controller_up"] == {(name, "primary"): 1}
    assert found["slurm_partition_state"]["batch", "up"] == 1
    cpus = int(on(idle, "sinfo", "--noheader", "--format=%c").stdout)
    assert found["slurm_node_cpus"] == {(name,): cpus}
    [(cluster, version)] = found["slurm_info"]
    assert (cluster, version) == ("lab", on(idle, "sinfo", "--version").stdout.split()[1])
    assert set(found["slurm_exporter_collect_success"].values()) == {1}


@pytest.fixture
def job(on: On, idle: str) -> Iterator[tuple[str, str]]:
    """A job with a GPU that runs, and its machine."""
    options = ["--parsable", "--chdir=/", "--output=/dev/null", "--ntasks=1", "--gpus=1"]
    number = on(idle, "sbatch", *options, "--wrap=sleep 600").stdout.strip()
    yield idle, number
    on(idle, "scancel", number)


def test_job_is_told_while_it_runs_and_counted_when_it_ended(on: On, job: tuple[str, str]) -> None:
    machine, number = job
    found = wait_for(on, machine, lambda told: (number,) in told.get("slurm_job_gpus", {}))
    assert found["slurm_job_node"] == {(number, f"molecule-slurm-metrics-{machine}"): 1}
    assert sum(count for key, count in found["slurm_gpus"].items() if "allocated" in key) == 1
    assert sum(found["slurm_job_wait_seconds_count"].values()) >= 1
    ended = found["slurm_jobs_ended_total"]["batch", "cancelled"]
    on(machine, "scancel", number)
    wait_for(on, machine, lambda told: told["slurm_jobs_ended_total"]["batch", "cancelled"] == ended + 1)


def test_drain_is_told_with_its_reason(on: On, idle: str) -> None:
    name = f"molecule-slurm-metrics-{idle}"
    on(idle, "scontrol", "update", f"NodeName={name}", "State=DRAIN", "Reason=new fan")
    try:
        found = wait_for(on, idle, lambda told: state(told) == "drained")
        assert list(found["slurm_node_reason_timestamp_seconds"]) == [(name, "new fan", "root")]
        assert found["slurm_cpus"]["idle",] == 0
        assert found["slurm_cpus"]["down",] > 0
    finally:
        on(idle, "scontrol", "update", f"NodeName={name}", "State=RESUME")
    wait_for(on, idle, lambda told: state(told) == "idle")


def test_controller_that_is_gone_is_told_and_nothing_stale_is_shown(on: On, idle: str) -> None:
    on(idle, "systemctl", "stop", "slurmctld")
    try:
        found = wait_for(
            on,
            idle,
            lambda told: {told["slurm_exporter_collect_success"][name,] for name in ("nodes", "jobs")} == {0},
        )
        assert not found.keys() & {"slurm_nodes", "slurm_node_state", "slurm_jobs", "slurm_cpus"}
        assert list(found["slurm_controller_up"].values()) == [0]
    finally:
        on(idle, "systemctl", "start", "slurmctld")
    wait_for(on, idle, lambda told: state(told) != "" and set(told["slurm_controller_up"].values()) == {1})
    journal = on(idle, "journalctl", "--unit=slurm_metrics", "--output=cat").stdout
    assert "nodes: scontrol: " in journal
    assert "nodes: answers again" in journal


def test_it_has_no_privileges_and_one_address(on: On, machine: str) -> None:
    daemon = on(machine, "systemctl", "show", "slurm_metrics", "--property=MainPID", "--value").stdout.strip()
    status = dict(
        line.split(":\t", 1) for line in on(machine, "cat", f"/proc/{daemon}/status").stdout.splitlines()
    )
    account = on(machine, "id", "--user", "slurm_metrics").stdout.strip()
    assert status["Uid"].split() == [account] * 4
    assert account != "0"
    assert {status[name].strip() for name in ("CapEff", "CapPrm", "CapBnd")} == {"0000000000000000"}
    assert status["NoNewPrivs"].strip() == "1"
    listening = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    port = str(urlsplit(URL).port)
    assert [line.split()[3] for line in listening.splitlines() if f":{port} " in line] == [
        f"127.0.0.1:{port}"
    ]


def test_it_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "slurm_metrics").stdout == "enabled\n"


def test_it_takes_little_time(on: On, machine: str) -> None:
    """One percent of a core, however often it should ask."""
    before = scrape(on, machine)["slurm_exporter_cpu_seconds_total"][()]
    time.sleep(20)
    used = scrape(on, machine)["slurm_exporter_cpu_seconds_total"][()] - before
    assert used < 20 * 0.02
