"""What ``deploy users`` does: who may do what on the cluster and why, as the hosts themselves say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import ExitCode, error, shown_path
from deploy.run.ssh import Unanswered, ask
from deploy.site.accounting import declared_members
from deploy.site.inventory import Host, Site

_SUDO = ("sudo", "wheel")
_NO_SHELLS = ("/usr/sbin/nologin", "/sbin/nologin", "/bin/false", "/usr/bin/false")
_SLURMS_OWN = "root"


@dataclass(frozen=True)
class Membership:
    """An account that somebody may charge, and by what."""

    account: str
    qos: tuple[str, ...]
    why: str
    is_default: bool = False
    is_manager: bool = False
    is_closed: bool = False


@dataclass(frozen=True)
class Key:
    """A key that may log in, with its restrictions as authorized_keys has them."""

    type: str
    fingerprint: str
    comment: str
    restrictions: tuple[str, ...]


@dataclass(frozen=True)
class Person:
    """Somebody: where he is from, what he may charge, where he comes in and by what."""

    name: str
    source: str
    """``local``, ``directory``, or ``nowhere``: Slurm knows a name that no host does."""
    uid: int | None = None
    full_name: str = ""
    groups: tuple[str, ...] = ()
    memberships: tuple[Membership, ...] = ()
    level: str = "none"
    """What he may do with Slurm's database."""
    sudo: bool = False
    logins: tuple[str, ...] = ()
    login_why: str = ""
    keys: tuple[Key, ...] = field(default=())
    keys_unread: str = ""
    """Which file of keys could not be read, and why."""


def users_of(inventory: Path, options: Options) -> tuple[Person, ...]:
    """Everybody, by name. Raises DeployError where a host that has to be asked does not answer."""
    with opened(inventory, options, needs_ansible=False) as run:
        site = run.site.resolved
        cluster = str(site.controller.value("slurmctld_cluster_name")).lower()
        charged = _answer(site, options, site.database_host, "charged", {"cluster": cluster})
        names = sorted({row[1] for row in charged["memberships"]} - {_SLURMS_OWN})
        groups = sorted({*_SUDO, *_named(site, "sssd_sudo_groups"), *_named(site, "sssd_allow_groups")})
        login = site.logins[0] if site.logins else site.controller
        known = _answer(site, options, login, "known", {"names": names, "groups": groups})
        declared = declared_members(site.database_host)
        return tuple(
            _person(site, name, known[name], charged, declared)
            for name in sorted(known)
            if name != _SLURMS_OWN
        )


def _answer(
    site: Site, options: Options, host: Host, verb: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    answer = ask({host.name: (verb, arguments)}, site.hosts, options.login, source="people")[host.name]
    trouble = answer.why if isinstance(answer, Unanswered) else answer.get("trouble")
    if trouble:
        raise error(
            "users-not-asked",
            f"it knows who may do what, and does not answer: {trouble}",
            where=host.name,
            hint=f"deploy check {shown_path(site.inventory)} --limit {host.name}",
            exit_code=ExitCode.UNREACHABLE,
        )
    found: dict[str, Any] = answer
    return found


def _named(site: Site, variable: str) -> Iterator[str]:
    for host in site.cluster:
        for entry in host.variables.get(variable) or ():
            yield str(entry["name"] if isinstance(entry, Mapping) else entry)


def _person(
    site: Site,
    name: str,
    said: Mapping[str, Any],
    charged: Mapping[str, Any],
    declared: Mapping[str, Sequence[str]],
) -> Person:
    default, level = charged["users"].get(name, ("", "none"))
    memberships = tuple(
        Membership(
            account,
            tuple(sorted(filter(None, qos.split(",")))),
            _why(account, name, charged, declared),
            is_default=account == default,
            is_manager=name in charged["managers"].get(account, ()),
            is_closed=most == "0",
        )
        for account, user, partition, qos, _default_qos, most in charged["memberships"]
        if user == name and not partition
    )
    if said["source"] == "nowhere":
        return Person(
            name, "nowhere", memberships=memberships, level=level, login_why="no host knows the name"
        )
    logins, why = _logins(site, name, said)
    return Person(
        name,
        said["source"],
        said["uid"],
        said["name"],
        tuple(said["groups"]),
        memberships,
        level,
        said["sudo"],
        logins,
        why,
        tuple(Key(**{**key, "restrictions": tuple(key["restrictions"])}) for key in said["keys"]),
        said["keys_unread"],
    )


def _why(account: str, name: str, charged: Mapping[str, Any], declared: Mapping[str, Sequence[str]]) -> str:
    if name in declared.get(account, ()):
        return "inventory"
    if name in charged["brought"].get(account, ()):
        return "a group of the account"
    return "sacctmgr, by hand"


def _logins(site: Site, name: str, said: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """Where somebody comes in without a job, and why there."""
    if said["shell"] in _NO_SHELLS:
        return (), f"its shell is {said['shell']}"
    if said["closed"]:
        return (), "the account is closed"
    allowed = {*_named(site, "sssd_allow_groups")} if said["source"] == "directory" else set()
    if allowed and not allowed & {*said["groups"]}:
        return (), f"in none of sssd_allow_groups: {', '.join(sorted(allowed))}"
    if said["sudo"]:
        hosts, by = list(site.cluster), "sudo"
    else:
        logins = site.logins
        hosts = [
            host
            for host in site.cluster
            if host in logins or host.variables.get("job_ssh_admits") == "everyone"
        ]
        of_groups = f"group {', '.join(sorted(allowed & {*said['groups']}))}"
        by = of_groups if allowed else f"{said['source']} account"
    shut = {host.name: why for host in hosts if (why := _shut_by_sshd(host, name, said["groups"]))}
    if hosts and len(shut) == len(hosts):
        return (), " or ".join(dict.fromkeys(shut.values()))
    return tuple(host.name for host in hosts if host.name not in shut), by


def _shut_by_sshd(host: Host, name: str, groups: Sequence[str]) -> str:
    """Why a host's sshd lets somebody in by no means (sshd_config(5)); empty where it does."""
    for variable, names in (("ssh_server_allow_users", [name]), ("ssh_server_allow_groups", groups)):
        allowed = {*map(str, host.value(variable) or ())}
        # USER@HOST is for some hosts, from which he may come; what follows an exclamation mark is for others.
        patterns = [entry.partition("@")[0] for entry in allowed if not entry.startswith("!")]
        if allowed and not any(fnmatchcase(one, pattern) for one in names for pattern in patterns):
            return f"in none of {variable}: {', '.join(sorted(allowed))}"
    return ""
