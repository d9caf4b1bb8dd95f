"""In which order slurmdbd and slurmctld change, and what stands by meanwhile."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploy.engine import upgrade_servers as module
from deploy.engine.upgrade import Walk
from deploy.engine.upgrade_servers import Servers, await_conversion, compute, refuse_unready, servers, told
from deploy.errors import DeployError, Finding, error
from deploy.site.inventory import Host, Site, read_site
from tests.unit.site.sites import write_site

OLD, NEW = "24.11.5-4", "26.05.5-1"
APART = """
[slurm-master]
ctl1
ctl2
ctl3
[slurm-database]
db1
db2
ctl2
[slurm-node]
node1
db2
[slurm-login]
db1
[slurm-cluster:children]
slurm-master
slurm-database
slurm-node
slurm-login
[slurm-cluster:vars]
slurm_packages_version=26.05
"""
"""Several controllers, and a database on two hosts of which one is a login node and one a compute node."""
TOGETHER = """
[slurm-master]
ctl1
[slurm-database]
ctl1
db2
node1
[slurm-node]
node1
[slurm-cluster:children]
slurm-master
slurm-database
slurm-node
[slurm-cluster:vars]
slurm_packages_version=26.05
"""


class FakeWalk:
    """Hosts that change as they are told, and what they were told, in its order."""

    def __init__(self, site: Site, stands: Mapping[str, str] | None = None) -> None:
        self.told: list[str] = []
        self.done: list[str] = []
        self.kept: dict[str, str] = {}
        self.fails = ""
        self.is_converting = False
        self.daemons: dict[str, str] = {}
        self.versions = {host.name: OLD for host in servers(site)}
        self.run = SimpleNamespace(
            site=site, options=None, say=lambda _: None, command=lambda verb: f"deploy {verb} inventory.ini"
        )
        self.state = SimpleNamespace(
            wanted="26.05",
            before=dict(self.versions),
            looks=self.looks,
            left_of=self.left_of,
            standing=lambda: dict(stands or {}),
        )
        self.site = site

    def looks(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        units = told(self.site)
        return {
            name: {
                "packages": {"slurm-client": self.versions[name]},
                "broken": [],
                "daemons": {unit: self.daemons.get(unit, "active") for unit in units[name]["upgrade_units"]},
            }
            for name in names
        }

    def left_of(self, hosts: Collection[Host]) -> list[str]:
        stopped = {"slurmctld"} & {unit for unit, state in self.daemons.items() if state == "inactive"}
        units = told(self.site)
        return [
            host.name
            for host in hosts
            if self.versions[host.name] == OLD or stopped & {*units[host.name]["upgrade_units"]}
        ]

    def forget(self, names: Collection[str]) -> None:
        assert not {*names} & {*self.done}

    def step(self, group: str, hosts: list[str], **variables: Any) -> dict[str, Any]:  # noqa: ANN401
        if hosts:
            what = (
                f"{variables['upgrade_unit']} {variables['upgrade_state']}" if group == "standby" else group
            )
            self.told.append(f"{what}: {','.join(hosts)}")
        if group == "answers" and self.is_converting:
            raise error("upgrade-step-failed", "slurmdbd does not answer", where=hosts[0], hint="")
        if group == "controllers":
            if self.fails in hosts:
                raise error("upgrade-step-failed", "apt failed", where=self.fails, hint="")
            self.versions |= dict.fromkeys(hosts, NEW)
        return {name: {"counts": {}, "seconds": 2.0} for name in hosts} if group == "rehearse" else {}


def walk(place: Path, inventory: str = APART, stands: Mapping[str, str] | None = None) -> FakeWalk:
    return FakeWalk(read_site(write_site(place, inventory)), stands)


def change(made: FakeWalk) -> Servers:
    made.told.clear()
    await_conversion(cast("Walk", made), made.looks(made.versions))
    these = Servers(cast("Walk", made))
    these.rehearse()
    these.change(2.0)
    return these


def test_who_leads_changes_first_and_meanwhile_nobody_stands_by(tmp_path: Path) -> None:
    made = walk(tmp_path)
    these = change(made)
    assert made.told == [
        "judge: ctl1",
        "rehearse: db1",
        "slurmdbd stopped: db2",
        "controllers: db1",
        "controllers: db2",
        "slurmctld stopped: ctl2,ctl3",
        "controllers: ctl1",
        "controllers: ctl2,ctl3",
        # sackd and slurmd of hosts without a slurmctld start when there is one that takes them.
        "rest: db1,db2",
    ]
    assert these.kept_on == ["db1", "ctl1"]
    assert these.backup.startswith("/var/backups/deploy/slurm-24.11-")


def test_a_host_of_both_changes_once(tmp_path: Path) -> None:
    made = walk(tmp_path, TOGETHER)
    these = change(made)
    assert made.told == [
        "judge: ctl1",
        "rehearse: ctl1",
        "slurmdbd stopped: db2",
        "controllers: ctl1",
        "controllers: db2",
        "rest: db2",
    ]
    assert these.kept_on == ["ctl1"]


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (
            ["db1"],
            [
                *("answers: db1", "judge: ctl1", "controllers: db2", "slurmctld stopped: ctl2,ctl3"),
                "controllers: ctl1",
            ],
        ),
        (["db1", "db2", "ctl1"], ["answers: db1", "controllers: ctl2,ctl3"]),
        (["db1", "db2", "ctl1", "ctl2"], ["answers: db1", "controllers: ctl3"]),
    ],
)
def test_one_that_was_cut_off_goes_on_with_the_rest(
    tmp_path: Path, done: list[str], expected: list[str]
) -> None:
    made = walk(tmp_path)
    made.versions |= dict.fromkeys(done, NEW)
    change(made)
    assert made.told[: len(expected)] == expected


@pytest.mark.parametrize(
    ("fails", "again"), [("db1", "slurmdbd started: db2"), ("ctl1", "slurmctld started: ctl2,ctl3")]
)
def test_what_stood_by_does_again_where_the_first_one_did_not_change(
    tmp_path: Path, fails: str, again: str
) -> None:
    made = walk(tmp_path)
    made.fails = fails
    with pytest.raises(DeployError, match="apt failed"):
        change(made)
    assert made.told[-1] == again


def test_a_first_one_that_changed_has_nobody_of_before_stand_by(tmp_path: Path) -> None:
    """It failed in what follows on its packages."""
    made = walk(tmp_path)
    made.fails = "ctl1"
    these = Servers(cast("Walk", made))
    made.versions["ctl1"] = NEW
    with pytest.raises(DeployError, match="apt failed"):
        these.change(0)
    assert made.told[-1] == "controllers: ctl1"


@pytest.mark.parametrize(("inventory", "first"), [(APART, "db1"), (TOGETHER, "ctl1")])
def test_while_the_database_is_converted_nothing_is_stopped_or_started(
    tmp_path: Path, inventory: str, first: str
) -> None:
    """slurmdbd runs and does not answer yet; slurmctld was stopped with it where they are on one host."""
    made = walk(tmp_path, inventory)
    made.versions[first] = NEW
    made.daemons["slurmctld"] = "inactive"
    made.is_converting = True
    with pytest.raises(DeployError, match="does not answer"):
        change(made)
    assert made.told == [f"answers: {first}"]
    made.is_converting = False
    change(made)
    assert "controllers: db2" in made.told


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_a_slurmdbd_that_does_not_run_is_not_waited_for(tmp_path: Path, state: str) -> None:
    made = walk(tmp_path)
    made.versions["db1"] = NEW
    made.daemons["slurmdbd"] = state
    change(made)
    assert "answers: db1" not in made.told


def test_one_that_stands_by_and_has_the_release_stands_by_again(tmp_path: Path) -> None:
    """As where the first one's packages alone were put back, or its daemon was stopped."""
    made = walk(tmp_path)
    made.versions |= {"db2": NEW, "ctl3": NEW}
    change(made)
    assert made.told[2:] == [
        "slurmdbd stopped: db2",
        "controllers: db1",
        "slurmdbd started: db2",
        "slurmctld stopped: ctl2,ctl3",
        "controllers: ctl1",
        "slurmctld started: ctl3",
        "controllers: ctl2",
        "rest: db1",
    ]


