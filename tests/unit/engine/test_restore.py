"""``deploy restore`` on a site, with a controller that answers as it is told."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import restore as module
from deploy.engine.members import Members
from deploy.engine.options import Options
from deploy.engine.restore import Wish, restore, try_restore
from deploy.errors import DeployError, ExitCode, error
from deploy.plan.build import build_plan
from deploy.plan.tags import tagged
from deploy.run.archive import Archive, UnreadableError
from deploy.run.ssh import Unanswered
from deploy.site.inventory import Host, Site, read_site
from deploy.site.secrets import secret_names
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1\n[slurm-node]\nnode1\nnode2\n"
QUEUE = {"running": [3], "waiting": [], "next_job_id": 4}
SECRETS = "".join(f"{name}: the-old-one-of-thirty-two-characters\n" for name in secret_names()).encode()
KEPT = {
    "site/secrets.yml": SECRETS,
    "records/drains.json": b"[]",
}
APART = SITE.replace("[slurm-node]", "ctl2\n[slurm-database]\ndb1\n[slurm-node]")
NOTHING = {"server": False, "slurmctld": False}
BARE: dict[str, Any] = {"daemons": [], "state": False, "jobs": None, "programs": False, **NOTHING}
LIVING: dict[str, Any] = {
    "daemons": ["slurmctld"],
    "state": True,
    "jobs": 7,
    "programs": True,
    "server": True,
    "slurmctld": True,
}


@dataclass
class Cluster:
    """A backup and hosts; what was done to them, and said, in turn."""

    found: Mapping[str, Any] = field(default_factory=lambda: BARE)
    steps: dict[str, Any] = field(default_factory=lambda: {"node1": ["3.batch"], "node2": []})
    manifest: dict[str, Any] = field(default_factory=dict)
    small: dict[str, bytes] = field(default_factory=lambda: dict(KEPT))
    done: list[str] = field(default_factory=list)
    sent: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    of_host: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What a host has, where it is not what ``found`` says."""
    serving: list[str] = field(default_factory=list)
    """The members of the database that have all rows."""
    failing: str = ""
    """What a host does not do."""

    def archive(self, path: Path, identities: tuple[Path, ...]) -> Archive:
        manifest = {
            "cluster": "cluster",
            "made_at": int(time.time()),
            "made_by": "deploy backup",
            "queue": QUEUE,
            "database": {"name": "slurm_acct_db", "tables": 1, "jobs": 3, "associations": 2, "bytes": 40},
        }
        return Archive(path, identities, {**manifest, **self.manifest}, self.small)

    def send(
        self,
        verb: str,
        _: str,
        arguments: Mapping[str, Any],
        host: Host | None = None,
        *,
        hint: str = "again",
    ) -> dict[str, Any]:
        if verb == "look":
            assert host
            return dict(self.of_host.get(host.name, self.found))
        self.done.append(f"{verb} {host.name}" if host and host.name != "ctl1" else verb)
        if verb == self.failing:
            raise error("restore-failed", "no room", hint=hint)
        self.sent[verb] = arguments
        return {"aside": "/aside", "are_ids_known": True, "scripts": 2}

    def deploys(self, options: Options) -> None:
        self.done.append(f"deploy {options.limit} {options.tags}" if options.tags else "deploy")

    def ask(self, questions: Mapping[str, Any], _: object) -> dict[str, Any]:
        return {name: self.steps[name] for name in questions}

    def restore(self, inventory: Path, *parts: str, agrees: bool = False) -> None:
        wish = Wish(Path("c.age"), (), frozenset(parts)) if parts else Wish(Path("c.age"), ())
        restore(
            inventory,
            wish,
            Options(),
            agrees=lambda: agrees,
            say=self.said.append,
            deploys=self.deploys,
        )


