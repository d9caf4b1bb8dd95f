"""What ``deploy node remove`` does: a host that left the inventory leaves the cluster, too."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deploy.engine.alone import alone
from deploy.engine.members import Members
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.errors import ExitCode, error, shown_path
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.ssh import Unanswered
from deploy.site.inventory import Host, Site


def remove(
    inventory: Path, name: str, options: Options, say: Callable[[str], None], *, is_gone: bool
) -> list[str]:
    """What was taken from a host that left; where it ``is_gone``, it is only forgotten.

    ``say`` hears of a lock that was lost. Raises DeployError, and then nothing was forgotten.
    """
    with (
        opened(inventory, options, needs_ansible=False) as run,
        site_lock(state_directory(run.site.directory)),
    ):
        _refuse_member(run.site, name)
        # A controller that could not be asked for its lock is not asked for its list either, and ends this.
        with alone(replace(run, say=say), lambda _: None, is_needed=True):
            return _remove(run, name, is_gone=is_gone)


def _remove(run: Run, name: str, *, is_gone: bool) -> list[str]:
    """What was taken from a host, while nobody else is at work on the cluster."""
    site, members = run.site, run.members
    looks = run.records.verify(run.controllers)
    for asked, look in looks.items():
        if isinstance(look, Unanswered):
            raise _silent(asked, f"it keeps the list of hosts, and does not answer: {look.why}", site)
    known = members.known(looks)
    host = _departed(site, members.hosts(known), name)
    done = [] if is_gone else _leave(members, site, host)
    for asked, answer in members.forget(known, name).items():
        if isinstance(answer, Unanswered):
            raise _silent(asked, f"it keeps the list of hosts, and does not answer: {answer.why}", site)
    return done


def _refuse_member(site: Site, name: str) -> None:
    if name in {host.name for host in site.cluster}:
        raise error(
            "node-still-in-inventory",
            "the inventory says that this host is of the cluster",
            where=name,
            hint=f"delete it there, then: deploy cluster {shown_path(site.inventory)}, and this again",
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
    controller = site.controller
    jobs = members.ask({controller.name: ("jobs", {"node": host.name})}, site.hosts)[controller.name]
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