def test_where_the_servers_are_done_nothing_is_waited_for(tmp_path: Path) -> None:
    made = walk(tmp_path)
    made.versions = dict.fromkeys(made.versions, NEW)
    await_conversion(cast("Walk", made), made.looks(made.versions))
    assert made.told == []


def test_compute_nodes_are_those_that_serve_nobody(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, APART))
    assert compute(site) == ["node1"]


@pytest.mark.parametrize(
    ("stands", "version", "is_refused"),
    [
        ({"ctl1": "leads", "ctl2": "stands by", "ctl3": "stands by"}, OLD, False),
        ({"ctl1": "silent", "ctl2": "leads", "ctl3": "stands by"}, OLD, True),
        # As where an upgrade was cut off that had stopped all of them.
        ({"ctl1": "silent", "ctl2": "silent", "ctl3": "silent"}, OLD, False),
        ({"ctl1": "silent", "ctl2": "leads", "ctl3": "silent"}, NEW, False),
    ],
)
def test_another_one_that_leads_gives_the_lead_back_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    stands: Mapping[str, str],
    version: str,
    is_refused: bool,
) -> None:
    monkeypatch.setattr(module, "half_database", lambda *_: [])
    made = walk(tmp_path, stands=stands)
    made.versions["ctl1"] = version
    looks = made.looks(made.versions)
    if not is_refused:
        refuse_unready(cast("Walk", made), looks)
        return
    with pytest.raises(DeployError) as caught:
        refuse_unready(cast("Walk", made), looks)
    (finding,) = caught.value.findings
    assert (finding.reference, finding.where) == ("upgrade-other-leads", "ctl1")
    assert "ctl2 leads" in finding.message
    assert "deploy failback inventory.ini" in finding.hint


def test_half_a_database_is_not_upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = Finding("db2", "member-not-synced", "it is a joiner", "wait")
    monkeypatch.setattr(module, "half_database", lambda *_: [half])
    made = walk(tmp_path)
    with pytest.raises(DeployError, match="it is a joiner"):
        refuse_unready(cast("Walk", made), made.looks(made.versions))
