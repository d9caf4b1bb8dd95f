"""GPUs are divided as declared, after a boot too, and a layout that a GPU refuses is said to be so."""

import json
import time

from molecule.conftest import Converge, On

_OTHERS = "find /etc/apt/sources.list.d -type f ! -name 'deploy-*' -exec cat {} +"
STATE = "/var/lib/stand-in-gpus.json"


def instances(on: On, machine: str) -> list[list[str]]:
    """The instances of each GPU that programs can use."""
    gpus = json.loads(on(machine, "cat", STATE).stdout)
    return [gpus[index]["compute"] for index in sorted(gpus)]


def test_the_gpu_is_divided_and_the_other_is_whole(on: On, machine: str) -> None:
    assert instances(on, machine) == [["3g.40gb", "2g.20gb", "1g.10gb"], []]


def started(on: On, machine: str, unit: str) -> int:
    """When a unit was last started."""
    return int(
        on(machine, "systemctl", "show", "--property=InactiveExitTimestampMonotonic", "--value", unit).stdout
    )


def wait_until_idle(on: On, machine: str) -> None:
    deadline = time.monotonic() + 60
    # Slurm 24.11 still shows the reason of a drain of its own.
    while (seen := on(machine, "sinfo", "--noheader", "--format=%T").stdout.strip()) != "idle":
        assert time.monotonic() < deadline, seen
        time.sleep(0.5)


def test_what_reads_instances_at_its_start_reads_the_new_ones(on: On, machine: str) -> None:
    """Slurm drained the node for the old ones, and has it back."""
    wait_until_idle(on, machine)
    assert on(machine, "cat", "/run/listed-gpus.json").stdout == on(machine, "cat", STATE).stdout
    assert on(machine, "test", "-e", "/var/lib/deploy/drained", check=False).returncode == 1


def test_who_reads_instances_at_its_start_is_restarted_only_for_new_ones(
    on: On, converge: Converge, machine: str
) -> None:
    before = started(on, machine, "slurmd")
    answer = converge(only=machine)
    assert "changed=0" in answer.stdout, answer.stdout
    assert started(on, machine, "slurmd") == before


def test_a_run_that_was_cut_off_when_it_had_divided_is_completed(
    on: On, converge: Converge, machine: str
) -> None:
    before = started(on, machine, "slurmd")
    node = on(machine, "hostname").stdout.strip()
    on(machine, "touch", "/var/lib/deploy/drained", "/run/deploy/mig-divided")
    on(machine, "scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=deploy: maintenance")
    answer = converge(only=machine)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    wait_until_idle(on, machine)
    assert started(on, machine, "slurmd") > before


def test_what_does_not_run_is_not_started(on: On, converge: Converge, machine: str) -> None:
    on(machine, "systemctl", "stop", "slurmd")
    on(machine, "touch", "/run/deploy/mig-divided")
    try:
        answer = converge(only=machine)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert on(machine, "systemctl", "is-active", "slurmd", check=False).stdout == "inactive\n"
    finally:
        on(machine, "systemctl", "start", "slurmd")


def test_a_boot_divides_it_again(on: On, machine: str) -> None:
    on(machine, "rm", STATE)
    on(machine, "systemctl", "restart", "deploy-mig")
    assert instances(on, machine) == [["3g.40gb", "2g.20gb", "1g.10gb"], []]
    assert on(machine, "systemctl", "is-enabled", "deploy-mig").stdout == "enabled\n"


def test_another_layout_takes_the_place_of_the_first_and_too_much_is_refused(
    on: On, converge: Converge, machine: str
) -> None:
    answer = converge(only=machine, layout=[{"devices": ["7g.80gb"]}])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert instances(on, machine) == [["7g.80gb"], ["7g.80gb"]]
    wait_until_idle(on, machine)
    assert on(machine, "cat", "/run/listed-gpus.json").stdout == on(machine, "cat", STATE).stdout
    answer = converge(only=machine, layout=[{"gpus": [1], "devices": ["4g.40gb", "4g.40gb"]}])
    assert answer.returncode == 2
    assert "Insufficient Resources" in answer.stderr


def test_the_plugin_comes_from_a_component_that_the_machine_did_not_offer(on: On) -> None:
    offered = on("trixie", "cat", "/etc/apt/sources.list.d/deploy-components.sources").stdout
    assert "Components: contrib\n" in offered
    own = on("trixie", "sh", "-c", f"cat /etc/apt/sources.list; {_OTHERS}", check=False)
    assert "main" in own.stdout
    assert "contrib" not in own.stdout
    shown = on("trixie", "dpkg-query", "--listfiles", "slurm-wlm-nvml-plugin").stdout
    assert "/gpu_nvml.so" in shown
