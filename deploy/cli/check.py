"""``deploy check``: whether a site and its machines are fit, before anything is changed."""

import json
from pathlib import Path

import typer

from deploy.cli.options import Options, ask_password
from deploy.cli.parameters import (
    AsData,
    AskBecomePass,
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
from deploy.errors import DeployError, ExitCode
from deploy.judge.site_check import SiteCheck, check_hosts
from deploy.place import private_place
from deploy.plan.build import build_plan
from deploy.plan.wiring import write_wiring
from deploy.run.settings import Settings
from deploy.show.check import as_json, lines
from deploy.site.hardware import read_contract


def check(
    inventory: Inventory,
    *,
    limit: Limit = None,
    as_data: AsData = False,
    user: User = None,
    private_key: PrivateKey = None,
    ask_pass: AskPass = False,
    ask_become_pass: AskBecomePass = False,
    forks: Forks = None,
    extra: ExtraVariables = None,
    vault_password_file: VaultPasswordFile = None,
) -> None:
    """Say everything that is wrong with a site and its machines; change nothing, neither there nor here.

    First the inventory and its variables, without any connection. When they are right, every machine once:
    login and sudo, system, names, clock, disks, memory, ports, package sources, GPUs, another Slurm.
    `deploy cluster` makes the same checks first. Exit code 0: fit, 1: a machine is not, 2: the site is wrong,
    4: a machine cannot be reached.

    Examples:
      deploy check inventory.ini
      deploy check inventory.ini --limit node3 --json

    """
    options = Options(
        limit=limit,
        user=user,
        private_key=private_key,
        forks=forks,
        extra=tuple(extra or ()),
        vault_password_file=vault_password_file,
        connection_password=ask_password("SSH", is_wanted=ask_pass),
        become_password=ask_password("sudo", is_wanted=ask_become_pass),
    )
    found = _check(inventory, options, as_data=as_data)
    if as_data:
        typer.echo(json.dumps(as_json(found), indent=1))
    else:
        for line in lines(found):
            typer.echo(line)
        again = f"deploy check {shown_path(inventory)}   (when this is mended)"
        typer.echo(f"next: {again if found.exit_code else f'deploy cluster {shown_path(inventory)}'}")
    raise typer.Exit(found.exit_code)


def _check(inventory: Path, options: Options, *, as_data: bool) -> SiteCheck:
    try:
        return _check_all(inventory, options)
    except DeployError as problem:
        # Programs get what is wrong with the site in the same form as what is wrong with hosts.
        if as_data and problem.exit_code is ExitCode.BAD_INPUT:
            return SiteCheck((), problem.findings)
        raise


def _check_all(inventory: Path, options: Options) -> SiteCheck:
    settings = Settings(forks=options.forks)
    with (
        open_site(inventory, options, settings) as opened,
        private_place() as place,
    ):
        site = opened.site
        plan = build_plan(site, limit=limited(site, options))
        controllers = [master.name for master in site.controllers]
        asked = {name: site.hosts[name].address for name in plan.hosts}
        wiring = place / "wiring.json"
        write_wiring(wiring, site, plan, read_contract(site))
        request = run_request("check", wiring, site=site, options=options, settings=settings)
        results = answers(request, asked, site, opened.ansible)
    return SiteCheck(check_hosts(results, asked, controllers), opened.warnings)
