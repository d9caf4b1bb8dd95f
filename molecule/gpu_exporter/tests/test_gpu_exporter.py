"""GPUs are reported by one service on one port, from the driver or from DCGM, and users' programs are not."""

import re
import time
from pathlib import Path

import pytest

from molecule.conftest import MACHINES, Converge, On

UNIT = "gpu_exporter"
SECONDS = 20


def numbers(on: On, machine: str, port: int = 9400) -> str:
    """What it tells, as soon as it does: a service runs before its program listens."""
    address = f"http://127.0.0.1:{port}/metrics"
    deadline = time.monotonic() + SECONDS
    while True:
        answer = on(machine, "curl", "--silent", "--show-error", "--fail", address, check=False)
        if answer.returncode == 0 and "gpu" in answer.stdout:
            return answer.stdout
        if time.monotonic() > deadline:
            pytest.fail(answer.stderr + on(machine, "journalctl", "-n", "20", "-u", UNIT).stdout)
        time.sleep(0.5)


def value(text: str, metric: str, gpu: int) -> float:
    found = re.search(rf'^{metric}{{[^}}]*index="{gpu}"[^}}]*}} (\S+)$', text, re.MULTILINE)
    return float(found.group(1)) if found else float("nan")


def test_it_tells_of_every_gpu(on: On, machine: str) -> None:
    text = numbers(on, machine)
    assert [value(text, "gpu_utilization_Percentage", gpu) for gpu in (0, 1)] == [87, 0]
    assert value(text, "gpu_memory_used_MiB", 1) == 20480
    assert value(text, "gpu_power_usage_W", 0) == 312
    assert value(text, "gpu_temperature_C", 0) == 61


def test_without_its_service_nothing_is_told(on: On, machine: str) -> None:
    numbers(on, machine)
    on(machine, "systemctl", "stop", UNIT)
    answer = on(machine, "curl", "--silent", "http://127.0.0.1:9400/metrics", check=False)
    on(machine, "systemctl", "start", UNIT)
    assert answer.returncode == 7
    assert "gpu_utilization_Percentage" in numbers(on, machine)


def test_it_has_no_rights_and_may_open_the_gpus(on: On, machine: str) -> None:
    numbers(on, machine)
    pid = on(machine, "systemctl", "show", "--property=MainPID", "--value", UNIT).stdout.strip()
    status = on(machine, "cat", f"/proc/{pid}/status").stdout
    owner = on(machine, "id", "--user", UNIT).stdout.strip()
    assert re.search(rf"^Uid:\t{owner}\t", status, re.MULTILINE)
    assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
    # The stand-in for the driver's library refuses who may not.
    on(machine, "chmod", "0600", "/dev/nvidia0")
    on(machine, "systemctl", "restart", UNIT)
    refused = on(machine, "curl", "--silent", "--retry", "3", "http://127.0.0.1:9400/metrics", check=False)
    on(machine, "chmod", "0666", "/dev/nvidia0")
    on(machine, "systemctl", "restart", UNIT)
    assert refused.returncode != 0
    assert "gpu_utilization_Percentage" in numbers(on, machine)


def test_command_lines_of_users_stay_their_own(on: On, machine: str) -> None:
    numbers(on, machine)
    pid = on(machine, "sh", "-c", "sleep 4711 >/dev/null 2>&1 & echo $!").stdout.strip()
    on(machine, "tee", "/run/gpu_process", data=pid)
    deadline = time.monotonic() + SECONDS
    while f'pid="{pid}"' not in (text := numbers(on, machine)):
        assert time.monotonic() < deadline, text[-2000:]
        time.sleep(0.5)
    on(machine, "rm", "/run/gpu_process")
    on(machine, "kill", pid)
    assert "4711" not in text
    assert "root" not in text


def test_it_listens_on_the_given_address_alone(on: On, machine: str) -> None:
    numbers(on, machine)
    listening = on(machine, "ss", "--listening", "--tcp", "--numeric", "--no-header").stdout
    assert [line.split()[3] for line in listening.splitlines() if ":9400" in line] == ["127.0.0.1:9400"]
    assert on(machine, "systemctl", "is-enabled", UNIT).stdout == "enabled\n"


def test_another_port_restarts_it(on: On, converge: Converge) -> None:
    answer = converge(listens_at=9490)
    told = [numbers(on, machine, 9490) for machine in MACHINES]
    again = converge()
    assert all("gpu_utilization_Percentage" in text for text in told)
    assert answer.stdout.count("changed=2") == again.stdout.count("changed=2") == len(MACHINES)


def test_a_wheel_with_another_checksum_is_refused_and_what_runs_stays(on: On, converge: Converge) -> None:
    on(MACHINES[0], "touch", "/root/other-1-py3-none-any.whl")
    wheel = {"url": "file:///root/other-1-py3-none-any.whl", "sha256": "0" * 64}
    answer = converge(only=MACHINES[0], wheels=[wheel])
    assert answer.returncode == 2
    assert "it was e3b0c44298fc1c149afbf4c8996fb924" in answer.stdout + answer.stderr
    on(MACHINES[0], "systemctl", "restart", UNIT)
    assert "gpu_utilization_Percentage" in numbers(on, MACHINES[0])


def test_the_change_to_dcgm_is_foretold_where_the_repository_is_not_there_yet(converge: Converge) -> None:
    answer = converge("--check", source="dcgm")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    installs = re.search(
        r"TASK \[gpu_exporter : Install NVIDIA's exporter\] \**\n((?:\w+: .*\n)+)", answer.stdout
    )
    assert installs, answer.stdout
    assert installs[1].count("changed: ") == len(MACHINES), answer.stdout


def test_dcgm_takes_the_drivers_place_and_back(on: On, converge: Converge) -> None:
    answer = converge(source="dcgm", job_directory="/run/gpu_jobs")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine in MACHINES:
        on(machine, "tee", "/run/gpu_jobs/0", data="4711\n")
        text = numbers(on, machine)
        told = set(re.findall(r"^(DCGM_\w+){", text, re.MULTILINE))
        assert _asked_for() <= told
        assert "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" in told
        assert 'DCGM_FI_DRIVER_VERSION="stand-in",hpc_job="4711"' in text
        version = on(machine, "dpkg-query", "--show", "datacenter-gpu-manager-exporter").stdout
        assert version.split()[1] == "4.8.2-1"
        foreign = on(machine, "systemctl", "is-enabled", "nvidia-dcgm-exporter", check=False)
        assert foreign.stdout == "masked\n"
    assert converge(source="dcgm", job_directory="/run/gpu_jobs").stdout.count("changed=0") == len(MACHINES)
    assert converge().returncode == 0
    for machine in MACHINES:
        assert "gpu_utilization_Percentage" in numbers(on, machine)


def _asked_for() -> set[str]:
    """The fields that Prometheus's rules read."""
    rules = Path(__file__).parents[3] / "roles/prometheus/files/rules/recording.yml"
    return set(re.findall(r"DCGM_\w+", rules.read_text(encoding="utf-8")))
