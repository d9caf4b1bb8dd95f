"""The variables of all hosts compared with the schema, and whether anything reads them."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache

from deploy.errors import Finding
from deploy.site.deepops import deepops_finding
from deploy.site.inventory import (
    CACHE,
    CONTAINER,
    DATABASE,
    LOGIN,
    LOGS,
    MASTER,
    NFS,
    NODE,
    PORTAL,
    REGISTRY,
    REST,
    Host,
    Site,
)
from deploy.site.schema import OWN_PREFIX, Option, options
from deploy.site.values import faults, suggestion
from deploy.site.wording import is_computed

_ANSIBLE_PREFIXES = ("ansible_", "inventory_")
_CONNECTION = frozenset(
    f"ansible_{name}"
    for name in (
        "become",
        "become_exe",
        "become_flags",
        "become_method",
        "become_pass",
        "become_password",
        "become_user",
        "connection",
        "host",
        "host_key_checking",
        "password",
        "pipelining",
        "port",
        "private_key_file",
        "python_interpreter",
        "remote_tmp",
        "scp_extra_args",
        "sftp_extra_args",
        "shell_executable",
        "shell_type",
        "ssh_args",
        "ssh_common_args",
        "ssh_executable",
        "ssh_extra_args",
        "ssh_host",
        "ssh_host_key_checking",
        "ssh_pass",
        "ssh_password",
        "ssh_pipelining",
        "ssh_port",
        "ssh_private_key_file",
        "ssh_retries",
        "ssh_timeout",
        "ssh_transfer_method",
        "ssh_use_tty",
        "ssh_user",
        "timeout",
        "user",
    )
)
"""Ansible's own variables, for a name that is nearly one of them: Ansible would ignore it in silence."""

_PLUGINS: Mapping[str, tuple[str, ...]] = {
    "ansible_connection": ("ssh", "paramiko", "paramiko_ssh", "smart", "local"),
    "ansible_become_method": ("sudo", "su"),
}
"""What comes with ansible-core, and fits a Linux machine; what a collection brings has its full name."""

_WORDS = frozenset(
    {"ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args", "ansible_ssh_executable"}
)
"""What ssh gets as words."""

_LOGIN = re.compile(r"[^\s-]\S*")

_READERS: Mapping[str, str] = {
    "enroot": CONTAINER,
    "log_server": LOGS,
    "motd": LOGIN,
    "seff": LOGIN,
    "mariadb": DATABASE,
    "node_health": NODE,
    "package_cache": CACHE,
    "nvidia_driver": NODE,
    "reboot": NODE,
    "slurm_accounts": DATABASE,
    "slurm_reservations": MASTER,
    "slurm_portal": PORTAL,
    "slurm_registry": REGISTRY,
    "slurm_rest": REST,
    "slurmctld": MASTER,
    "slurmdbd": DATABASE,
    "slurmd": NODE,
    "ssh_hosts": NODE,
    "scratch": NODE,
    "nfs_server": NFS,
}
"""The group whose hosts read a role's variables; without hosts for the database it is the controller's."""

_EVERYWHERE = frozenset(
    {
        "bootstrap",
        "deploy_metrics",
        "environment_modules",
        "hosts_file",
        "job_ssh",
        "munge",
        "node_exporter",
        "slurm_auth",
        "slurm_packages",
        "ssh_server",
        "time_sync",
        "user_environment",
        "users",
    }
)
"""Roles that every host of a cluster reads; of the others the hosts follow from what the site declares."""

_BY_ONE_FOR_ALL = frozenset({"slurm_accounts"})
"""Roles that run on the first host of the database for all."""

_ALIKE = (
    "munge_key",
    "slurm_auth_key",
    "slurm_auth_type",
    "ssh_server_authority_key",
    "users_slurm_gid",
    "users_slurm_uid",
)
"""What must be the same on every host of a cluster."""

_ALIKE_ROLES: Mapping[str, str] = {"slurmctld": "controller", "slurmdbd": "host of slurmdbd"}
"""Roles whose variables must be the same on all that read them: one takes over from another."""

