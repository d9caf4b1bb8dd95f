"""What ``deploy check`` does: a site and its machines are compared with what deploy needs."""

from pathlib import Path

from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import DeployError, ExitCode
from deploy.judge.site_check import SiteCheck, check_hosts
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import write_inventory
from deploy.site.hardware import read_contract


def check(inventory: Path, options: Options) -> SiteCheck:
    """What is wrong with machines. Raises DeployError when the site is wrong, or they cannot be asked."""
    with opened(inventory, options) as run:
        site = run.site
        plan = build_plan(site, limit=run.limit)
        asked = {name: site.hosts[name].address for name in plan.hosts}
        generated = run.place / "generated.json"
        write_inventory(generated, site, plan, read_contract(site))
        results = run.answers(run.request("check", generated), asked)
        return SiteCheck(check_hosts(results, asked, run.controllers, run.accounting), run.warnings)


def check_as_data(inventory: Path, options: Options) -> SiteCheck:
    """The same; what is wrong with the site is told in the form of what is wrong with hosts."""
    try:
        return check(inventory, options)
    except DeployError as problem:
        if problem.exit_code is ExitCode.BAD_INPUT:
            return SiteCheck((), problem.findings)
        raise
