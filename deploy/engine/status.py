"""What ``deploy status`` asks: hosts by a playbook, their records and those that left beside it."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.judge.convergence import last_convergences
from deploy.judge.site_status import SiteStatus, site_status
from deploy.plan.questions import asked_hosts, write_questions
from deploy.run.journal import recorded_runs
from deploy.site.hardware import read_contract

__all__ = ["SiteStatus", "status_of"]


def status_of(inventory: Path, options: Options) -> SiteStatus:
    """What a site's hosts are like now. Raises DeployError when the site is wrong or cannot be asked."""
    with opened(inventory, options) as run:
        site, records, members = run.site, run.records, run.members
        asked = asked_hosts(site, run.limit)
        questions = run.place / "questions.json"
        contract = read_contract(site)
        write_questions(questions, site, asked, contract)
        with ThreadPoolExecutor(3) as meanwhile:
            looks = meanwhile.submit(records.verify, asked)
            states = meanwhile.submit(records.states, contract, looks.result)
            departed = meanwhile.submit(lambda: members.departed(members.known(looks.result())))
            results = run.answers(run.request("status", questions), asked)
        return site_status(
            site,
            results,
            last_convergences(recorded_runs(site.directory)),
            states.result()[0],
            departed.result(),
            asked=asked,
            limit=run.limit,
            inventory=run.inventory,
            at=time.time(),
        )
