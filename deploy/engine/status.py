"""What ``deploy status`` asks: hosts by a playbook, their records and those that left beside it."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from deploy.engine.database import looks as members_looks
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.judge.convergence import last_convergences
from deploy.judge.last_drill import REPORTS, last_drill
from deploy.judge.leading import Leading, leading
from deploy.judge.site_status import SiteStatus, site_status
from deploy.plan.questions import asked_hosts, write_questions
from deploy.run.journal import recorded_runs
from deploy.run.ssh import ask
from deploy.site.hardware import read_contract

__all__ = ["SiteStatus", "status_of"]


def status_of(inventory: Path, options: Options) -> SiteStatus:
    """What a site's hosts are like now. Raises DeployError when the site is wrong or cannot be asked."""
    with opened(inventory, options) as run:
        site, records, members = run.site, run.records, run.members
        asked = asked_hosts(site, run.limit)
        shown = asked_hosts(site, run.named)
        questions = run.place / "questions.json"
        contract = read_contract(site)
        write_questions(questions, site, asked, contract)
        with ThreadPoolExecutor(5) as meanwhile:
            looks = meanwhile.submit(records.verify, asked)
            states = meanwhile.submit(records.states, contract, looks.result)
            departed = meanwhile.submit(lambda: members.departed(members.known(looks.result())))
            leads = meanwhile.submit(_leading, run)
            database = meanwhile.submit(members_looks, site, run.options) if site.database_arbiter else None
            results = run.answers(run.request("status", questions), asked)
        status = site_status(
            site,
            results,
            last_convergences(recorded_runs(site.directory)),
            states.result()[0],
            departed.result(),
            leading=leads.result(),
            database=database.result() if database else {},
            asked=shown,
            away=run.away,
            limit=run.named,
            inventory=run.inventory,
            at=time.time(),
        )
        return replace(status, drill=last_drill(site.directory / REPORTS))


def _leading(run: Run) -> Leading | None:
    """Which of several controllers leads, as each of them sees it."""
    names = run.controllers
    if len(names) == 1:
        return None
    questions = {name: ("stand", dict[str, str]()) for name in names}
    return leading(names, ask(questions, run.site.hosts, run.options.login, source="leading"))
