"""Parameters that several verbs have, each declared once."""

import getpass
from pathlib import Path
from typing import Annotated

import typer

from deploy.engine.options import Options
from deploy.errors import error

_MOST_HOURS = 168
Inventory = Annotated[
    Path, typer.Argument(metavar="INVENTORY", help="An Ansible inventory: a file, or a directory of them.")
]
Limit = Annotated[str | None, typer.Option("--limit", "-l", help="Only these hosts.")]
LimitOfRun = Annotated[
    str | None, typer.Option("--limit", "-l", help="Only these hosts, and what the controller must know.")
]
Tags = Annotated[str | None, typer.Option("--tags", "-t", help="Only tasks with these tags.")]
SkipTags = Annotated[str | None, typer.Option(help="All tasks but those with these tags.")]
AsData = Annotated[bool, typer.Option("--json", help="For programs.")]
User = Annotated[str | None, typer.Option("--user", "-u", help="Log in as this user.")]
PrivateKey = Annotated[
    Path | None, typer.Option("--private-key", "--key-file", help="Log in with this SSH key.")
]
AskPass = Annotated[bool, typer.Option("--ask-pass", "-k", help="Ask for the login password.")]
AskBecomePass = Annotated[bool, typer.Option("--ask-become-pass", "-K", help="Ask for the sudo password.")]
Forks = Annotated[int | None, typer.Option("--forks", "-f", min=1, help="Hosts at once.")]
PlainAnsible = Annotated[
    bool,
    typer.Option(
        "--plain-ansible",
        help="Use ansible-playbook as it is, without mitogen and without deploy's changes to it; slower. "
        "Also: DEPLOY_PLAIN_ANSIBLE=1 in the environment.",
    ),
]
ExtraVariables = Annotated[
    list[str] | None, typer.Option("--extra-vars", "-e", help="name=value, JSON, or @file.")
]
NewSecrets = Annotated[
    bool,
    typer.Option("--new-secrets", help="Replace secrets that hosts have and this site does not know."),
]
Rotate = Annotated[
    list[str] | None,
    typer.Option(
        "--rotate", metavar="SECRET", help="Make another one, as of munge_key, for the site and its hosts."
    ),
]
VaultPasswordFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="Password of vaulted variables and of secrets.yml."),
]


def ask_password(what: str, *, is_wanted: bool) -> str | None:
    """Asks on the terminal, where it is wanted."""
    return getpass.getpass(f"{what} password: ") if is_wanted else None


def login_options(
    user: str | None,
    private_key: Path | None,
    extra: list[str] | None,
    vault_password_file: Path | None,
    connection_password: str | None = None,
) -> Options:
    """The options of a verb that takes no more than how hosts are reached and what variables say."""
    return Options(
        user=user,
        private_key=private_key,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=connection_password,
    )


def say(line: str) -> None:
    """Something beside what was asked for, as whoever typed the command should see it."""
    typer.echo(f"deploy: {line}", err=True)


def burn_in_hours(hours: float | None) -> float:
    """The hours of a burn-in, 0 where none is wanted. Raises DeployError ``invalid-option``."""
    if hours is not None and not 0 < hours <= _MOST_HOURS:
        raise error(
            "invalid-option",
            f"{hours:g} is not a number of hours above 0, and at most {_MOST_HOURS}",
            where="--burn-in",
            hint="name hours, as in --burn-in 12 or --burn-in 0.5",
        )
    return hours or 0.0
