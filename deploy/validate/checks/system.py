"""What kernels do for users: one kernel on nodes of a kind, control groups, quotas, file servers."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from deploy.site.inventory import NFS, Host, Site
from deploy.site.storage import exports, is_nfs_client, mount_point, network_filesystems, nfs_mounts
from deploy.validate.context import Context
from deploy.validate.declared import declared_quotas
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed

_SHOWN = 3
_OF_OTHERS = 0o055
"""With one of these in a home's mode it is no secret what is in it."""
_FLAVOUR = re.compile(r"-[a-z].*")
"""How kernels are told apart that are built differently: 6.1.0-9-cloud-amd64 is none newer than -amd64."""


def kernels(context: Context) -> Iterator[Result]:
    """Nodes of one release run one kernel, the newest that is installed."""
    told = {name: context.system[name]["kernel"] for name in context.nodes if name in context.system}
    said: dict[str, tuple[str, str]] = {}
    like: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for name, kernel in told.items():
        running = str(kernel["running"])
        of_its_kind = [one for one in kernel["installed"] if _flavour(one) == _flavour(running)]
        newest = max([*of_its_kind, running], key=_order)
        if newest != running:
            hint = f"deploy node reboot {context.inventory} {name} --reason 'new kernel'"
            said[name] = f"the kernel {running} runs, and {newest} is installed", hint
        else:
            like[kernel["system"], _flavour(running)][name] = running
    for (system, _), running_on in like.items():
        counts = Counter(running_on.values())
        usual = max(counts, key=lambda kernel: (counts[kernel], _order(kernel)))
        for name, running in running_on.items():
            if running != usual:
                hint = f"deploy update {context.inventory}   (which kernel which node has: uname -r)"
                said[name] = f"the kernel {running} runs, on most nodes with {system} {usual}", hint
    for name, kernel in told.items():
        if name in said:
            message, hint = said[name]
            yield failed(message, name, hint=hint)
        else:
            yield passed(kernel["running"], name)


def _flavour(kernel: str) -> str:
    match = _FLAVOUR.search(kernel)
    return match[0] if match else ""


def _order(kernel: str) -> list[tuple[int, str]]:
    """By which kernels of a flavour sort as their versions do."""
    return [(int(number or -1), word) for number, word in re.findall(r"(\d+)|(\D+)", kernel)]


def control_groups(context: Context) -> Iterator[Result]:
    """Every node has the control groups by which Slurm keeps jobs in their limits."""
    declared = context.value("slurmctld_cgroup_parameters")
    parameters: Mapping[str, Any] = declared if isinstance(declared, Mapping) else {}
    plugin = str(parameters.get("CgroupPlugin", "")).lower()
    if plugin == "disabled":
        yield not_applicable("slurmctld_cgroup_parameters has CgroupPlugin: disabled")
        return
    limits_memory = str(parameters.get("ConstrainRAMSpace", "yes")).lower() in {"yes", "true"}
    for name in (name for name in context.nodes if name in context.system):
        told = context.system[name]["control_groups"]
        line = f", by its kernel line: {' '.join(told['words'])}" if told["words"] else ""
        only = told["known"] == [1]
        expected = 1 if only or plugin == "cgroup/v1" else 2
        if told["version"] != expected:
            alone = ", the only one that its Slurm knows" if only else ""
            why = f"control groups are of version {told['version']} instead of {expected}{alone}{line}"
        elif expected > 1 and limits_memory and "memory" not in told["controllers"]:
            why = f"control groups have no controller of memory{line}"
        else:
            yield passed(f"version {expected}", name)
            continue
        grub = "the kernel line (/etc/default/grub; update-grub)"
        if expected == 1:
            first = f"add systemd.unified_cgroup_hierarchy=0 to {grub}"
        elif line:
            first = f"take those words from {grub}"
        else:
            first = "cat /proc/cmdline; findmnt /sys/fs/cgroup"
        hint = f"{first}   (on {name}); then: deploy node reboot {context.inventory} {name} --reason cgroups"
        yield failed(why, name, hint=hint)


def quotas(context: Context) -> Iterator[Result]:
    """Limits of space and files that the site declares are in force."""
    declared = {host.name: declared_quotas(host) for host in context.site.cluster}
    declared = {name: kinds for name, kinds in declared.items() if kinds}
    if not declared:
        yield not_applicable("no host has quotas_filesystems")
    for name, wanted in declared.items():
        if name not in context.system:
            continue
        answer = context.system[name]
        wrong = [
            f"{path}: {why}"
            for path, kinds in wanted.items()
            for why in _not_in_force(answer["quotas"].get(path, {}), kinds)
        ]
        hint = f"repquota -sug {' '.join(wanted)}; quotaon -ug {' '.join(wanted)}   (on {name})"
        if answer["serves_quotas"] is False:
            wrong.append("nobody answers NFS clients that ask for theirs")
            hint += "; systemctl start quotarpc"
        if wrong:
            yield failed("; ".join(wrong), name, hint=hint)
        else:
            yield passed(f"in force on {', '.join(wanted)}", name)