_OF_EACH = frozenset(
    {
        "slurmctld_may_lose_jobs",
        "slurmctld_state_written_through",
        "slurmdbd_address",
        "slurmdbd_debug_level",
        "slurmdbd_start_timeout",
    }
)
"""But for these, which say nothing of the cluster."""


def readers(site: Site, role: str) -> tuple[Host, ...] | None:
    """The hosts that read a role's variables; None where they follow from what a site declares."""
    if role in _EVERYWHERE:
        return site.cluster
    group = _READERS.get(role)
    if group == LOGIN:
        return site.logins
    if group == DATABASE and (site.controllers or site.group(DATABASE)):
        return site.accounting_lead if role in _BY_ONE_FOR_ALL else site.database_hosts
    return site.group(group) if group else None


def check_variables(site: Site) -> Iterator[Finding]:
    """Each value of each variable once, wherever it is set."""
    seen: set[tuple[str, str, str, int]] = set()
    for host in site.cluster:
        for name, value in host.variables.items():
            found = host.resolutions.get(name)
            key = (
                name,
                host.origins.get(name, host.name),
                json.dumps(value, sort_keys=True, default=str),
                id(found),
            )
            if key not in seen and not name.startswith(OWN_PREFIX):
                seen.add(key)
                yield from _check(host, name, value)
    yield from _unread(site)
    yield from _unlike(site)


def _check(host: Host, name: str, value: object) -> Iterator[Finding]:
    option = options().get(name)
    if option:
        yield from _check_known(host, option, value)
    elif name.startswith(_ANSIBLE_PREFIXES):
        yield from _check_connection(host, name, value)
    elif finding := deepops_finding(host.where(name), name, value):
        yield finding
    else:
        yield Finding(
            host.where(name),
            "unknown-variable",
            f"no role knows the variable {name!r}",
            f"{suggestion(name, options())}; your own helper variables start with {OWN_PREFIX!r}",
        )


def _check_known(host: Host, option: Option, value: object) -> Iterator[Finding]:
    if is_computed(option.spec):
        yield Finding(
            host.where(option.name),
            "computed-variable",
            f"{option.name} follows from the inventory; what is set here would contradict it",
            "remove it",
        )
        return
    resolution = host.resolutions.get(option.name)
    resolved = faults(option.name, resolution.value) if resolution and resolution.is_known else []
    is_secret = option.secret or bool(resolution and resolution.vaulted)
    for message, hint in faults(option.name, value) or resolved:
        shown = f"{option.name}: the value is wrong (not shown: it is secret)" if is_secret else message
        yield Finding(host.where(option.name), "invalid-value", shown, hint)


def _check_connection(host: Host, name: str, value: object) -> Iterator[Finding]:
    if hint := _meant_connection(name):
        message = f"Ansible knows no variable {name!r} and would ignore it"
        yield Finding(host.where(name), "unknown-variable", message, hint)
    said = host.connection.get(name, value)
    # Of an address that is a template another check speaks.
    if _is_open(said) and not name.endswith("_host"):
        yield Finding(
            host.where(name),
            "undefined-variable",
            f"{name} cannot be resolved for {host.name}",
            "set what its template names; facts of hosts are not known before they are reached",
        )
    elif name in {"ansible_port", "ansible_ssh_port"} and not _is_port(said):
        yield Finding(
            host.where(name),
            "invalid-value",
            f"{name} is {value!r}, not a port from 1 to 65535",
            "write the port of sshd, or remove it for 22",
        )
    elif name in {"ansible_user", "ansible_ssh_user"} and not (said is None or _LOGIN.fullmatch(str(said))):
        yield Finding(
            host.where(name),
            "invalid-value",
            f"{name} is {value!r}, not a login name",
            "write the account that deploy logs in with, or remove it for your own",
        )
    elif name in _PLUGINS and "." not in str(said) and str(said) not in (*_PLUGINS[name], "None"):
        yield Finding(
            host.where(name),
            "invalid-value",
            f"{name} is {value!r}, not one of {', '.join(_PLUGINS[name])}",
            "remove it; what a collection brings is written with its full name: namespace.collection.name",
        )
    elif name in _WORDS and not _are_words(str(said)):
        yield Finding(
            host.where(name),
            "invalid-value",
            f"{name} has a quote that is not closed",
            'write for example: -o ProxyCommand="ssh -W %h:%p bastion"',
        )


