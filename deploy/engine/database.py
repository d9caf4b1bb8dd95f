"""Step: members of the database are asked, and one begins where none of them serves."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, Finding, error, shown_path
from deploy.judge.database_lead import beginner, member_troubles
from deploy.plan.build import Plan
from deploy.plan.tags import tagged
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import fold

_PHASES = frozenset({"database", "database_arbiter"})

Converged = Mapping[str, Collection[str]]
"""By host the phases that need not run."""

_POLL_SECONDS = 3.0
_MOST_LOOKS, _MOST_WHILE_IT_JOINS = 20, 100


def looks(site: Site, options: Options) -> dict[str, Any]:
    """What the hosts with rows say of themselves (``run/database_look.py``), by name."""
    arguments = {"database": _name(site)}
    questions = {host.name: ("look", arguments) for host in site.database_hosts}
    return ask(questions, site.hosts, options.login, options.forks, "database_look")


def _name(site: Site) -> str:
    return str(site.database_host.value("slurmdbd_database_name"))


def with_beginner(
    site: Site, options: Options, converged: Converged, planned: Callable[[Converged], Plan]
) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """The plan, and by host what it is told for one run where a member of the database has to begin.

    Nobody is asked where the run does nothing on the database.

    Raises DeployError ``database-lead-unknown``, ``member-has-databases`` and ``members-left-out``.
    """

    def worked_on(plan: Plan) -> Mapping[str, Collection[str]]:
        return tagged(plan, options.tags, options.skip_tags).groups

    plan = planned(converged)
    told = begins(site, options) if worked_on(plan)["phase_database"] else {}
    if not told:
        return plan, {}
    # Nothing is wrong with what an arbitrator is, where it waits for nobody.
    done = {name: {*phases} - (_PHASES if name in told else set()) for name, phases in converged.items()}
    plan = planned(done)
    groups = worked_on(plan)
    there = {*groups["phase_database"], *groups["phase_database_arbiter"]}
    if missing := [name for name in told if name not in there]:
        raise _left_out(
            site, f"{fold(missing)} takes no part in this run", f"deploy cluster {shown_path(site.inventory)}"
        )
    return plan, told


def begins(site: Site, options: Options) -> dict[str, dict[str, Any]]:
    """By host what it is told for one run: that it begins, or that another one does, whom it has to wait for.

    Nothing where one host has the database, or where it is served. An arbitrator that is off, or does not
    run, is told nothing: it has no group to end.

    Raises DeployError ``database-lead-unknown``, ``member-has-databases`` and ``members-left-out``.
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
    begins_here = {name: {"mariadb_cluster_begins": True}}
    said = _reaching(site, options, name, arbiter.name)
    silent = said[arbiter.name]
    if silent is False and said[name] is not True:
        return begins_here
    if not isinstance(silent, Unanswered) or silent.is_by_choice:
        return {**begins_here, arbiter.name: {"mariadb_arbiter_awaits": True}}
    if said[name] is True:
        raise _left_out(
            site,
            f"{arbiter.name} does not answer ({silent.why}), and its arbitrator runs",
            f"bring it back, or systemctl stop garb   (on {arbiter.name}); then the same again",
            ExitCode.UNREACHABLE,
        )
    return begins_here


def answering_arbiter(site: Site, options: Options) -> list[Host]:
    """The arbitrator, where it answers."""
    found = [site.database_arbiter] if site.database_arbiter else []
    said = _reaching(site, options, *(host.name for host in found))
    return [host for host in found if not isinstance(said[host.name], Unanswered)]


def _reaching(site: Site, options: Options, *names: str) -> dict[str, Any]:
    """Whether hosts reach the arbitrator's program."""
    address = site.database_arbiter.cluster_address if site.database_arbiter else ""
    question = ("reaches", {"address": address})
    return ask(
        dict.fromkeys(names, question), site.hosts, options.login, options.forks, source="database_look"
    )


def _left_out(site: Site, why: str, hint: str, code: ExitCode = ExitCode.BAD_INPUT) -> DeployError:
    return error(
        "members-left-out",
        "no host of the accounting database serves. One of them has to begin, and the arbitrator to end its "
        f"group before, which would let nobody in; {why}",
        where=fold(host.name for host in site.database_members),
        hint=hint,
        exit_code=code,
    )


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
    for looks in range(_MOST_WHILE_IT_JOINS):
        found = half_database(site, options)
        # The other one counts three votes: it has joined, and gets what it lacks, which may be a whole copy.
        joins = [each.reference for each in found] == ["member-not-synced"]
        if not found or (looks >= _MOST_LOOKS and not joins):
            return found
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
