"""The machines of a rehearsal: named as a site's hosts, with what its users find there."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import error
from deploy.lab import rehearsed_site
from deploy.lab.access import wait_for_ssh
from deploy.lab.directory import LabDirectory
from deploy.lab.locks import exclusive
from deploy.lab.machine import inspect_machine
from deploy.lab.machines.containers import CONTAINERS
from deploy.lab.nodes import NodeMaker
from deploy.lab.parallel import for_each
from deploy.lab.pip_settings import pip_entries
from deploy.lab.podman import podman
from deploy.lab.reach import addresses_in, refuse_others
from deploy.lab.rehearsed_site import MODULES, Rehearsed
from deploy.lab.state import REHEARSAL, Lab, check_name, container_name, find_lab, need_lab
from deploy.lab.tarball import Entry, pack
from deploy.lab.up import SECONDS_TO_ANSWER, Wish, boot_all, make_network
from deploy.site.inventory import Site

INVENTORY = "inventory.yml"
_FIRST_ADDRESS = 2


@dataclass(frozen=True)
class Stage:
    """Machines that wait for a site to be deployed on them, and the site."""

    lab: Lab
    site: Site


def set_up(what: Rehearsed, name: str, directory: Path, release: str, say: Callable[[str], None]) -> Stage:
    """Boots the machines and writes their inventory into an empty private directory.

    Raises DeployError; what was made until then is there for ``take_down``.
    """
    check_name(name)
    machine = inspect_machine()
    names = [host.name for host in what.hosts]
    with exclusive(f"lab-{name}"):
        if other := find_lab(name):
            down = f"; if no rehearsal or drill is at it now: deploy lab down --name {name} --delete-dir"
            raise error(
                "rehearsal-exists",
                f"there is a lab named {name} already",
                hint=f"choose another --name{down if other.is_rehearsal else ''}",
            )
        CONTAINERS.require_room(len(names))
        say(f"image {release} ...")
        image = CONTAINERS.ensure_image(release)
        wish = Wish(name, directory, gpus=0, avoided=addresses_in(what.site))
        lab = make_network(wish, release, CONTAINERS, REHEARSAL)
        keys = LabDirectory(directory).keys
        addresses = {host: lab.network[_FIRST_ADDRESS + index] for index, host in enumerate(names)}
        maker = NodeMaker(
            lab=name,
            directory=directory,
            image=image,
            addresses=addresses,
            gpus=what.gpus,
            admin_key=keys.public_key(),
            machine=machine,
            kind=CONTAINERS,
            shared=what.shared,
        )
        boot_all(names, maker, say)
        lab = need_lab(name)
        keys.write_known_hosts({host.address: host.host_key for host in lab.hosts})
        content = rehearsed_site.inventory(
            what, addresses, lab.network, release=release, cgroup_v1=machine.cgroup_v1
        )
        rehearsed_site.write(directory / INVENTORY, content)
        site = refuse_others(directory / INVENTORY, lab.network)
        say("waiting for ssh ...")
        wait_for_ssh(name, keys, {host.name: host.address for host in lab.hosts}, SECONDS_TO_ANSWER)
        _place(container_name(name, names[0]), stand_ins(modules_of(what)))
        if found := pip_entries():
            for_each(names, lambda host: _place(container_name(name, host), found))
    return Stage(lab, site)


def modules_of(what: Rehearsed) -> list[str]:
    """The modules that the site has and a rehearsal cannot: its own ones, and those of CUDA."""
    found: dict[str, None] = {}
    for host in what.hosts:
        found |= dict.fromkeys(host.variables.get("site_modules") or [])
        found |= dict.fromkeys(f"cuda/{version}" for version in host.value("cuda_toolkit_versions") or [])
    return list(found)


def stand_ins(modules: Iterable[str]) -> list[Entry]:
    """Module files that change nothing, but for ``python``, which brings a command of that name."""
    programs = f"{Path(MODULES).parent}/bin"
    entries = [Entry(str(Path(MODULES).parent), mode=0o755), Entry(MODULES, mode=0o755)]
    for module in modules:
        is_python = module.partition("/")[0] == "python"
        lines = ["#%Module1.0", *([f"prepend-path PATH {programs}"] if is_python else [])]
        if "/" in module:
            entries.append(Entry(f"{MODULES}/{module.partition('/')[0]}", mode=0o755))
        entries.append(Entry(f"{MODULES}/{module}", "\n".join(lines) + "\n"))
        if is_python:
            entries.append(Entry(programs, mode=0o755))
            entries.append(Entry(f"{programs}/python", link="/usr/bin/python3"))
    return entries


def _place(container: str, entries: Iterable[Entry]) -> None:
    podman("exec", "--interactive", container, "tar", "-x", "-C", "/", data=pack(entries))
