"""Power of one machine: off as if someone pulled the plug, and on again."""

from deploy.errors import error
from deploy.lab.access import wait_for_ssh
from deploy.lab.directory import LabDirectory
from deploy.lab.machine import inspect_machine
from deploy.lab.machines import kind_named
from deploy.lab.podman import podman
from deploy.lab.state import container_name, need_lab
from deploy.lab.up import SECONDS_TO_ANSWER


def power_off(lab_name: str, host_name: str) -> None:
    """Kill everything on the machine at once; nothing on it gets time to say goodbye."""
    inspect_machine()
    lab = need_lab(lab_name)
    host = lab.host(host_name)
    if host.running:
        container = container_name(lab.name, host.name)
        kind_named(lab.machines).cut_off([container])
        podman("stop", "--time", "0", container)


def power_on(lab_name: str, host_name: str, kernel_line: str = "") -> None:
    """Boot the machine with its old address, disk and keys, until it lets the admin in.

    ``kernel_line`` has further words for its kernel. Raises DeployError ``lab-kernel-line``.
    """
    inspect_machine()
    lab = need_lab(lab_name)
    host = lab.host(host_name)
    if host.running and kernel_line:
        raise error(
            "lab-kernel-line",
            f"{host_name} runs already, with the words that its kernel was started with",
            hint=f"deploy lab stop --name {lab_name} {host_name}   (as if someone pulled the plug)",
        )
    if not host.running:
        kind = kind_named(lab.machines)
        kind.require_room(1)
        kind.start(container_name(lab.name, host.name), kernel_line.split())
    keys = LabDirectory(lab.directory).keys
    wait_for_ssh(lab.name, keys, {host.name: host.address}, SECONDS_TO_ANSWER)
