"""What a rehearsal gives users' commands besides the deployment: images, passwords, large nodes."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploy.errors import ExitCode, error
from deploy.lab.parallel import for_each
from deploy.lab.podman import podman
from deploy.lab.pretended import Size, cgroup_conf, described, sizes_of, slurm_conf
from deploy.lab.registry import Registry, served_images
from deploy.lab.rehearsed_site import Rehearsed
from deploy.lab.state import container_name, need_lab
from deploy.site.inventory import CONTAINER, LOGIN, MASTER, NODE, PORTAL
from deploy.site.user_commands import Command

_SLURM_CONF, _CGROUP_CONF = "/etc/slurm/slurm.conf", "/etc/slurm/cgroup.conf"
_INSTALL = """\
export DEBIAN_FRONTEND=noninteractive
apt-get -q update && apt-get -q install -y --no-install-recommends "$@"
"""
_SIMULATED_GPUS = "/etc/enroot/mounts.d/30-simulated-gpus.fstab"
_NVIDIA_SMI = "/usr/local/bin/nvidia-smi"
# What NVIDIA's hook does where there is a driver: containers see the program that shows GPUs.
_MOUNT = f"{_NVIDIA_SMI} {_NVIDIA_SMI} none x-create=file,bind,ro,nosuid,nodev,private,nofail,silent 0 -1\n"
_SECONDS_TO_RETURN = 180
_BETWEEN_LOOKS = 1.0
_THERE = frozenset({"idle", "mixed", "allocated"})


@dataclass(frozen=True)
class Means:
    """Of one rehearsal; ``content`` is the site's file of commands."""

    what: Rehearsed
    lab: str
    release: str
    content: Mapping[str, Any]
    say: Callable[[str], None]
    _passwords: dict[str, str] = field(default_factory=dict, repr=False)
    _files: dict[str, str] = field(default_factory=dict, repr=False)

    def prepare(self, commands: Iterable[Command]) -> list[Command]:
        """The commands with what each of them finds; the machines have it afterwards."""
        if packages := self.content.get("packages"):
            self.say(f"packages {', '.join(packages)} ...")
            hosts = dict.fromkeys([*self._containers(LOGIN), *self._containers(NODE)])
            for_each(hosts, lambda host: podman("exec", host, "sh", "-c", _INSTALL, "sh", *packages))
        if images := served_images(self.content.get("served_images", ())):
            self._registry().serve(images, self.release, self.say)
            for_each(self._containers(CONTAINER), self._show_gpus)
        return [self._with_password(command) for command in commands]

    @property
    def sizes(self) -> list[Size]:
        """What the site's nodes have, as its file of commands says."""
        names = [host.name for host in self.what.hosts if NODE in host.groups]
        return sizes_of(self.content.get("sizes", ()), self.what.site.groups, names)

    def pretend(self, *, with_absent: bool) -> str:
        """Has nodes pretend to have the site's sizes; returns what is so from now on, in a line."""
        sizes = self.sizes
        text = described(sizes, with_absent=with_absent)
        self.say(f"{text} ...")
        for controller in self._containers(MASTER):
            for path, changed in (
                (_SLURM_CONF, lambda conf: slurm_conf(conf, sizes, with_absent=with_absent)),
                (_CGROUP_CONF, cgroup_conf),
            ):
                now = changed(self._once(controller, path))
                podman("exec", "--interactive", controller, "tee", path, data=now.encode())
            podman("exec", controller, "systemctl", "restart", "slurmctld")
        for_each(self._containers(NODE), lambda node: podman("exec", node, "systemctl", "restart", "slurmd"))
        self._wait()
        return text

    def _once(self, container: str, path: str) -> str:
        """A file as it was deployed."""
        key = f"{container}:{path}"
        if key not in self._files:
            self._files[key] = podman("exec", container, "cat", path)
        return self._files[key]

    def _wait(self) -> None:
        """Until Slurm gives jobs to all nodes that are there."""
        controller, *_ = self._containers(MASTER)
        wanted = {host.name for host in self.what.hosts if NODE in host.groups}
        deadline = time.monotonic() + _SECONDS_TO_RETURN
        while time.monotonic() < deadline:
            states = self._states(controller)
            if {name for name, state in states.items() if state in _THERE} >= wanted:
                return
            time.sleep(_BETWEEN_LOOKS)
        missing = ", ".join(f"{name} {states.get(name, 'unknown')}" for name in sorted(wanted))
        raise error(
            "rehearsal-sizes-refused",
            f"Slurm does not take nodes that pretend to have the site's sizes: {missing}",
            where="sizes",
            hint="see why with --keep: scontrol show node; or take sizes out of user-commands.yml",
            exit_code=ExitCode.FAILED,
        )

    @staticmethod
    def _states(controller: str) -> dict[str, str]:
        command = "sinfo --all --noheader --Node --format='%N %T' 2>/dev/null || true"
        said = podman("exec", controller, "sh", "-c", command)
        rows = (line.split() for line in said.splitlines())
        return {row[0]: row[1] for row in rows if len(row) > 1}

    def _with_password(self, command: Command) -> Command:
        name = command.get("password_file")
        if not name:
            return command
        user = str(command["user"])
        if user not in self._passwords:
            self._passwords[user] = secrets.token_urlsafe(18)
            line = f"{user}:{self._passwords[user]}\n".encode()
            for host in self._containers(PORTAL):
                podman("exec", "--interactive", host, "chpasswd", data=line)
        return {**command, "files": {**command.get("files", {}), name: self._passwords[user]}}

    def _show_gpus(self, node: str) -> None:
        command = f"test ! -d {_SIMULATED_GPUS.rpartition('/')[0]} || cat > {_SIMULATED_GPUS}"
        podman("exec", "--interactive", node, "sh", "-c", command, data=_MOUNT.encode())

    def _registry(self) -> Registry:
        """On a machine whose port is free for it: not one with a portal."""
        hosts = self.what.hosts
        host = next((host for host in hosts if PORTAL not in host.groups), hosts[0])
        addresses = {member.name: member.address for member in need_lab(self.lab).hosts}
        every = [container_name(self.lab, member.name) for member in hosts]
        return Registry(container_name(self.lab, host.name), addresses[host.name], every)

    def _containers(self, group: str) -> Sequence[str]:
        return [container_name(self.lab, host.name) for host in self.what.hosts if group in host.groups]