@contextmanager
def _alone(*_: object, **__: object) -> Iterator[float]:
    yield 0.0


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(module, "need_age", lambda: None)
    monkeypatch.setattr(module, "read_archive", made.archive)
    monkeypatch.setattr(module, "alone", _alone)

    def send(_: object, *asked: Any, hint: str = "again") -> dict[str, Any]:  # noqa: ANN401
        return made.send(*asked, hint=hint)

    monkeypatch.setattr(module._Hosts, "send", send)
    monkeypatch.setattr(Members, "ask", made.ask)

    def serving(site: Site, _: Options) -> list[Host]:
        return [site.hosts[name] for name in made.serving]

    monkeypatch.setattr(module, "serving", serving)
    monkeypatch.setattr(module, "answering_arbiter", lambda site, _: [*filter(None, [site.database_arbiter])])
    return made


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return write_site(tmp_path, SITE)


def refused(cluster: Cluster, inventory: Path, *parts: str) -> tuple[str, ExitCode]:
    """The reference and exit code of a refusal, after which nothing was done."""
    before = files(inventory)
    with pytest.raises(DeployError) as refusal:
        cluster.restore(inventory, *parts)
    assert cluster.done == []
    assert files(inventory) == before
    return refusal.value.findings[0].reference, refusal.value.exit_code


def files(inventory: Path) -> dict[Path, bytes]:
    """All of the site but the lock of its runs."""
    found = [path for path in inventory.parent.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in found if ".deploy" not in path.parts}


def test_a_bare_controller_gets_each_part_before_what_reads_it(cluster: Cluster, inventory: Path) -> None:
    cluster.restore(inventory)
    assert cluster.done == [
        "deploy ctl1 base,firewall,slurm_packages,munge,slurm_auth,mariadb_arbiter,mariadb,storage",
        "put_database",
        "put_state",
        "deploy",
    ]
    secrets = inventory.parent / "secrets.yml"
    assert secrets.read_bytes() == KEPT["site/secrets.yml"]
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert cluster.sent["put_state"]["least"] == 4
    assert cluster.sent["put_state"]["is_new"]
    assert cluster.sent["put_state"]["records"] == {"drains.json": "[]"}
    assert cluster.sent["put_database"]["expected"] == {"tables": 1, "jobs": 3, "associations": 2}
    assert cluster.sent["put_database"]["size"] == 40


def test_a_state_that_comes_into_sight_with_its_mount_is_asked_about_and_put_aside(
    cluster: Cluster, inventory: Path
) -> None:
    deploys, before = (
        cluster.deploys,
        "deploy ctl1 base,firewall,slurm_packages,munge,slurm_auth,mariadb_arbiter,mariadb,storage",
    )

    def mounts(options: Options) -> None:
        deploys(options)
        cluster.found = {**LIVING, "daemons": [], "jobs": None}

    cluster.deploys = mounts  # type: ignore[method-assign]
    with pytest.raises(DeployError, match="neither state nor database was changed"):
        cluster.restore(inventory)
    assert cluster.done == [before]
    assert any("there is a state, which is put aside" in line for line in cluster.said)
    cluster.found = BARE
    cluster.done.clear()
    cluster.restore(inventory, agrees=True)
    assert cluster.done == [before, "put_database", "put_state", "deploy"]


def test_jobs_that_the_backup_does_not_know_are_named_and_asked_about(
    cluster: Cluster, inventory: Path
) -> None:
    cluster.steps["node2"] = ["17.batch", "17.extern"]
    assert refused(cluster, inventory) == ("restore-not-agreed", ExitCode.CHANGES_PENDING)
    assert any("job 17 (node2)" in line for line in cluster.said)
    cluster.restore(inventory, agrees=True)
    assert cluster.sent["put_state"]["least"] == 18


def test_a_number_that_no_job_can_have_is_none(cluster: Cluster, inventory: Path) -> None:
    cluster.steps["node2"] = ["67108863.0"]
    assert refused(cluster, inventory)[0] == "restore-not-agreed"
    cluster.steps["node2"] = ["67108864.0", "99999999999.0"]
    cluster.restore(inventory)
    assert cluster.sent["put_state"]["least"] == 4


def test_a_living_cluster_is_asked_about_and_put_aside(cluster: Cluster, inventory: Path) -> None:
    cluster.found = LIVING
    assert refused(cluster, inventory)[0] == "restore-not-agreed"
    assert any("7 jobs" in line for line in cluster.said)
    cluster.restore(inventory, agrees=True)
    assert cluster.done == ["put_database", "put_state", "deploy"]
    assert not cluster.sent["put_state"]["is_new"]
    assert any("what was there is /aside" in line for line in cluster.said)


