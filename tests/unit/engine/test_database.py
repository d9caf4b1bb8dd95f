"""Where no server of the database serves, one begins, and the arbitrator waits for it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import database
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.plan.build import Plan, build_plan
from deploy.run.ssh import Unanswered
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import INVENTORY, write_site

_MEMBERS = (("[slurm-login]", "[slurm-database]\nlogin1\nnode1\nctl1\n\n[slurm-login]"),)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """The database is on login1 and node1, ctl1 has a vote."""
    text = INVENTORY
    for before, after in _MEMBERS:
        text = text.replace(before, after)
    return read_site(write_site(tmp_path, text))


def _look(**changes: object) -> dict[str, Any]:
    return {
        "cluster": "1a2b",
        "serves": False,
        "is_alone": False,
        "has": True,
        "others": [],
        "is_in_doubt": False,
        "was_last": False,
        "at": 7,
        **changes,
    }


@pytest.mark.parametrize(
    ("looks", "runs", "told"),
    [
        (
            {"login1": _look(was_last=True), "node1": _look()},
            True,
            {"login1": {"mariadb_cluster_begins": True}, "ctl1": {"mariadb_arbiter_awaits": True}},
        ),
        # Nobody ends a group that there is not, as before the arbitrator's first run.
        (
            {"login1": _look(was_last=True), "node1": _look()},
            False,
            {"login1": {"mariadb_cluster_begins": True}},
        ),
        ({"login1": _look(serves=True), "node1": _look()}, True, {}),
        ({"login1": Unanswered("left out", is_by_choice=True)}, True, {}),
    ],
)
def test_who_is_told_what(
    site: Site, monkeypatch: pytest.MonkeyPatch, looks: dict[str, Any], runs: object, told: dict[str, Any]
) -> None:
    monkeypatch.setattr(database, "looks", lambda *_: looks)
    monkeypatch.setattr(database, "ask", lambda questions, *_, **__: dict.fromkeys(questions, runs))
    assert database.begins(site, Options()) == told


def test_a_hint_names_the_sites_own_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = INVENTORY
    for before, after in _MEMBERS:
        text = text.replace(before, after)
    site = read_site(
        write_site(tmp_path, text, {"group_vars/all.yml": "slurmdbd_database_name: accounts_of_us\n"})
    )
    both = {name: _look(cluster="", is_alone=True) for name in ("login1", "node1")}
    monkeypatch.setattr(database, "looks", lambda *_: both)
    with pytest.raises(DeployError) as refused:
        database.begins(site, Options())
    assert "/var/lib/mysql/accounts_of_us; " in refused.value.findings[0].hint


SILENT = Unanswered("no route")


@pytest.mark.parametrize(
    ("arbiter", "reached", "told"),
    [
        (SILENT, True, set()),
        (SILENT, False, {"login1"}),
        (SILENT, SILENT, {"login1"}),
        (False, True, {"login1", "ctl1"}),
        (Unanswered("password", is_by_choice=True), True, {"login1", "ctl1"}),
        (True, True, {"login1", "ctl1"}),
    ],
)
def test_nobody_begins_beside_an_arbitrator_that_nobody_can_stop(
    site: Site, monkeypatch: pytest.MonkeyPatch, arbiter: object, reached: object, told: set[str]
) -> None:
    monkeypatch.setattr(database, "looks", lambda *_: {"login1": _look(was_last=True), "node1": _look()})
    monkeypatch.setattr(database, "ask", lambda *_, **__: {"login1": reached, "ctl1": arbiter})
    if told:
        assert set(database.begins(site, Options())) == told
        return
    with pytest.raises(DeployError) as refused:
        database.begins(site, Options())
    assert refused.value.findings[0].reference == "members-left-out"
    assert refused.value.exit_code is ExitCode.UNREACHABLE


DONE = {name: frozenset({"database", "database_arbiter"}) for name in ("login1", "node1", "ctl1")}


def planned(
    site: Site, options: Options, limit: list[str] | None = None, done: Mapping[str, frozenset[str]] = {}
) -> tuple[Plan, dict[str, Any]]:
    def plan(converged: database.Converged) -> Plan:
        return build_plan(site, limit=limit, converged=converged)

    return database.with_beginner(site, options, done, plan)


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them serves, and login1 has to begin."""
    monkeypatch.setattr(database, "looks", lambda *_: {"login1": _look(was_last=True), "node1": _look()})
    monkeypatch.setattr(database, "ask", lambda questions, *_, **__: dict.fromkeys(questions, True))


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(
    "done", [{}, {"ctl1": DONE["ctl1"]}, {"ctl1": DONE["ctl1"], "login1": DONE["login1"]}]
)
def test_who_begins_and_the_arbitrator_are_in_the_plan(
    site: Site, done: Mapping[str, frozenset[str]]
) -> None:
    plan, told = planned(site, Options(), done=done)
    assert set(told) == {"login1", "ctl1"}
    assert plan.groups["phase_database"] == ("login1", "node1")
    assert plan.groups["phase_database_arbiter"] == ("ctl1",)


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(
    ("options", "limit", "missing"),
    [
        (Options(tags="mariadb"), None, "ctl1 takes"),
        (Options(skip_tags="mariadb_arbiter"), None, "ctl1 takes"),
        (Options(), ["login1", "node1"], "ctl1 takes"),
        (Options(), ["node1", "ctl1"], "login1 takes"),
        (Options(), ["node1"], "ctl1,login1 takes"),
    ],
)
def test_nobody_begins_in_a_run_without_the_arbitrator(
    site: Site, options: Options, limit: list[str] | None, missing: str
) -> None:
    with pytest.raises(DeployError) as refused:
        planned(site, options, limit)
    assert refused.value.findings[0].reference == "members-left-out"
    assert missing in refused.value.findings[0].message


@pytest.mark.parametrize(
    ("options", "limit", "done"),
    [(Options(tags="users"), None, {}), (Options(), ["node2", "ctl1"], {}), (Options(), None, DONE)],
)
def test_a_run_that_does_nothing_on_the_database_does_not_ask_for_its_lead(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    options: Options,
    limit: list[str] | None,
    done: Mapping[str, frozenset[str]],
) -> None:
    monkeypatch.setattr(database, "looks", lambda *_: {"login1": SILENT, "node1": _look()})
    assert planned(site, options, limit, done)[1] == {}
    with pytest.raises(DeployError, match="database-lead-unknown"):
        planned(site, Options(), ["node1"])


@pytest.mark.parametrize(("answer", "names"), [(SILENT, []), (False, ["ctl1"])])
def test_an_arbitrator_that_is_off_takes_no_part(
    site: Site, monkeypatch: pytest.MonkeyPatch, answer: object, names: list[str]
) -> None:
    monkeypatch.setattr(database, "looks", lambda *_: {"login1": _look(was_last=True), "node1": _look()})
    monkeypatch.setattr(
        database, "ask", lambda questions, *_, **__: {**dict.fromkeys(questions, False), "ctl1": answer}
    )
    assert [host.name for host in database.answering_arbiter(site, Options())] == names
    if not names:
        assert set(planned(site, Options(), ["login1", "node1"])[1]) == {"login1"}
