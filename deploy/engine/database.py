"""Step: members of the database are asked, and one begins where none of them serves."""

from typing import Any

from deploy.engine.options import Options
from deploy.judge.database_lead import beginner
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Host, Site


def looks(site: Site, options: Options) -> dict[str, Any]:
    """What the hosts with rows say of themselves (``run/database_look.py``), by name."""
    arguments = {"database": str(site.database_host.value("slurmdbd_database_name"))}
    questions = {host.name: ("look", arguments) for host in site.database_hosts}
    return ask(questions, site.hosts, options.login, options.forks, "database_look")


def begins(site: Site, options: Options) -> dict[str, dict[str, Any]]:
    """By host what it is told for one run: that it begins. Nothing where one host has the database.

    Raises DeployError ``database-lead-unknown``.
    """
    if not site.database_arbiter:
        return {}
    answers = looks(site, options)
    if all(isinstance(answer, Unanswered) and answer.is_by_choice for answer in answers.values()):
        return {}
    name = beginner(answers)
    return {name: {"mariadb_cluster_begins": True}} if name else {}


def with_rows(site: Site, options: Options) -> Host:
    """The host whose database is asked for all its rows: of several the first one that has them all."""
    if site.database_arbiter:
        for name, look in looks(site, options).items():
            if not isinstance(look, Unanswered) and look["serves"] and look["is_synced"]:
                return site.hosts[name]
    return site.database_host
