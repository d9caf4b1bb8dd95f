"""What ``deploy node remove`` does: a host that left the inventory leaves the cluster, too."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy.engine.alone import alone
from deploy.engine.drains import Ledger, Way
from deploy.engine.fit import Nodes
from deploy.engine.members import Members
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.errors import DeployError, ExitCode, error, shown_path
from deploy.judge.leading import LEADS, STANDS_BY
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import DATABASE, MASTER, REST, Host, Site
from deploy.site.origin import host_lines
from deploy.site.secrets import OF_MEMBERS

_WHY = "remove"


@dataclass(frozen=True)
class Removed:
    """What was ``done``; for a node that the inventory still has, the ``lines`` that name it there.

    ``keys`` are the secrets that the host had, which somebody may have kept a copy of.
    """

    done: tuple[str, ...]
    lines: tuple[str, ...] = ()
    keys: tuple[str, ...] = ("munge_key",)


@dataclass(frozen=True)
class Wanted:
    """How a host leaves: it ``is_gone``, and only forgotten; or it loses its jobs, which are waited for."""

    is_gone: bool = False
    waits: bool = False
    way: Way = field(default_factory=Way)


def remove(
    inventory: Path, name: str, options: Options, say: Callable[[str], None], wanted: Wanted
) -> Removed:
    """Takes from a host what makes it a member of the cluster.

    A compute node that the inventory still has is drained first; the inventory itself is never edited.
    ``say`` hears of a lock that was lost. Raises DeployError, and then nothing was forgotten.
    """
    with opened(inventory, options, needs_ansible=False) as run:
        site = run.site
        is_member = name in {host.name for host in site.cluster}
        if is_member:
            _empty(run, name, wanted, say)
        with (
            site_lock(state_directory(site.directory)),
            # A controller that could not be asked for its lock is not asked for its list either.
            alone(replace(run, say=say), lambda _: None, is_needed=True),
        ):
            if not is_member:
                return _remove(run, name, is_gone=wanted.is_gone)
            host = site.hosts[name]
            done = [] if wanted.is_gone else _leave(run.members, site, host)
    lines = (*host_lines(site.inventory, name), *_host_vars(site, name))
    return Removed(tuple(done), lines, _keys(site, host))


def _keys(site: Site, host: Host) -> tuple[str, ...]:
    """The secrets that a host has: all have one, and servers those of what runs on any of them."""
    has_slurms = site.controller.value("slurm_auth_type") == "auth/slurm"
    is_server = bool(host.groups & {MASTER, DATABASE})
    return (
        "slurm_auth_key" if has_slurms else "munge_key",
        *(("slurm_tokens_key",) if is_server and site.group(REST) else ()),
        *(("slurmdbd_database_password",) if is_server else ()),
        *((OF_MEMBERS,) if DATABASE in host.groups and site.database_arbiter else ()),
    )


def _empty(run: Run, name: str, wanted: Wanted, say: Callable[[str], None]) -> None:
    """Drains a node that is to leave. Raises DeployError ``node-has-jobs`` where nobody waits for them."""
    if name not in {node.name for node in run.site.nodes}:
        raise _still_member(run.site, name)
    ledger = Ledger(run.site, run.options)
    Nodes(ledger, say).known([name], "remove")
    if wanted.waits:
        ledger.emptied([name], _WHY, wanted.way, say)
        return
    (node,) = ledger.drain([name], _WHY, wanted.way, say)
    if node.jobs:
        raise error(
            "node-has-jobs",
            f"it is drained, and jobs run there: {', '.join(node.jobs)}",
            where=name,
            hint="the same again when they have ended, or now with --wait",
            exit_code=ExitCode.FAILED,
        )


def _host_vars(site: Site, name: str) -> list[str]:
    """The host's own variables beside the inventory."""
    places = (site.directory / "host_vars" / f"{name}{suffix}" for suffix in ("", ".yml", ".yaml"))
    return [shown_path(place) for place in places if place.exists()]


