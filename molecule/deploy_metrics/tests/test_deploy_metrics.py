"""The node exporter's directory holds what is so on the host, and what changed."""

import time
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from molecule.conftest import On

FILE = "/var/lib/prometheus/node-exporter/deploy.prom"
Told = dict[str, dict[tuple[str, ...], float]]


def told(on: On, machine: str) -> Told:
    found: Told = {}
    for family in text_string_to_metric_families(on(machine, "cat", FILE, check=False).stdout):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def wait_for(on: On, machine: str, is_so: Callable[[Told], bool]) -> Told:
    deadline = time.monotonic() + 90
    while not is_so(found := told(on, machine)):
        assert time.monotonic() < deadline, (
            found,
            on(machine, "journalctl", "--unit=deploy_metrics", "--lines=5").stdout,
        )
        time.sleep(1)
    return found


def told_now(on: On, machine: str) -> Told:
    """What a round says that the timer has not to be waited for."""
    on(machine, "systemctl", "restart", "deploy_metrics.service")
    return told(on, machine)


def test_what_is_so_is_told(on: On, machine: str) -> None:
    found = wait_for(on, machine, lambda found: found != {})
    assert found["deploy_phase_converged_timestamp_seconds"] == {("controller",): 1795305674.5}
    assert found["deploy_phase_info"] == {("controller", "0.1.0"): 1}
    checksum = on(machine, "sha256sum", "/etc/slurm/slurm.conf").stdout.split()[0]
    assert found["deploy_slurm_configuration_info"] == {(checksum,): 1}
    assert found["deploy_munge_success"] == {(): 1}
    assert "deploy_nvidia_driver_match" not in found
    assert on(machine, "stat", "--format=%U %a", FILE).stdout == "root 644\n"


def test_munge_that_does_not_work_is_told(on: On, machine: str) -> None:
    on(machine, "systemctl", "stop", "munge")
    try:
        assert told_now(on, machine)["deploy_munge_success"] == {(): 0}
    finally:
        on(machine, "systemctl", "start", "munge")
    assert told_now(on, machine)["deploy_munge_success"] == {(): 1}


def test_another_configuration_is_told(on: On, machine: str) -> None:
    before = told(on, machine)["deploy_slurm_configuration_info"]
    on(machine, "sh", "-c", "echo '# changed' >> /etc/slurm/slurm.conf")
    after = told_now(on, machine)["deploy_slurm_configuration_info"]
    assert len(after) == 1
    assert after != before


def test_it_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "deploy_metrics.timer").stdout == "enabled\n"
