"""The command itself: its verbs, and the only place that exits."""

import os
import sys
import tempfile
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from deploy import __version__
from deploy.cli.verbs import Verb, plain_typer
from deploy.errors import MEANINGS, DeployError, ExitCode, internal_error

VERBS = (
    Verb("init", "deploy.cli.init:init", "Make a new site."),
    Verb("bootstrap", "deploy.cli.bootstrap:bootstrap", "Let your ssh key in on new machines."),
    Verb("check", "deploy.cli.check:check", "Say what is wrong with a site and its machines."),
    Verb(
        "plan",
        "deploy.cli.plan:plan",
        "Show what a run would do, and which jobs it touches.",
        reads_inventory=True,
    ),
    Verb("replay", "deploy.cli.replay:replay", "Show which jobs of last month a run would have refused."),
    Verb(
        "cluster",
        "deploy.cli.cluster:cluster",
        "Make the machines of an inventory a cluster.",
        reads_inventory=True,
    ),
    Verb(
        "upgrade",
        "deploy.cli.upgrade:upgrade",
        "Bring Slurm to the release that the site wants, while jobs run.",
    ),
    Verb("status", "deploy.cli.status:status", "Show what the cluster is like now."),
    Verb("users", "deploy.cli.users:users", "Show who may do what on the cluster, and why."),
    Verb("validate", "deploy.cli.validate:validate", "Measure whether the cluster does what it promises."),
    Verb("try", "deploy.cli.try_commands:try_commands", "Type what users type; say what came out otherwise."),
    Verb("report", "deploy.cli.report:report", "Show what a run did."),
    Verb(
        "node",
        "deploy.cli.node:node_app",
        "Take nodes out of service and back; take machines off.",
    ),
    Verb("failover", "deploy.cli.failover:failover", "Have another of several controllers lead."),
    Verb("failback", "deploy.cli.failover:failback", "Have the first of several controllers lead again."),
    Verb("backup", "deploy.cli.backup:backup", "Keep Slurm's queue, its accounting and the site."),
    Verb("restore", "deploy.cli.restore:restore", "Make the cluster of a backup again."),
    Verb(
        "drill", "deploy.cli.drill:drill", "Restore the last backup into a lab, and report what came of it."
    ),
    Verb("update", "deploy.cli.update:update", "Install the distribution's updates, nodes in batches."),
    Verb("bundle", "deploy.cli.bundle:bundle", "Fetch everything a site needs into a directory."),
    Verb("schema", "deploy.cli.schema:schema", "Print the JSON Schema of all variables."),
    Verb(
        "rehearse", "deploy.cli.rehearse:rehearse", "Deploy a site on local containers; type what users type."
    ),
    Verb("demo", "deploy.cli.demo:demo", "Boot a lab, deploy a cluster on it, run a job."),
    Verb("lab", "deploy.cli.lab:lab_app", "Make and use clusters of local containers to rehearse on."),
)


class _Verbs(TyperGroup):
    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - Typer's own settings
        super().__init__(**settings)
        for verb in VERBS:
            self.add_command(verb)


app = plain_typer(
    cls=_Verbs,
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn the machines of an Ansible inventory into a working GPU cluster.",
    epilog="\b\nExit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in MEANINGS.items()),
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the flag's value
    if asked:
        typer.echo(f"deploy {__version__}")
        raise typer.Exit


def _without_color(asked: bool) -> None:  # noqa: FBT001 - typer calls it with the flag's value
    if asked:
        os.environ["NO_COLOR"] = "1"


@app.callback()
def _options(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
    _no_color: Annotated[
        bool,
        typer.Option(
            "--no-color", callback=_without_color, help="No colours, as with NO_COLOR=1 in the environment."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: runs a verb; every end that is not success becomes a message and an exit code."""
    try:
        app(prog_name="deploy")
    except DeployError as problem:
        typer.echo(f"deploy: {problem}", err=True)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        typer.echo("deploy: interrupted", err=True)
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone, as in `deploy report | head`; nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except Exception:  # noqa: BLE001 - the last stop before the user, who must not see a traceback
        typer.echo(f"deploy: {internal_error(_keep_traceback())}", err=True)
        sys.exit(ExitCode.INTERNAL)


def _keep_traceback() -> str:
    """Writes the traceback into a private file where no journal has it; returns the file's name."""
    with tempfile.NamedTemporaryFile("w", prefix="deploy-error-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    return file.name