def _remove(run: Run, name: str, *, is_gone: bool) -> Removed:
    """Takes from a host, while nobody else is at work on the cluster."""
    site, members = run.site, run.members
    looks = run.records.verify(run.controllers)
    for asked, look in looks.items():
        if isinstance(look, Unanswered):
            raise _silent(asked, f"it keeps the list of hosts, and does not answer: {look.why}", site)
    known = members.known(looks)
    host = _departed(site, members.hosts(known), name)
    if MASTER in host.groups and not is_gone:
        _refuse_leading(run, name)
    done = [] if is_gone else _leave(members, site, host)
    for asked, answer in members.forget(known, name).items():
        if isinstance(answer, Unanswered):
            raise _silent(asked, f"it keeps the list of hosts, and does not answer: {answer.why}", site)
    return Removed(tuple(done), keys=_keys(site, host))


def _refuse_leading(run: Run, name: str) -> None:
    """Raises DeployError ``controller-leads`` where nobody would lead without it."""
    for controller in run.controllers:
        hosts, login = run.site.hosts, run.options.login
        answer = ask({controller: ("stand", {})}, hosts, login, source="leading")[controller]
        if isinstance(answer, Unanswered) or "trouble" in answer:
            continue
        stands = {other: said["stands"] for other, said in answer.items()}
        if stands.get(name) == LEADS and STANDS_BY not in stands.values():
            cluster = f"deploy cluster {shown_path(run.site.inventory)}"
            raise error(
                "controller-leads",
                "nothing was changed: its slurmctld leads, and no other one stands by, so nobody would lead",
                where=name,
                hint=f"systemctl start slurmctld   (on {run.site.controller.name}); when that one leads, the "
                f"same again. Where it does not start: put {name}'s line back, {cluster}; then delete it "
                "again, and the same again",
                exit_code=ExitCode.FAILED,
            )
        return


def _still_member(site: Site, name: str) -> DeployError:
    cluster = f"deploy cluster {shown_path(site.inventory)}"
    # A run is refused while a controller runs that left the inventory.
    is_one_of_several = len(site.controllers) > 1 and MASTER in site.hosts[name].groups
    then = f"this again, and after it: {cluster}" if is_one_of_several else f"{cluster}, and this again"
    return error(
        "node-still-in-inventory",
        "the inventory says that this host is of the cluster, and it is no compute node, which is drained",
        where=name,
        hint=f"delete it there, then: {then}",
    )


def _departed(site: Site, hosts: dict[str, Host], name: str) -> Host:
    if name not in hosts:
        known = (
            f"these left and are not gone: {', '.join(sorted(hosts))}" if hosts else "none that left is known"
        )
        raise error(
            "node-not-known",
            f"no run on this cluster had such a host, or it is gone already; {known}",
            where=name,
            hint=f"deploy status {shown_path(site.inventory)}",
        )
    return hosts[name]


def _leave(members: Members, site: Site, host: Host) -> list[str]:
    """What was taken from a host; raises DeployError while it has jobs, and where it cannot be done."""
    for controller in site.controllers:
        jobs = members.ask({controller.name: ("jobs", {"node": host.name})}, site.hosts)[controller.name]
        if not isinstance(jobs, Unanswered):
            break
    if isinstance(jobs, Unanswered):
        raise _silent(controller.name, f"it knows the jobs, and does not answer: {jobs.why}", site)
    answer = {"jobs": jobs, "holds": [], "done": []} if jobs else members.leave(host)
    if isinstance(answer, Unanswered):
        raise error(
            "node-not-asked",
            f"it cannot be asked: {answer.why}",
            where=host.name,
            hint=f"when it answers, the same again; if the machine is no more: "
            f"deploy node remove {shown_path(site.inventory)} {host.name} --gone",
            exit_code=ExitCode.UNREACHABLE,
        )
    if answer["jobs"]:
        raise error(
            "node-has-jobs",
            f"jobs run there: {', '.join(answer['jobs'])}",
            where=host.name,
            hint=f"wait for them, or end them with scancel on {controller.name}, then the same again",
            exit_code=ExitCode.FAILED,
        )
    if answer["holds"]:
        raise error(
            "node-not-left",
            f"this could not be taken from it: {', '.join(answer['holds'])}",
            where=host.name,
            hint="systemctl status slurmd munge   (there)",
            exit_code=ExitCode.FAILED,
        )
    return list(answer["done"])


def _silent(name: str, message: str, site: Site) -> Exception:
    hint = f"deploy check {shown_path(site.inventory)} --limit {name}"
    return error("controller-silent", message, where=name, hint=hint, exit_code=ExitCode.UNREACHABLE)