def _not_in_force(states: Mapping[str, str], kinds: Sequence[str]) -> Iterator[str]:
    if states.get("why"):
        yield states["why"]
        return
    for kind in kinds:
        state = states.get(kind, "off")
        if state != "enforced":
            what = "are counted and not enforced" if state == "accounting" else f"are {state}"
            yield f"quotas of {kind}s {what}"


@dataclass
class _Server:
    """What clients say of a file server, by directory there; ``name`` is a host's or an address."""

    name: str
    is_of_site: bool
    silent: dict[str, list[str]] = field(default_factory=dict)
    open: dict[str, list[str]] = field(default_factory=dict)
    clients: set[str] = field(default_factory=set)


def file_servers(context: Context) -> Iterator[Result]:
    """File servers answer, and to those of the site root of a client is nobody."""
    servers: dict[str, _Server] = {}
    for host in context.site.cluster:
        for path, name, is_of_site in _mounts(context.site, host):
            server = servers.setdefault(name, _Server(name, is_of_site))
            if host.name in context.answers.looks:
                server.clients.add(host.name)
                if path in context.answers.looks[host.name].get("silent", []):
                    server.silent.setdefault(path, []).append(host.name)
                elif is_of_site and _is_root(context, host.name, path):
                    server.open.setdefault(path, []).append(host.name)
    if not servers:
        yield not_applicable("the site mounts no file system from elsewhere")
    for server in servers.values():
        yield _of(context, server)


def _of(context: Context, server: _Server) -> Result:
    said = [f"{path} does not answer on {_some(clients)}" for path, clients in sorted(server.silent.items())]
    if said:
        where = f"   (on {server.name})" if server.is_of_site else f"   (on {_first(server.silent)})"
        hint = f"{'systemctl status nfs-server' if server.is_of_site else 'nfsstat -m'}; dmesg --level=warn"
        return failed("; ".join(said), server.name, hint=hint + where)
    declared = _declared_open(context.site, server.name)
    found = {path: [*clients] for path, clients in server.open.items() if path not in declared}
    table = context.system.get(server.name, {}).get("open_exports", {})
    said = [f"root of {_some(clients)} is root in {path}" for path, clients in sorted(found.items())]
    said += [
        f"{path} is exported to {_some(clients)} with no_root_squash"
        for path, clients in sorted(table.items())
        if server.is_of_site and path not in declared
    ]
    if said:
        again = f"deploy cluster {context.inventory} --limit {server.name}"
        hint = f"exportfs -v; grep -r no_root_squash /etc/exports /etc/exports.d; {again}; exportfs -r"
        return failed("; ".join(said), server.name, hint=f"{hint}   (exportfs on {server.name})")
    if not server.clients:
        return not_measured("none of its clients could be asked", server.name)
    squashed = ", and root of them is nobody" if server.is_of_site and not declared else ""
    return passed(f"{len(server.clients)} clients have answers{squashed}", server.name)


def _mounts(site: Site, host: Host) -> Iterator[tuple[str, str, bool]]:
    """What a host mounts from elsewhere: where, from which host or address, whether that is the site's."""
    names = {server.cluster_address: server.name for server in site.group(NFS)}
    for entry in nfs_mounts(site, host) if is_nfs_client(site, host) else []:
        server = str(entry.get("server", ""))
        yield str(entry["path"]), names.get(server, server), server in names
    for further in network_filesystems(host):
        servers = further.get("servers")
        first = str(servers[0]) if isinstance(servers, list) and servers else str(further.get("type"))
        yield str(further["path"]), first, False


def _is_root(context: Context, host: str, path: str) -> bool:
    """Whether root of a host saw into a home below a directory that nobody but its owner may see into."""
    told = (context.system.get(host) or {}).get("root_sees")
    if not told or not PurePosixPath(told["home"]).is_relative_to(path):
        return False
    return bool(told["seen"]) and not told["mode"] & _OF_OTHERS


def _declared_open(site: Site, server: str) -> set[str]:
    """The directories, as the server and as clients call them, that the site itself exports so."""
    found: set[str] = set()
    for host in site.group(NFS):
        for entry in exports(host) if host.name == server else []:
            options = entry.get("options")
            words = options if isinstance(options, list) else []
            if entry.get("root_squash") is False or "no_root_squash" in words:
                found |= {str(entry.get("path")), mount_point(entry)}
    return found


def _first(found: Mapping[str, list[str]]) -> str:
    return next(iter(found.values()))[0]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