def test_a_part_alone(cluster: Cluster, inventory: Path) -> None:
    assert refused(cluster, inventory, "database")[0] == "backup-without-secrets"
    (inventory.parent / "secrets.yml").write_bytes(SECRETS)
    (inventory.parent / "secrets.yml").chmod(0o600)
    cluster.restore(inventory, "database")
    assert cluster.done == [
        "deploy ctl1 base,firewall,slurm_packages,munge,slurm_auth,mariadb_arbiter,mariadb,storage",
        "put_database",
        "deploy",
    ]


def test_secrets_of_the_site_stay_unless_they_alone_are_asked_for(cluster: Cluster, inventory: Path) -> None:
    secrets = inventory.parent / "secrets.yml"
    secrets.write_bytes(SECRETS.replace(b"old", b"new"))
    secrets.chmod(0o600)
    cluster.restore(inventory)
    assert secrets.read_bytes() == SECRETS.replace(b"old", b"new")
    assert "not as in the backup, and stay as they are: secrets.yml" in cluster.said
    cluster.done.clear()
    assert refused(cluster, inventory, "secrets")[0] == "restore-not-agreed"
    cluster.restore(inventory, "secrets", agrees=True)
    assert secrets.read_bytes() == KEPT["site/secrets.yml"]
    assert cluster.done == []
    assert not any("munge_key" in line for line in cluster.said)


def test_secrets_that_are_asked_for_and_not_there_are_no_success(cluster: Cluster, inventory: Path) -> None:
    del cluster.small["site/secrets.yml"]
    (inventory.parent / "secrets.yml").write_bytes(SECRETS)
    (inventory.parent / "secrets.yml").chmod(0o600)
    assert refused(cluster, inventory, "secrets") == ("backup-without-secrets", ExitCode.BAD_INPUT)
    assert refused(cluster, inventory, "secrets", "state") == ("backup-without-secrets", ExitCode.BAD_INPUT)


@pytest.mark.parametrize("failing", ["put_database", "put_state"])
def test_what_ends_half_way_says_what_is_stopped_and_what_is_put(
    cluster: Cluster, inventory: Path, failing: str
) -> None:
    cluster.found, cluster.failing = LIVING, failing
    with pytest.raises(DeployError) as failed:
        cluster.restore(inventory, agrees=True)
    hint = failed.value.findings[0].hint
    assert "systemctl start slurmdbd slurmctld" in hint
    assert ("the database is that of the backup already" in hint) == (failing == "put_state")


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    return write_site(
        tmp_path, APART, {"group_vars/all.yml": "slurmctld_state_save_location: /shared/state\n"}
    )


def test_every_slurmctld_is_stopped_before_state_and_database_are_put_where_they_belong(
    cluster: Cluster, apart: Path
) -> None:
    cluster.of_host = {
        "ctl1": {**LIVING, "jobs": None, "server": False, "programs": False},
        "ctl2": {**LIVING, "jobs": None, "server": False, "programs": False},
        "db1": {**LIVING, "daemons": ["slurmdbd"], "slurmctld": False, "programs": False},
    }
    assert refused(cluster, apart)[0] == "restore-not-agreed"
    assert any("slurmctld on ctl1, slurmctld on ctl2, slurmdbd on db1" in line for line in cluster.said)
    assert any("a database with 7 jobs" in line for line in cluster.said)
    cluster.restore(apart, agrees=True)
    assert cluster.done == ["stop", "stop ctl2", "stop db1", "put_database db1", "put_state", "deploy"]
    assert cluster.sent["put_state"]["directory"] == "/shared/state"


