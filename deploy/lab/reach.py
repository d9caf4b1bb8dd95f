"""What is reached by an inventory: nothing but the machines of a lab."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from deploy.errors import error
from deploy.lab.state import Lab
from deploy.site.inventory import Host, Site, read_site

_REACHED = frozenset(
    {
        "ansible_host",
        "ansible_user",
        "ansible_become",
        "ansible_python_interpreter",
        "ansible_ssh_private_key_file",
        "ansible_ssh_args",
        "ansible_ssh_common_args",
    }
)


def refuse_other_machines(inventory_file: Path, lab: Lab) -> None:
    """Raises DeployError ``lab-other-machines`` where an inventory has hosts that are none of the lab's."""
    hosts = read_site(inventory_file).hosts.values()
    others = [f"{host.name} is at {_address(host)}" for host in hosts if not _is_within(host, lab.network)]
    if others:
        raise error(
            "lab-other-machines",
            f"nothing was deployed: there are hosts that are none of lab {lab.name}: {'; '.join(others)}",
            where=str(inventory_file),
            hint=f"take the lab down, which leaves the file: deploy lab down --name {lab.name}; make it anew "
            "with another --dir",
        )


def refuse_others(inventory_file: Path, network: IPv4Network) -> Site:
    """The site of a rehearsal, when Ansible reaches nothing but the lab by its inventory.

    Raises DeployError ``rehearsal-not-apart`` before anything was connected to.
    """
    site = read_site(inventory_file)
    wrong = list(_reaching_elsewhere(site, network))
    if wrong:
        raise error(
            "rehearsal-not-apart",
            f"a rehearsal would reach something that is not its lab: {'; '.join(wrong)}",
            where=str(inventory_file),
            hint="nothing was connected to; this is a fault of deploy itself, please report it",
        )
    return site


def _reaching_elsewhere(site: Site, network: IPv4Network) -> Iterator[str]:
    for host in site.hosts.values():
        others: Sequence[str] = sorted(host.connection.keys() - _REACHED)
        if others:
            yield f"{host.name} has {', '.join(others)}"
        if not _is_within(host, network):
            yield f"{host.name} is at {_address(host)}"


def addresses_in(site: Site) -> tuple[IPv4Network, ...]:
    """The addresses of a site's machines that its inventory has; names are not looked up."""
    found = []
    for host in site.hosts.values():
        for said in (
            host.connection.get("ansible_ssh_host"),
            _address(host),
            host.value("hosts_file_address"),
        ):
            with suppress(ValueError):
                found.append(IPv4Network(str(said)))
    return tuple(dict.fromkeys(found))


def _is_within(host: Host, network: IPv4Network) -> bool:
    try:
        return IPv4Address(_address(host)) in network
    except ValueError:
        return False


def _address(host: Host) -> str:
    return str(host.connection.get("ansible_host", host.name))
