"""Where no server of the database serves, one begins, and the arbitrator waits for it."""

from pathlib import Path
from typing import Any

import pytest

from deploy.engine import database
from deploy.engine.options import Options
from deploy.errors import DeployError
from deploy.run.ssh import Unanswered
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

_MEMBERS = (("[slurm-login]", "[slurm-database]\nlogin1\nnode1\nctl1\n\n[slurm-login]"),)


def _look(**changes: object) -> dict[str, Any]:
    return {
        "cluster": "1a2b",
        "serves": False,
        "is_alone": False,
        "has": True,
        "others": [],
        "was_last": False,
        "at": 7,
        **changes,
    }


@pytest.mark.parametrize(
    ("looks", "told"),
    [
        (
            {"login1": _look(was_last=True), "node1": _look()},
            {"login1": {"mariadb_cluster_begins": True}, "ctl1": {"mariadb_arbiter_awaits": True}},
        ),
        ({"login1": _look(serves=True), "node1": _look()}, {}),
        ({"login1": Unanswered("left out", is_by_choice=True)}, {}),
    ],
)
def test_who_is_told_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: dict[str, Any], told: dict[str, Any]
) -> None:
    text = INVENTORY
    for before, after in _MEMBERS:
        text = text.replace(before, after)
    site = read_site(write_site(tmp_path, text))
    monkeypatch.setattr(database, "looks", lambda *_: looks)
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