def test_what_was_given_is_remembered_as_the_part_has_it(cluster: Cluster, apart: Path) -> None:
    cluster.found = LIVING
    cluster.small |= {
        "records/given/slurm_accounts.json": b'{"users": []}',
        "records/given/slurm_reservations.json": b"{}",
    }
    cluster.restore(apart, agrees=True)
    assert cluster.done == [
        *("stop", "stop ctl2", "stop db1"),
        *("put_database db1", "put_given db1", "put_state", "put_given", "put_given ctl2", "deploy"),
    ]
    assert cluster.sent["put_state"]["records"] == {"drains.json": "[]"}
    cluster.done.clear()
    cluster.restore(apart, "database", agrees=True)
    assert cluster.done[3:] == ["put_database db1", "put_given db1", "deploy"]
    assert cluster.sent["put_given"] == {"name": "given/slurm_accounts.json", "text": '{"users": []}'}


def test_new_hosts_get_their_packages_and_storage_first(cluster: Cluster, apart: Path) -> None:
    cluster.of_host = {"ctl2": {**LIVING, "daemons": [], "state": False, "server": False}}
    cluster.restore(apart)
    assert cluster.done == [
        "deploy ctl1,ctl2,db1 base,firewall,slurm_packages,munge,slurm_auth,mariadb_arbiter,mariadb,storage",
        *("stop", "stop ctl2", "stop db1", "put_database db1", "put_state", "deploy"),
    ]


MEMBERS = SITE.replace("[slurm-node]", "[slurm-database]\ndb1\ndb2\nctl1\n[slurm-node]")
OF_DATABASE = {**LIVING, "daemons": ["slurmdbd"], "slurmctld": False, "programs": False}
OF_CONTROLLER = {**LIVING, "jobs": None, "server": False, "programs": False}
STOPPED = ("stop", "stop db1", "stop db2")


@pytest.fixture
def members(cluster: Cluster, tmp_path: Path) -> Path:
    cluster.of_host = {"ctl1": OF_CONTROLLER, "db1": OF_DATABASE, "db2": OF_DATABASE}
    cluster.serving = ["db1", "db2"]
    return write_site(tmp_path, MEMBERS)


def test_one_member_is_loaded_while_the_other_is_down_and_gets_it_afterwards(
    cluster: Cluster, members: Path
) -> None:
    assert refused(cluster, members)[0] == "restore-not-agreed"
    assert any("slurmdbd on db1, slurmdbd on db2" in line for line in cluster.said)
    cluster.restore(members, agrees=True)
    loaded = ("leave db2", "put_database db1", "join db2")
    assert cluster.done == [*STOPPED, *loaded, "put_state", "deploy"]
    assert cluster.sent["join"]["expected"] == {"tables": 1, "jobs": 3, "associations": 2}
    assert any("3 jobs of the backup, and so has db2; what was there" in line for line in cluster.said)


def test_the_member_that_has_all_rows_is_loaded(cluster: Cluster, members: Path) -> None:
    cluster.serving = ["db2"]
    cluster.restore(members, agrees=True)
    assert cluster.done == [*STOPPED, "leave db1", "put_database db2", "join db1", "put_state", "deploy"]


def test_where_no_member_serves_one_begins_before(cluster: Cluster, members: Path) -> None:
    """New machines, too."""
    cluster.serving = []
    deploys = cluster.deploys

    def begins(options: Options) -> None:
        deploys(options)
        cluster.serving = ["db1", "db2"]

    cluster.deploys = begins  # type: ignore[method-assign]
    cluster.restore(members, agrees=True)
    assert cluster.done == [
        "deploy ctl1,db1,db2 base,firewall,slurm_packages,munge,slurm_auth,mariadb_arbiter,mariadb,storage",
        *(*STOPPED, "leave db2", "put_database db1", "join db2", "put_state", "deploy"),
    ]


