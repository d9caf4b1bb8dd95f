"""``deploy init``: a new site."""

import re
from pathlib import Path
from typing import Annotated

import typer
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.errors import error
from deploy.site.checks import check_site
from deploy.site.creation import create_site
from deploy.site.inventory import LOGIN, MASTER, NODE, SECRETS_FILE, Host, Site
from deploy.site.starter import INVENTORY, SCHEMA, VARIABLES, Machines, starter_files

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*")


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The new site's directory.")],
    *,
    controller: Annotated[str | None, typer.Option(help="Name of the controller.")] = None,
    nodes: Annotated[
        str | None, typer.Option(help="Names of the compute nodes, with ranges as in 'node[1-4],gpu[01-16]'.")
    ] = None,
    login: Annotated[str | None, typer.Option(help="Names of the login nodes.")] = None,
    user: Annotated[str | None, typer.Option("--user", "-u", help="Ansible logs in as this user.")] = None,
    vault_password_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Encrypt the secrets with this password.")
    ] = None,
) -> None:
    """Make a new site: an inventory, every variable with its default and meaning, and fresh secrets.

    The directory is new, or one that holds no site yet. Without host names the inventory shows where they go.

    Examples:
      deploy init mysite
      deploy init mysite --controller ctl1 --nodes 'node[1-4]' --login login1 --user admin

    """
    machines = Machines(controller, _names("--nodes", nodes), _names("--login", login))
    if controller or nodes or login:
        _check(directory / INVENTORY, machines)
    if user is not None and not _USER.fullmatch(user):
        raise error("invalid-option", f"{user!r} is not a user name", where="--user", hint="--user admin")
    create_site(directory, starter_files(machines, user), vault_password_file)
    typer.echo(f"""\
Made a new site in {directory}:
  {INVENTORY:<23} the machines of the cluster
  {VARIABLES:<23} every variable with its default and meaning, commented out
  {SCHEMA:<23} by which editors complete and check variables
  secrets.yml             generated; keep it and its backup private
  .gitignore              keeps secrets and the journal out of a repository

{_sharing(directory, vault_password_file)}

Next: $EDITOR {directory / INVENTORY}
      deploy check {directory / INVENTORY}""")


def _sharing(directory: Path, vault_password_file: Path | None) -> str:
    """How a team comes to the same secrets: a run with others is refused."""
    password = vault_password_file or "FILE"
    steps = [
        *(
            []
            if vault_password_file
            else [f"ansible-vault encrypt --vault-password-file {password} {directory / SECRETS_FILE}"]
        ),
        f"sed -i '/{SECRETS_FILE}/d' {directory / '.gitignore'}",
        f"deploy cluster {directory / INVENTORY} --vault-password-file {password}",
    ]
    numbered = (f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return "\n".join(
        (
            f"Whoever deploys this cluster needs the same {SECRETS_FILE}: a run with others is refused.",
            "A team has it in the site's repository, encrypted, and the file with the password elsewhere:",
            *numbered,
        )
    )


def _names(option: str, text: str | None) -> tuple[str, ...]:
    """The hosts of a node set. Groups of ClusterShell's own configuration mean nothing here."""
    try:
        return tuple(NodeSet(text or "", resolver=RESOLVER_NOGROUP))
    except NodeSetException as problem:
        raise error(
            "invalid-option",
            f"not a set of host names: {problem}",
            where=option,
            hint=f"{option} 'node[1-4]'",
        ) from None


def _check(inventory: Path, machines: Machines) -> None:
    """Compares the future inventory with what every run checks first."""
    groups = {
        MASTER: (machines.controller,) if machines.controller else (),
        NODE: machines.nodes,
        LOGIN: machines.logins,
    }
    hosts = {
        name: Host(name, {}, frozenset(group for group, members in groups.items() if name in members))
        for members in groups.values()
        for name in members
    }
    check_site(Site(inventory, hosts, groups))