def _are_words(text: str) -> bool:
    try:
        shlex.split(text)
    except ValueError:
        return False
    return True


def _is_open(value: object) -> bool:
    return isinstance(value, str) and ("{{" in value or "{%" in value)


@cache
def _meant_connection(name: str) -> str:
    """Which of Ansible's connection variables a name is a slip of; empty for a right or a foreign one."""
    hint = "" if name in _CONNECTION else suggestion(name, _similar(name))
    return hint if "did you mean" in hint else ""


def _similar(name: str) -> dict[str, object]:
    """Names that differ from this one in a letter or two: facts and other plugins' names stay out."""
    return {known: None for known in _CONNECTION if abs(len(known) - len(name)) <= 1 and _near(known, name)}


def _near(one: str, other: str) -> bool:
    """Whether a single letter was added, left out, changed or swapped with its neighbour."""
    if len(one) == len(other):
        places = [index for index in range(len(one)) if one[index] != other[index]]
        swapped = len(places) == 2 and sorted(one[i] for i in places) == sorted(other[i] for i in places)  # noqa: PLR2004
        return len(places) == 1 or (swapped and places[1] == places[0] + 1)
    short, long = sorted((one, other), key=len)
    return any(long[:index] + long[index + 1 :] == short for index in range(len(long)))


def _is_port(value: object) -> bool:
    text = str(value)
    return text.isascii() and text.isdigit() and 1 <= int(text) <= 65535  # noqa: PLR2004


def _unread(site: Site) -> Iterator[Finding]:
    """Variables that no host which would read them has."""
    for name, hosts in _setters(site).items():
        role = options()[name].role
        group = _READERS.get(role, "")
        if group == DATABASE and not site.group(DATABASE):
            group = MASTER
        reading = site.group(group) and readers(site, role)
        if reading and not any(name in host.variables for host in reading):
            yield Finding(
                hosts[0].where(name),
                "unread-variable",
                f"{name} is read on the hosts of [{group}], and none of them has it: it is set for "
                f"{', '.join(host.name for host in hosts[:3])}{' …' if len(hosts) > 3 else ''}",  # noqa: PLR2004
                f"move it to group_vars/{group}.yml",
            )


def _unlike(site: Site) -> Iterator[Finding]:
    """Variables with different values where all hosts must have the same, or all of a service."""
    for name, saying in _setters(site).items():
        option = options()[name]
        if name in _ALIKE:
            # The others have the default.
            hosts = site.cluster if "default" in option.spec else tuple(saying)
            everywhere, file = "on every host", "all"
        elif option.role in _ALIKE_ROLES and name not in _OF_EACH:
            hosts = readers(site, option.role) or ()
            everywhere = f"on every {_ALIKE_ROLES[option.role]}"
            file = DATABASE if option.role == "slurmdbd" and site.group(DATABASE) else MASTER
        else:
            continue
        values = {json.dumps(host.value(name), default=str): host for host in hosts}
        if len(values) > 1:
            first, second = sorted(list(values.values())[:2], key=lambda host: name in host.variables)
            yield Finding(
                second.where(name),
                "differing-values",
                f"{name} must be the same {everywhere}, and {first.name} has another one than {second.name}",
                f"set it once, in group_vars/{file}.yml",
            )


def _setters(site: Site) -> dict[str, list[Host]]:
    """The hosts that have each variable of a role."""
    found: dict[str, list[Host]] = {}
    for host in site.cluster:
        for name in host.variables.keys() & options().keys():
            found.setdefault(name, []).append(host)
    return found