def test_where_one_begins_the_arbitrator_ends_its_group_in_the_same_run(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.of_host = dict.fromkeys(("db1", "db2"), OF_DATABASE)
    inventory = write_site(tmp_path, MEMBERS.replace("db2\nctl1", "db2\nlogin1"))
    asked: list[Options] = []

    def begins(options: Options) -> None:
        asked.append(options)
        cluster.serving = ["db1", "db2"]

    cluster.deploys = begins  # type: ignore[method-assign]
    cluster.restore(inventory, agrees=True)
    limit = (asked[0].limit or "").split(",")
    plan = tagged(build_plan(read_site(inventory), limit=limit), asked[0].tags, asked[0].skip_tags)
    assert plan.groups["phase_database"] == ("db1", "db2")
    assert plan.groups["phase_database_arbiter"] == ("login1",)


def test_the_other_member_is_back_where_the_database_was_not_loaded(cluster: Cluster, members: Path) -> None:
    cluster.failing = "put_database"
    with pytest.raises(DeployError, match="no room"):
        cluster.restore(members, agrees=True)
    assert cluster.done == [*STOPPED, "leave db2", "put_database db1", "join db2"]
    assert cluster.sent["join"]["expected"] == {}


def test_a_trial_loads_a_member_s_throwaway(cluster: Cluster, members: Path) -> None:
    try_restore(members, Wish(Path("c.age"), ()), Options(), cluster.said.append)
    assert cluster.done == ["try_state", "try_database db1"]
    cluster.serving = []
    try_restore(members, Wish(Path("c.age"), ()), Options(), cluster.said.append)
    assert any("MariaDB serves on none of db[1-2]" in line for line in cluster.said)


def test_a_controller_that_does_not_answer_ends_it_before_anything_is_changed(
    cluster: Cluster, apart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(_: object, verb: str, __: str, arguments: object, host: Host) -> dict[str, Any]:
        if host.name == "ctl2":
            raise error("restore-failed", "no route", hint="the same again", exit_code=ExitCode.UNREACHABLE)
        return cluster.send(verb, "", {"of": arguments}, host)

    monkeypatch.setattr(module._Hosts, "send", send)
    assert refused(cluster, apart) == ("restore-failed", ExitCode.UNREACHABLE)


def test_a_trial_asks_the_host_of_the_database(cluster: Cluster, apart: Path) -> None:
    cluster.found = LIVING
    try_restore(apart, Wish(Path("c.age"), ()), Options(), cluster.said.append)
    assert cluster.done == ["try_state", "try_database db1"]
    cluster.found = BARE
    try_restore(apart, Wish(Path("c.age"), ()), Options(), cluster.said.append)
    assert any("db1 has no MariaDB yet" in line for line in cluster.said)


def test_a_node_that_does_not_answer_is_named(cluster: Cluster, inventory: Path) -> None:
    cluster.steps["node2"] = Unanswered("no route")
    cluster.restore(inventory)
    assert any(line.startswith("node2: does not answer") for line in cluster.said)


@pytest.mark.parametrize(
    ("manifest", "reference"),
    [
        ({"made_at": 0}, "backup-old"),
        ({"cluster": "another"}, "backup-of-other-cluster"),
    ],
)
def test_a_backup_that_is_not_the_right_one_is_refused(
    cluster: Cluster, inventory: Path, manifest: dict[str, Any], reference: str
) -> None:
    cluster.manifest = manifest
    assert refused(cluster, inventory) == (reference, ExitCode.BAD_INPUT)


def test_a_backup_of_a_timer_needs_a_site_with_secrets(cluster: Cluster, inventory: Path) -> None:
    del cluster.small["site/secrets.yml"]
    assert refused(cluster, inventory) == ("backup-without-secrets", ExitCode.BAD_INPUT)


def test_a_backup_that_is_cut_off_is_refused(
    cluster: Cluster, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> Archive:
        message = "unexpected EOF"
        raise UnreadableError(message)

    monkeypatch.setattr(module, "read_archive", read)
    assert refused(cluster, inventory) == ("backup-unreadable", ExitCode.BAD_INPUT)


def test_a_trial_changes_nothing(cluster: Cluster, inventory: Path) -> None:
    try_restore(inventory, Wish(Path("c.age"), ()), Options(), cluster.said.append)
    assert cluster.done == ["try_state"]
    assert not (inventory.parent / "secrets.yml").exists()
    assert any("was not loaded" in line for line in cluster.said)
    cluster.found = LIVING
    try_restore(inventory, Wish(Path("c.age"), ()), Options(), cluster.said.append)
    assert cluster.done == ["try_state", "try_state", "try_database"]
    assert cluster.sent["try_database"]["size"] == 40
    json.dumps(cluster.sent)
