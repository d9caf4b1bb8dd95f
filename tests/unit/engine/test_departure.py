"""Hosts that leave: remembered on controllers, named, taken off the cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy.cli.node import node_app
from deploy.engine import alone, departure, drains, members, records
from deploy.engine.departure import Wanted
from deploy.engine.members import Members
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, error
from deploy.run import drains as on_controller
from deploy.run.cluster_lock import Held
from deploy.run.ssh import Unanswered
from deploy.site.inventory import Host, read_site
from tests.unit.run.slurm import Slurm
from tests.unit.site.sites import INVENTORY, write_site

_HELD = ["running slurmd", "the cluster's munge key"]


class Cluster:
    """Hosts that answer: a controller with its list, and one that left."""

    def __init__(self) -> None:
        self.hosts: dict[str, Any] = {}
        self.jobs: list[str] = []
        self.steps: list[str] = []
        self.stands: dict[str, str] = {}
        self.held = [*_HELD]
        self.silent: set[str] = set()
        self.locked: list[str] = []
        self.is_somebody_at_work = False

    @contextmanager
    def lock(self, controllers: Sequence[Host], *_: object) -> Iterator[Held]:
        if self.is_somebody_at_work:
            raise error("cluster-locked", "bob is at work on this cluster", where="ctl1", hint="wait")
        self.locked = [host.name for host in controllers]
        yield Held()
        self.locked = []

    def ask(
        self, questions: Mapping[str, tuple[str, Mapping[str, Any]]], *_: object, **__: ModuleType
    ) -> dict[str, Any]:
        return {
            name: Unanswered("no route") if name in self.silent else getattr(self, f"_{verb}")(**arguments)
            for name, (verb, arguments) in questions.items()
        }

    def _look(self, phases: list[str]) -> dict[str, Any]:
        assert phases
        return {"records": {}, "pending": {}, "left": [], "hosts": self.hosts}

    def _stand(self) -> dict[str, dict[str, str]]:
        return {name: {"stands": how} for name, how in self.stands.items()}

    def _know(self, hosts: dict[str, Any]) -> None:
        self.hosts = hosts

    def _holds(self, key: str | None) -> list[str]:
        assert key is None or len(key) == 64
        return self.held

    def _jobs(self, node: str) -> list[str]:
        assert node in {"old", "node1"}
        return self.jobs

    def _leave(self, key: str | None) -> dict[str, list[str]]:
        assert key is None or len(key) == 64
        assert self.locked == ["ctl1"]
        if self.steps:
            return {"jobs": self.steps, "done": [], "holds": self.held}
        done, self.held = self.held, []
        return {"jobs": [], "done": done, "holds": []}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    hosts = Cluster()
    hosts.hosts = {"old": {"connection": {"ansible_host": "10.9.9.9"}, "groups": ["slurm-node"]}}
    monkeypatch.setattr(members, "ask", hosts.ask)
    monkeypatch.setattr(records, "ask", hosts.ask)
    monkeypatch.setattr(departure, "ask", hosts.ask)
    monkeypatch.setattr(alone, "cluster_lock", hosts.lock)
    return hosts


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return write_site(tmp_path)


def removed(inventory: Path, name: str = "old", *, is_gone: bool = False) -> list[str]:
    return [*departure.remove(inventory, name, Options(), print, Wanted(is_gone=is_gone)).done]


def refused(action: Callable[[], object]) -> tuple[str, ExitCode]:
    with pytest.raises(DeployError) as problem:
        action()
    return problem.value.findings[0].reference, problem.value.exit_code


def test_a_run_makes_its_hosts_known_and_keeps_those_that_left(cluster: Cluster, inventory: Path) -> None:
    site = read_site(inventory)
    members_of_site = Members(site, Options())
    known = {"ctl1": cluster.hosts}
    members_of_site.remember(known, ["ctl1", "node1"])
    assert set(cluster.hosts) == {"ctl1", "node1", "old"}
    known = {"ctl1": cluster.hosts}
    (left,) = members_of_site.departed(known)
    assert (left.name, left.holds) == ("old", tuple(_HELD))
    members_of_site.remember(known, ["ctl1"], ["old"])
    assert set(cluster.hosts) == {"ctl1", "node1"}


def test_a_host_that_left_is_taken_off_and_forgotten(cluster: Cluster, inventory: Path) -> None:
    assert removed(inventory) == _HELD
    assert cluster.locked == []
    assert cluster.hosts == {}
    assert cluster.held == []
    assert refused(lambda: removed(inventory)) == ("node-not-known", ExitCode.BAD_INPUT)


@pytest.mark.parametrize("is_gone", [True, False])
def test_while_somebody_is_at_work_on_the_cluster_nobody_leaves(
    cluster: Cluster, inventory: Path, *, is_gone: bool
) -> None:
    cluster.is_somebody_at_work = True
    found = refused(lambda: removed(inventory, is_gone=is_gone))
    assert found == ("cluster-locked", ExitCode.BAD_INPUT)
    assert cluster.held == _HELD
    assert "old" in cluster.hosts


@pytest.mark.parametrize("name", ["login1", "ctl1"])
def test_a_host_of_the_inventory_that_is_no_node_stays(cluster: Cluster, inventory: Path, name: str) -> None:
    assert refused(lambda: removed(inventory, name)) == ("node-still-in-inventory", ExitCode.BAD_INPUT)
    assert cluster.held == _HELD


_TWO = (
    INVENTORY.replace("[slurm-master]\n", "[slurm-master]\nctl2 ansible_host=10.0.0.8\n")
    + "\n[slurm-database]\nlogin1\n"
)


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        (INVENTORY, "ctl1", "deploy cluster {}, and this again"),
        (_TWO, "login1", "deploy cluster {}, and this again"),
        # A run would be refused while it runs.
        (_TWO, "ctl1", "this again, and after it: deploy cluster {}"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_what_comes_first_for_who_leaves(tmp_path: Path, text: str, name: str, hint: str) -> None:
    shared = {"group_vars/slurm-master.yml": "slurmctld_state_save_location: /shared/state\n"}
    inventory = write_site(tmp_path, text, shared)
    with pytest.raises(DeployError) as problem:
        removed(inventory, name)
    assert problem.value.findings[0].hint == f"delete it there, then: {hint.format(inventory)}"


@pytest.mark.parametrize(
    ("stands", "is_refused"),
    [
        ({"ctl1": "silent", "old": "leads"}, True),
        ({"ctl1": "leads", "old": "stands by"}, False),
        # It takes over.
        ({"ctl1": "silent", "old": "leads", "ctl3": "stands by"}, False),
        ({"ctl1": "silent", "old": "silent"}, False),
        ({"ctl1": "leads"}, False),
    ],
)
@pytest.mark.parametrize("is_gone", [True, False])
def test_the_only_one_that_leads_does_not_leave(
    cluster: Cluster, inventory: Path, stands: dict[str, str], *, is_refused: bool, is_gone: bool
) -> None:
    cluster.hosts["old"]["groups"] = ["slurm-master"]
    cluster.stands = stands
    if is_refused and not is_gone:
        with pytest.raises(DeployError) as problem:
            removed(inventory)
        (found,) = problem.value.findings
        assert (found.reference, problem.value.exit_code) == ("controller-leads", ExitCode.FAILED)
        assert "(on ctl1); when that one leads" in found.hint
        # Where the first one was away, a run has to give it what the cluster has, with the one that leads.
        assert f"put old's line back, deploy cluster {inventory}; then delete it" in found.hint
        assert "old" in cluster.hosts
        assert cluster.held == _HELD
    else:
        removed(inventory, is_gone=is_gone)
        assert "old" not in cluster.hosts


_REST = "[slurm-rest]\nctl1\n"
_DATABASES = "[slurm-database]\nctl1\nlogin1\nnode1\n"
_PASSWORD, _MEMBERS = "slurmdbd_database_password", "mariadb_cluster_key"


@pytest.mark.parametrize(
    ("groups", "more", "keys"),
    [
        (["slurm-node"], _REST, ()),
        (["slurm-master"], "", (_PASSWORD,)),
        (["slurm-master"], _REST, ("slurm_tokens_key", _PASSWORD)),
        (["slurm-database"], _REST + _DATABASES, ("slurm_tokens_key", _PASSWORD, _MEMBERS)),
    ],
)
def test_the_secrets_that_a_host_had_are_named(
    cluster: Cluster, tmp_path: Path, groups: list[str], more: str, keys: tuple[str, ...]
) -> None:
    cluster.hosts["old"]["groups"] = groups
    inventory = write_site(tmp_path, f"{INVENTORY}\n{more}")
    came = departure.remove(inventory, "old", Options(), print, Wanted(is_gone=True))
    assert came.keys == ("munge_key", *keys)


def test_one_command_replaces_all_that_whoever_has_the_disk_knows(cluster: Cluster, inventory: Path) -> None:
    cluster.hosts["old"]["groups"] = ["slurm-master"]
    came = CliRunner().invoke(node_app, ["remove", str(inventory), "old", "--gone"])
    assert came.exit_code == 0
    assert came.output.strip().endswith(
        "has the cluster's munge_key, slurmdbd_database_password; to replace them: "
        f"deploy cluster {inventory} --rotate munge_key --rotate slurmdbd_database_password"
    )


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(tmp_path)
    monkeypatch.setattr(on_controller, "_run", made.run)
    monkeypatch.setattr(on_controller, "LEDGER", tmp_path / "ledger/drains.json")
    monkeypatch.setattr(drains, "_POLL_SECONDS", 0)

    def ask(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, arguments)),) = questions.items()
        return {name: getattr(on_controller, verb)(**arguments)}

    monkeypatch.setattr(drains, "ask", ask)
    return made


def test_a_node_of_the_inventory_is_drained_and_its_lines_are_named(
    cluster: Cluster, slurm: Slurm, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inventory.parent)
    Path("host_vars").mkdir()
    Path("host_vars/node1.yml").write_text("site_rack: 1\n")
    before = inventory.read_text()
    came = departure.remove(inventory, "node1", Options(), print, Wanted())
    assert [*came.done] == _HELD
    assert came.lines == ("inventory.ini:4", "inventory.ini:14 (in node[1:2])", "host_vars/node1.yml")
    assert (cluster.held, inventory.read_text()) == ([], before)
    assert slurm.reasons["node1"].startswith("deploy: remove (")


def test_a_node_with_jobs_is_drained_and_left_until_they_end(
    cluster: Cluster, slurm: Slurm, inventory: Path
) -> None:
    slurm.jobs = "12|alice|node1\n"
    assert refused(lambda: removed(inventory, "node1")) == ("node-has-jobs", ExitCode.FAILED)
    assert (cluster.held, slurm.reasons["node1"] != "") == (_HELD, True)

    def say(line: str) -> None:
        assert line == "waiting for 1 job on node1: 12 (alice)"
        slurm.jobs = ""

    came = departure.remove(inventory, "node1", Options(), say, Wanted(waits=True))
    assert ([*came.done], cluster.held) == (_HELD, [])


def test_a_node_that_is_no_more_is_drained_and_not_asked(
    cluster: Cluster, slurm: Slurm, inventory: Path
) -> None:
    cluster.silent = {"node1"}
    assert refused(lambda: removed(inventory, "node1")) == ("node-not-asked", ExitCode.UNREACHABLE)
    assert removed(inventory, "node1", is_gone=True) == []
    assert slurm.reasons["node1"] != ""


@pytest.mark.parametrize("kind", ["jobs", "steps"])
def test_a_host_with_jobs_stays(cluster: Cluster, inventory: Path, kind: str) -> None:
    setattr(cluster, kind, ["12 (alice)"])
    assert refused(lambda: removed(inventory)) == ("node-has-jobs", ExitCode.FAILED)
    assert cluster.held == _HELD
    assert "old" in cluster.hosts


def test_a_host_that_is_silent_is_only_forgotten_when_it_is_gone(cluster: Cluster, inventory: Path) -> None:
    cluster.silent = {"old"}
    assert refused(lambda: removed(inventory)) == ("node-not-asked", ExitCode.UNREACHABLE)
    assert "old" in cluster.hosts
    assert removed(inventory, is_gone=True) == []
    assert cluster.hosts == {}


def test_without_a_controller_nobody_leaves(cluster: Cluster, inventory: Path) -> None:
    cluster.silent = {"ctl1"}
    assert refused(lambda: removed(inventory)) == ("controller-silent", ExitCode.UNREACHABLE)
    assert cluster.held == _HELD
