"""Step: members of the database are asked, and one begins where none of them serves."""

import time
from typing import Any

from deploy.engine.options import Options
from deploy.errors import Finding, shown_path
from deploy.judge.database_lead import beginner, member_troubles
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Host, Site

_POLL_SECONDS = 3.0
_MOST_LOOKS = 20


def looks(site: Site, options: Options) -> dict[str, Any]:
    """What the hosts with rows say of themselves (``run/database_look.py``), by name."""
    arguments = {"database": _name(site)}
    questions = {host.name: ("look", arguments) for host in site.database_hosts}
    return ask(questions, site.hosts, options.login, options.forks, "database_look")


def _name(site: Site) -> str:
    return str(site.database_host.value("slurmdbd_database_name"))


def begins(site: Site, options: Options) -> dict[str, dict[str, Any]]:
    """By host what it is told for one run: that it begins, or that another one does, whom it has to wait for.

    Nothing where one host has the database, or where it is served.

    Raises DeployError ``database-lead-unknown``.
    """
    arbiter = site.database_arbiter
    if not arbiter:
        return {}
    answers = looks(site, options)
    if all(isinstance(answer, Unanswered) and answer.is_by_choice for answer in answers.values()):
        return {}
    name = beginner(answers, _name(site))
    if not name:
        return {}
    return {name: {"mariadb_cluster_begins": True}, arbiter.name: {"mariadb_arbiter_awaits": True}}


def half_database(site: Site, options: Options) -> list[Finding]:
    """What keeps several hosts of the database from going on without one of them; nothing of its one host."""
    if not site.database_arbiter:
        return []
    said = looks(site, options)
    hint = f"deploy check {shown_path(site.inventory)}"
    silent = {name: look.why for name, look in said.items() if isinstance(look, Unanswered)}
    return [
        *(Finding(name, "host-silent", f"it does not answer: {why}", hint) for name, why in silent.items()),
        *(Finding(name, *trouble) for name in said for trouble in member_troubles(name, said)),
    ]


def voters(site: Site) -> list[str]:
    """The hosts with a vote on a database of several: one of them may be away; none where one host has it."""
    return [host.name for host in site.database_members] if site.database_arbiter else []


def whole_again(site: Site, options: Options) -> list[Finding]:
    """What is missing still of such a database, some time after one of its hosts was restarted."""
    for _ in range(_MOST_LOOKS):
        found = half_database(site, options)
        if not found:
            return []
        time.sleep(_POLL_SECONDS)
    return found


def is_away(site: Site, found: list[Finding], name: str) -> bool:
    """Whether that host is what such a database goes on without already, by what is missing of it."""
    arbiter = site.database_arbiter
    if arbiter and name == arbiter.name:
        return {each.reference for each in found} == {"members-missing"}
    return any(each.where == name and each.reference != "members-missing" for each in found)


def serving(site: Site, options: Options) -> list[Host]:
    """Those of several hosts with rows that have them all, and go on, in the inventory's order."""
    return [
        site.hosts[name]
        for name, look in looks(site, options).items()
        if not isinstance(look, Unanswered) and look["serves"] and look["is_synced"]
    ]


def with_rows(site: Site, options: Options) -> Host:
    """The host whose database is asked for all its rows: of several the first one that has them all."""
    found = serving(site, options) if site.database_arbiter else []
    return found[0] if found else site.database_host
