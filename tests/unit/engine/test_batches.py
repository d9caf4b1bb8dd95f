"""Batches of nodes: how many at once, and the loop, over the ledger itself on a Slurm of the test's own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from ClusterShell.NodeSet import NodeSet

from deploy.engine import batches as module
from deploy.engine import database, drains
from deploy.engine.batches import Share, StoppedError, Work, batches, in_batches, next_batch, share
from deploy.engine.drains import Ledger
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode, Finding
from deploy.run import drains as on_controller
from deploy.site.inventory import read_site
from tests.unit.run.slurm import Slurm
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\nnode1 ansible_host=10.0.0.2\n"


def _names(expression: str) -> list[str]:
    return list(NodeSet(expression))


def _split(nodes: str, partitions: Mapping[str, str], most: str, out: str = "") -> list[str]:
    members = {name: _names(folded) for name, folded in partitions.items()}
    return [str(NodeSet.fromlist(b)) for b in batches(_names(nodes), members, share(most), _names(out))]


@pytest.mark.parametrize(
    ("nodes", "partitions", "most", "expected"),
    [
        # A tenth of each; what is smaller than ten nodes gives one.
        ("n[1-20]", {"all": "n[1-20]"}, "10%", [f"n[{i}-{i + 1}]" for i in range(1, 20, 2)]),
        ("n[1-3]", {"all": "n[1-3]"}, "10%", ["n1", "n2", "n3"]),
        # A partition of one is still taken, a node at a time.
        ("n1", {"tiny": "n1"}, "1%", ["n1"]),
        # Nodes n[1-2] are all of gpu and a few of all: gpu holds back, the others do not wait for it.
        ("n[1-8]", {"all": "n[1-8]", "gpu": "n[1-2]"}, "50%", ["n[1,3-5]", "n[2,6-8]"]),
        # Overlapping chains: no batch has two neighbours.
        ("n[1-4]", {"a": "n[1-2]", "b": "n[2-3]", "c": "n[3-4]"}, "50%", ["n[1,3]", "n[2,4]"]),
        # A node of no partition holds nothing up.
        ("n[1-6]", {"all": "n[1-2]"}, "50%", ["n[1,3-6]", "n2"]),
        # A number is of nodes in all, whatever the partitions.
        ("n[1-5]", {"all": "n[1-20]", "gpu": "n1"}, "2", ["n[1-2]", "n[3-4]", "n5"]),
        # Only some of a partition are named: its share is of all of it.
        ("n[1-4]", {"all": "n[1-40]"}, "10%", ["n[1-4]"]),
    ],
)
def test_nodes_are_split(nodes: str, partitions: dict[str, str], most: str, expected: list[str]) -> None:
    assert _split(nodes, partitions, most) == expected


def test_what_is_out_comes_first_and_counts_for_a_percentage() -> None:
    assert _split("n[1-4]", {"all": "n[1-10]"}, "20%", "n[3,9]") == ["n3", "n1", "n2", "n4"]
    assert _split("n[1-4]", {"all": "n[1-10]"}, "2", "n[8-10]") == ["n[1-2]", "n[3-4]"]
    members = {"all": _names("n[1-10]")}
    assert next_batch(_names("n[1-4]"), members, share("10%"), {"n9"}) == ()


def test_no_partition_is_ever_short_of_more_than_its_share() -> None:
    members = {"all": _names("n[1-60]"), "gpu": _names("n[1-15]"), "big": _names("n[10-40]"), "one": ["n7"]}
    most = Share(20, is_percent=True)
    done: list[str] = []
    for batch in batches(_names("n[1-60]"), members, most):
        done += batch
        for name, nodes in members.items():
            assert len({*batch} & {*nodes}) <= max(1, len(nodes) // 5), (name, batch)
    assert sorted(done) == sorted(_names("n[1-60]"))


@pytest.mark.parametrize("text", ["0", "0%", "101%", "-1", "2.5%", "", "ten", "1e3"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(DeployError, match="invalid-option"):
        share(text)


class Cluster:
    """Three nodes of a partition; what happens to a batch is what the test says."""

    def __init__(self, slurm: Slurm, ledger: Ledger) -> None:
        self.slurm = slurm
        self.ledger = ledger
        self.acted: list[tuple[str, ...]] = []
        self.bad: dict[str, str] = {}
        self.ill: dict[str, str] = {}
        self.on_act: Callable[[], None] = lambda: None
        self.say: Callable[[str], None] = lambda _: None

    def _act(self, batch: tuple[str, ...]) -> Mapping[str, str]:
        self.acted.append(batch)
        assert all(self.slurm.reasons[node] for node in batch), "not drained"
        self.on_act()
        return {node: why for node, why in self.bad.items() if node in batch}

    def _check(self, batch: tuple[str, ...]) -> Mapping[str, str]:
        return {node: why for node, why in self.ill.items() if node in batch}

    def go(self, most: str = "1") -> list[str]:
        return self.go_with("node[1-3]", most)

    def go_with(self, names: str, most: str = "1") -> list[str]:
        work = Work("reboot", "reboot: kernel", self._act, self._check, lambda nodes: f"again {nodes}")
        nodes = in_batches(self.ledger, _names(names), share(most), work, self.say)
        return [node.name for node in nodes if node.is_drained]

    @property
    def held(self) -> list[tuple[str, str, str]]:
        return [(e["node"], e["who"], e["why"]) for e in on_controller.listed()["held"]]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    slurm = Slurm(tmp_path)
    slurm.partitions = dict.fromkeys(slurm.reasons, "all")
    monkeypatch.setattr(on_controller, "_run", slurm.run)
    monkeypatch.setattr(on_controller, "LEDGER", tmp_path / "ledger/drains.json")
    monkeypatch.setattr(drains, "_POLL_SECONDS", 0)
    monkeypatch.setenv("SUDO_USER", "alice")
    verbs: dict[str, Callable[..., Any]] = {
        "listed": on_controller.listed,
        "drain": on_controller.drain,
        "resume": on_controller.resume,
        "hold": on_controller.hold,
    }

    def ask(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, arguments)),) = questions.items()
        try:
            return {name: verbs[verb](**arguments)}
        except on_controller.SilentError as problem:
            return {name: {"trouble": str(problem)}}

    monkeypatch.setattr(drains, "ask", ask)
    return Cluster(slurm, Ledger(read_site(write_site(tmp_path, SITE)), Options()))


def test_all_batches_go_through_and_come_back(cluster: Cluster) -> None:
    assert cluster.go() == []
    assert cluster.acted == [("node1",), ("node2",), ("node3",)]
    assert ({*cluster.slurm.reasons.values()}, cluster.held) == ({""}, [])


def test_jobs_are_waited_for(cluster: Cluster) -> None:
    cluster.slurm.jobs = "17|bob|node1\n"
    waited: list[str] = []

    def say(line: str) -> None:
        waited.append(line)
        cluster.slurm.jobs = ""

    cluster.say = say
    cluster.go()
    assert waited[0] == "waiting for 1 job on node1: 17 (bob)"


@pytest.mark.parametrize("is_found_by_check", [True, False])
def test_the_first_bad_batch_stops_it(cluster: Cluster, is_found_by_check: bool) -> None:  # noqa: FBT001
    (cluster.ill if is_found_by_check else cluster.bad)["node2"] = "it did not come back"
    with pytest.raises(StoppedError) as stopped:
        cluster.go()
    course = stopped.value.course
    assert (course.done, course.bad, course.left) == (
        ("node1",),
        {"node2": "it did not come back"},
        ("node3",),
    )
    assert cluster.held == [("node2", "alice", "reboot: kernel: it did not come back")]
    assert cluster.slurm.reasons == {
        "node1": "",
        "node2": "deploy: reboot: kernel: it did not come back (alice)",
        "node3": "",
    }
    assert str(stopped.value) == (
        "node2: reboot stopped; node2 stays drained: it did not come back; done: node1; "
        "not begun, and as they were: node3 [batch-stopped]\n"
        "  -> put node2 right, then: again node[2-3]"
    )


def test_the_same_again_releases_what_went_wrong_before(cluster: Cluster) -> None:
    on_controller.drain(["node3"], "alice", "reboot: kernel: by hand")
    cluster.bad = {"node2": "it did not come back"}
    for _ in range(2):
        with pytest.raises(StoppedError):
            cluster.go()
    assert [why for node, _, why in cluster.held if node == "node2"] == [
        "reboot: kernel: it did not come back"
    ]
    cluster.bad = {}
    assert cluster.go() == ["node3"]
    assert cluster.held == [("node3", "alice", "reboot: kernel: by hand")]


def test_good_nodes_of_a_bad_batch_are_released(cluster: Cluster) -> None:
    cluster.bad["node2"] = "dead"
    with pytest.raises(StoppedError):
        cluster.go("3")
    assert [node for node, reason in cluster.slurm.reasons.items() if reason] == ["node2"]


def test_drains_of_others_and_of_the_same_admin_stay(cluster: Cluster) -> None:
    on_controller.drain(["node1"], "alice", "replace DIMM")
    on_controller.drain(["node2"], "bob", "cabling")
    cluster.slurm.reasons["node3"] = "bad disk"
    assert cluster.go() == ["node1", "node2", "node3"]
    assert cluster.held == [("node1", "alice", "replace DIMM"), ("node2", "bob", "cabling")]
    assert cluster.slurm.reasons["node3"] == "bad disk"


def test_an_interruption_while_waiting_gives_the_nodes_back(cluster: Cluster) -> None:
    cluster.slurm.jobs = "17|bob|node1\n"

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    cluster.say = interrupt
    with pytest.raises(KeyboardInterrupt):
        cluster.go()
    assert ({*cluster.slurm.reasons.values()}, cluster.acted) == ({""}, [])


def test_an_interruption_of_the_work_keeps_the_nodes_drained(cluster: Cluster) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    cluster.on_act = interrupt
    with pytest.raises(KeyboardInterrupt):
        cluster.go()
    assert cluster.held == [("node1", "alice", "reboot: kernel: reboot was interrupted")]


def test_a_silent_controller_names_where_things_stand(cluster: Cluster) -> None:
    def fall_silent() -> None:
        if len(cluster.acted) == 2:
            cluster.slurm.fails_at = "node2"

    cluster.on_act = fall_silent
    with pytest.raises(StoppedError) as stopped:
        cluster.go()
    assert [finding.reference for finding in stopped.value.findings] == ["controller-silent", "batch-stopped"]
    course = stopped.value.course
    assert (course.done, [*course.bad], course.left) == (("node1",), ["node2"], ("node3",))
    assert stopped.value.exit_code is ExitCode.UNREACHABLE


def test_where_a_partition_has_no_node_to_spare_nothing_begins(cluster: Cluster) -> None:
    cluster.slurm.reasons["node4"] = "bad disk"
    cluster.slurm.partitions["node4"] = "all"
    with pytest.raises(DeployError, match="no-node-to-spare"):
        cluster.go("10%")
    assert (cluster.acted, cluster.held) == ([], [])


def test_the_nodes_of_no_partition_have_a_share_of_their_own(cluster: Cluster) -> None:
    cluster.slurm.partitions = {"node1": "all"}
    cluster.go("50%")
    assert cluster.acted == [("node1", "node2"), ("node3",)]


def test_an_unknown_node_begins_nothing(cluster: Cluster) -> None:
    del cluster.slurm.reasons["node3"]
    with pytest.raises(DeployError, match="node-not-known-to-slurm"):
        cluster.go()
    assert cluster.acted == []


VOTES = (
    SITE + "node2 ansible_host=10.0.0.3\nnode3 ansible_host=10.0.0.4\n[slurm-database]\nnode1\nnode2\nnode3\n"
)
MISSING = [Finding("node1", "members-missing", "2 of 3 have a vote", "start it")]


@pytest.fixture
def voting(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Finding]]:
    """All three nodes have a vote on the database; what is missing of it, each time it is asked."""
    cluster.ledger = Ledger(read_site(write_site(tmp_path, VOTES)), Options())
    looks: list[list[Finding]] = []

    def look(*_: object) -> list[Finding]:
        return looks.pop(0) if looks else []

    monkeypatch.setattr(database, "half_database", look)
    monkeypatch.setattr(module, "half_database", look)
    monkeypatch.setattr(database, "_POLL_SECONDS", 0)
    return looks


def test_of_those_with_a_vote_on_the_database_one_at_a_time(
    cluster: Cluster, voting: list[list[Finding]]
) -> None:
    # Not whole at once after the first.
    voting += [[], MISSING, []]
    assert cluster.go("100%") == []
    assert cluster.acted == [("node1",), ("node2",), ("node3",)]


def test_one_without_which_the_database_could_not_go_on_is_left_alone(
    cluster: Cluster, voting: list[list[Finding]]
) -> None:
    voting += [[], [], [Finding("node1", "member-not-synced", "its database is not whole", "wait")]]
    with pytest.raises(
        StoppedError, match="done: node1; not begun, and as they were: node\\[2-3\\]"
    ) as problem:
        cluster.go()
    assert problem.value.findings[0].reference == "member-not-synced"
    assert cluster.acted == [("node1",)]
    assert ({*cluster.slurm.reasons.values()}, cluster.held) == ({""}, [])


def test_one_that_is_no_member_afterwards_stays_drained(
    cluster: Cluster, voting: list[list[Finding]]
) -> None:
    voting += [[], *([MISSING] * 50)]
    with pytest.raises(StoppedError, match="node1 stays drained: node1: 2 of 3 have a vote"):
        cluster.go("3")
    assert cluster.acted == [("node1",)]


def test_one_that_is_copied_from_another_is_waited_for(cluster: Cluster, voting: list[list[Finding]]) -> None:
    copied = [Finding("node1", "member-not-synced", "it does not run", "wait")]
    voting += [[], *([copied] * 50)]
    assert cluster.go("3") == []


@pytest.mark.parametrize(
    ("found", "node"),
    [
        ([Finding("node2", "host-silent", "it does not answer", ""), *MISSING], "node2"),
        ([Finding("node1", "member-not-synced", "it has no majority", "")], "node1"),
        # Both have all rows: the arbitrator is what is missing.
        ([*MISSING, Finding("node2", "members-missing", "2 of 3", "")], "node3"),
    ],
)
def test_one_that_is_away_already_may_be_repaired(
    cluster: Cluster, voting: list[list[Finding]], found: list[Finding], node: str
) -> None:
    for name in ("node1", "node2", "node3"):
        assert database.is_away(cluster.ledger.site, found, name) is (name == node)
    # It is still so afterwards, as where another one is no member yet.
    voting += [found] * 50
    assert cluster.go_with(node) == []
    assert cluster.acted == [(node,)]
