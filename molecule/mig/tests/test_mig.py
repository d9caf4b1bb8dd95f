"""GPUs are divided as declared, after a boot too, and a layout that a GPU refuses is said to be so."""

import json

from molecule.conftest import Converge, On

_OTHERS = "find /etc/apt/sources.list.d -type f ! -name 'deploy-*' -exec cat {} +"
STATE = "/var/lib/stand-in-gpus.json"


def instances(on: On, machine: str) -> list[list[str]]:
    """The instances of each GPU that programs can use."""
    gpus = json.loads(on(machine, "cat", STATE).stdout)
    return [gpus[index]["compute"] for index in sorted(gpus)]


def test_the_gpu_is_divided_and_the_other_is_whole(on: On, machine: str) -> None:
    assert instances(on, machine) == [["3g.40gb", "2g.20gb", "1g.10gb"], []]


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
