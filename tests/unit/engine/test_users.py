"""deploy users: from what hosts say and what the inventory declares to who may do what, and why."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import users
from deploy.engine.options import Options
from deploy.engine.users import Person, users_of
from deploy.errors import DeployError, ExitCode
from deploy.run.ssh import Unanswered
from deploy.show.users import as_json, is_expired, lines
from tests.unit.site.sites import INVENTORY, write_site

ALL = """\
slurm_accounts_accounts: [{name: laser, members: [alice], managers: [carol], groups: [lasers]}]
sssd_servers: [ldaps://ldap.site.example]
sssd_search_base: dc=site,dc=example
sssd_ca: ""
sssd_allow_groups: [hpc]
"""
CHARGED = {
    "memberships": [
        ["laser", "alice", "", "laser,nocont", "laser", ""],
        ["laser", "carol", "", "laser", "laser", ""],
        ["laser", "dora", "", "laser", "laser", "0"],
        ["laser", "eve", "", "laser", "laser", ""],
        ["root", "root", "", "normal", "", ""],
    ],
    "users": {"alice": ["laser", "none"], "carol": ["", "operator"]},
    "managers": {"laser": ["carol"]},
    "brought": {"laser": ["dora"]},
}
KEY = {
    "type": "ssh-ed25519",
    "fingerprint": "SHA256:x",
    "comment": "alice",
    "restrictions": ['from="192.0.2.0/24"', 'expiry-time="20260101"'],
}


def person(source: str = "local", **keys: object) -> dict[str, Any]:
    return {
        "source": source,
        "uid": 2001,
        "name": "",
        "shell": "/bin/bash",
        "groups": [],
        "sudo": False,
        "closed": False,
        "keys": [],
        "keys_unread": "",
        **keys,
    }


KNOWN = {
    "alice": person(keys=[KEY], keys_unread="/home/alice/.ssh/authorized_keys2: Permission denied"),
    "carol": person(sudo=True),
    "dora": person("directory", groups=["hpc"]),
    "eve": person("directory", groups=["others"]),
    "finn": person(closed=True),
    "gus": {"source": "nowhere"},
}


def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], more: str = ""
) -> dict[str, Person]:
    directory = write_site(tmp_path, INVENTORY, {"group_vars/all.yml": ALL + more})

    def ask(questions: dict[str, Any], *_: object, source: str, **__: object) -> dict[str, Any]:
        assert source == "people"
        assert "{{" not in str(questions)
        return {host: answers[verb] for host, (verb, _) in questions.items()}

    monkeypatch.setattr(users, "ask", ask)
    return {person.name: person for person in users_of(directory, Options())}


def test_who_may_do_what_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = told(tmp_path, monkeypatch, {"charged": CHARGED, "known": KNOWN})
    assert list(found) == ["alice", "carol", "dora", "eve", "finn", "gus"]
    why = {name: each.memberships[0].why for name, each in found.items() if each.memberships}
    assert why == {
        "alice": "inventory",
        "carol": "inventory",
        "dora": "a group of the account",
        "eve": "sacctmgr, by hand",
    }
    assert found["alice"].memberships[0].is_default
    assert found["carol"].memberships[0].is_manager
    assert found["dora"].memberships[0].is_closed
    assert {"ctl1", "node1", "node2"} <= {*found["carol"].logins}
    assert found["carol"].login_why == "sudo"
    assert "node1" not in found["alice"].logins
    assert found["dora"].login_why == "group hpc"
    assert (found["eve"].logins, found["eve"].login_why) == ((), "in none of sssd_allow_groups: hpc")
    assert (found["finn"].logins, found["finn"].login_why) == ((), "the account is closed")


def test_who_may_log_in_is_what_sshd_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "alice": person(groups=["users", "physics"]),
        "carol": person(sudo=True, groups=["carol"]),
        "dora": person("directory", groups=["hpc"]),
    }
    more = "ssh_server_allow_groups: [sudo, physics]\n"
    found = told(tmp_path, monkeypatch, {"charged": CHARGED, "known": known}, more)
    assert found["alice"].login_why == "local account"
    assert found["alice"].logins
    reason = "in none of ssh_server_allow_groups: physics, sudo"
    for name in ("carol", "dora"):
        assert (found[name].logins, found[name].login_why) == ((), reason)


@pytest.mark.parametrize(
    ("allowed", "who"),
    [
        ("[root@10.0.0.1, 'ali*', 'carol@10.0.*']", {"alice", "carol"}),
        ("['*']", {"alice", "carol", "dora"}),
        ("['{{ site_admin }}']", {"carol"}),
    ],
)
def test_patterns_and_templates_of_sshd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, who: set[str]
) -> None:
    known = {name: person() for name in ("alice", "carol", "dora")}
    more = f"ssh_server_allow_users: {allowed}\nsite_admin: carol\n"
    found = told(tmp_path, monkeypatch, {"charged": CHARGED, "known": known}, more)
    assert {name for name, each in found.items() if each.logins} == who


def test_as_text_and_for_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = tuple(told(tmp_path, monkeypatch, {"charged": CHARGED, "known": KNOWN}).values())
    now = datetime(2026, 11, 26, tzinfo=UTC)
    text = "\n".join(lines(people, now))
    assert "alice  (local, uid 2001)\n  account   laser (default; QOS laser, nocont; by inventory)\n" in text
    assert 'SHA256:x  alice  from="192.0.2.0/24"  expiry-time="20260101"  EXPIRED' in text
    assert "carol  (local, uid 2001)\n  account   laser (manager; QOS laser; by inventory)\n" in text
    assert "  slurm     operator of the accounting database\n  sudo      yes\n" in text
    assert "laser (closed: submits no job; QOS laser; by a group of the account)" in text
    assert "  key       not readable: /home/alice/.ssh/authorized_keys2: Permission denied\n" in text
    assert "gus  (no host knows the name)\n  account   none: no job\n" in text
    [alice, *_] = as_json(people, now)
    assert alice["keys"][0]["is_expired"] is True


@pytest.mark.parametrize(
    ("restriction", "expired"),
    [
        ('expiry-time="20261126"', True),
        ('expiry-time="20261127"', False),
        ("expiry-time=202511261200Z", True),
        ('from="192.0.2.1"', False),
    ],
)
def test_expiry(restriction: str, expired: bool) -> None:  # noqa: FBT001
    assert is_expired([restriction], datetime(2026, 11, 26, 12, tzinfo=UTC)) is expired


@pytest.mark.parametrize("answer", [Unanswered("no route to host"), {"trouble": "Connection refused"}])
def test_a_host_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    with pytest.raises(DeployError) as refused:
        told(tmp_path, monkeypatch, {"charged": answer, "known": KNOWN})
    assert "ctl1: it knows who may do what, and does not answer: " in str(refused.value)
    assert refused.value.exit_code is ExitCode.UNREACHABLE
