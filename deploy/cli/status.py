"""``deploy status``: what the cluster is like now."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import typer

from deploy.cli.members import Members
from deploy.cli.options import Options, ask_password
from deploy.cli.parameters import (
    AsData,
    AskPass,
    ExtraVariables,
    Forks,
    Inventory,
    Limit,
    PrivateKey,
    User,
    VaultPasswordFile,
)
from deploy.cli.playbook_run import answers, limited, open_site, run_request, shown_path
from deploy.cli.records import Records
from deploy.judge.convergence import last_convergences
from deploy.judge.site_status import SiteStatus, site_status
from deploy.place import private_place
from deploy.plan.questions import asked_hosts, write_questions
from deploy.run.journal import recorded_runs
from deploy.run.settings import Settings
from deploy.show.status import as_json, lines
from deploy.site.hardware import read_contract

_CONNECTION_SECONDS = 5


def status(
    inventory: Inventory,
    *,
    limit: Limit = None,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    forks: Forks = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Show every host on a line: Slurm's state, services, hardware, clock, when it converged.

    Nothing is changed, and it may be asked while `deploy cluster` runs. What is wrong comes first, with the
    next command to type. Exit code 0: all is well; 1: something is wrong on a host; 4: a host is unreachable.

    Examples:
      deploy status inventory.ini
      deploy status inventory.ini --limit 'node[1-4]' --json

    """
    options = Options(
        limit=limit,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
    )
    found = _status(inventory, options)
    if as_data:
        typer.echo(json.dumps(as_json(found), indent=1))
    else:
        _show(found)
    raise typer.Exit(found.exit_code)


def _status(inventory: Path, options: Options) -> SiteStatus:
    settings = Settings(forks=options.forks, connection_seconds=_CONNECTION_SECONDS)
    with (
        open_site(inventory, options, settings) as opened,
        private_place() as place,
    ):
        site = opened.site
        limit = limited(site, options)
        asked = asked_hosts(site, limit)
        questions = place / "questions.json"
        contract = read_contract(site)
        write_questions(questions, site, asked, contract)
        request = run_request("status", questions, site=site, options=options, settings=settings)
        with ThreadPoolExecutor(3) as meanwhile:
            records, members = Records(site, options), Members(site, options)
            looks = meanwhile.submit(records.verify, asked)
            states = meanwhile.submit(lambda: records.states(contract, looks.result()))
            departed = meanwhile.submit(lambda: members.departed(members.known(looks.result())))
            results = answers(request, asked, site, opened.ansible)
    return site_status(
        site,
        results,
        last_convergences(recorded_runs(site.directory)),
        states.result()[0],
        departed.result(),
        asked=asked,
        limit=limit,
        inventory=shown_path(site.inventory),
        at=time.time(),
    )


def _show(found: SiteStatus) -> None:
    if sys.stdout.isatty():
        # Only a terminal needs it, and it costs a tenth of the start.
        from rich.console import Console  # noqa: PLC0415

        from deploy.show.status_table import print_status  # noqa: PLC0415

        print_status(Console(), found)
        return
    for line in lines(found):
        typer.echo(line)
