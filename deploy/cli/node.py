"""``deploy node``: machines that come and go."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.members import Members
from deploy.cli.options import Options, ask_password
from deploy.cli.parameters import AskPass, ExtraVariables, Inventory, PrivateKey, User, VaultPasswordFile
from deploy.cli.playbook_run import open_site, shown_path
from deploy.cli.records import Records, login_of
from deploy.cli.verbs import plain_typer
from deploy.errors import ExitCode, error
from deploy.run.cluster_lock import cluster_lock
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.settings import Settings
from deploy.run.ssh import Unanswered
from deploy.site.inventory import Host, Site

node_app = plain_typer(no_args_is_help=True, help="Machines that come and go.")

_STAYS = "accounts, files and packages stay there: install the machine anew where it shall serve others"


@node_app.callback()
def _of_nodes() -> None:
    """Keeps `remove` a verb of its own: Typer would take a single one for the whole."""


@node_app.command()
def remove(
    inventory: Inventory,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Its name in the inventory that had it.")],
    *,
    gone: Annotated[
        bool, typer.Option("--gone", help="Only forget it: the machine is no more, or was installed anew.")
    ] = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Take from a machine what makes it a member of the cluster, and forget it.

    First delete its line in the inventory, then type `deploy cluster`, which takes it from Slurm and names it
    until this was done. This stops and disables Slurm's daemons and munge there, and removes the cluster's
    munge key, slurmdbd's password and deploy's records. A machine on which jobs run is left as it is. Whoever
    may have copied the key is shut out by `deploy cluster --new-secrets`.

    Examples:
      deploy node remove inventory.ini node3
      deploy node remove inventory.ini node3 --gone

    """
    options = Options(
        user=user,
        private_key=private_key,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
    )
    for line in _remove(inventory, node, options, is_gone=gone):
        typer.echo(line)


def _remove(inventory: Path, name: str, options: Options, *, is_gone: bool) -> list[str]:
    with (
        open_site(inventory, options, Settings(), needs_ansible=False) as opened,
        site_lock(state_directory(opened.site.directory)),
    ):
        _refuse_member(opened.site, name)
        done = _remove_alone(opened.site, name, options, is_gone=is_gone)
    if is_gone:
        again = f"deploy cluster {shown_path(inventory)} --new-secrets"
        return [
            f"{name}: forgotten. Whoever has its disk has the cluster's munge key; to replace it: {again}"
        ]
    return [f"{name}: no more {what}" for what in done] + [f"{name}: forgotten; {_STAYS}"]


def _remove_alone(site: Site, name: str, options: Options, *, is_gone: bool) -> list[str]:
    """What was taken from a host, while nobody else is at work on the cluster."""
    # A controller that could not be asked for its lock is not asked for its list either, and ends this.
    with cluster_lock(site.controllers, login_of(options), site.directory, _say_lost):
        members = Members(site, options)
        looks = Records(site, options).verify(host.name for host in site.controllers)
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


def _say_lost(controller: str) -> None:
    sys.stderr.write(f"deploy: {controller}: the connection that holds the cluster's lock ended\n")


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
