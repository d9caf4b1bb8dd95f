import pytest

from deploy.plan.gpu_vars import has_mig
from deploy.validate.result import Outcome
from deploy.validate.thresholds import Thresholds
from tests.unit.judge.statuses import answered, lost
from tests.unit.validate.clusters import ADDRESSES, NODES, Change, Cluster, by_outcome, site


def _unreachable(cluster: Cluster) -> None:
    cluster.states["node2"] = lost("node2")


def _service_down(cluster: Cluster) -> None:
    down = {"name": "slurmd", "load": "loaded", "active": "failed", "result": "signal", "seconds": 9.0}
    cluster.states["node1"] = answered("node1", services=[down], shortfalls=[])


def _service_absent(cluster: Cluster) -> None:
    absent = {"name": "slurmd", "load": "not-found", "active": "inactive", "result": "", "seconds": None}
    cluster.states["node1"] = answered("node1", services=[absent], shortfalls=[])


def _clock_off(cluster: Cluster) -> None:
    cluster.states["node1"] = answered("node1", ahead=[4.9, 5.1], shortfalls=[])


def _short(cluster: Cluster) -> None:
    cluster.states["node1"] = answered("node1", shortfalls=["1 instead of 2 gpus"])


def _wrong_name(cluster: Cluster) -> None:
    cluster.looks["node2"]["addresses"] |= {"node1": ["192.0.2.1", "::1"], "ctl1": []}


def _all_names_wrong(cluster: Cluster) -> None:
    cluster.looks["node2"]["addresses"] = {name: [] for name in [*ADDRESSES, "node9"] if name in ADDRESSES}
    cluster.looks["node2"]["addresses"]["node2"] = []


def _blocked(cluster: Cluster) -> None:
    cluster.looks["node2"]["refusals"] = {"node1:6818": "Connection refused"}
    cluster.looks["ctl1"]["refusals"] = {"node1:6818": "Connection refused"}


def _full(cluster: Cluster) -> None:
    cluster.looks["node1"]["space"]["/tmp"] = [4, 100, 0, 1000]
    cluster.looks["node2"]["space"]["/home"] = None


def _other_key(cluster: Cluster) -> None:
    cluster.credentials = {
        name: {
            "undecoded": {
                maker: "unmunge: Error: Invalid credential"
                for maker in ADDRESSES
                if (name == "node2") != (maker == "node2")
            }
        }
        for name in ADDRESSES
    }


def _slow(cluster: Cluster) -> None:
    cluster.done["probes"]["node2"]["answers"][0]["work_seconds"] = 0.31


WRONG: dict[str, tuple[str, Change, dict[str, str], str]] = {
    "unreachable": ("reachable", _unreachable, {"node2": "No route to host"}, "10.0.0.12"),
    "a daemon failed": (
        "services",
        _service_down,
        {"node1": "slurmd failed for"},
        "deploy cluster inventory.ini --limit node1",
    ),
    "a daemon is not there": (
        "services",
        _service_absent,
        {"node1": "not installed: slurmd"},
        "deploy cluster inventory.ini --limit node1",
    ),
    "a clock": ("clock", _clock_off, {"node1": "ahead of this machine's"}, "chron"),
    "hardware": ("hardware", _short, {"node1": "1 instead of 2 gpus"}, ""),
    "names": (
        "names",
        _wrong_name,
        {"node2": "ctl1 is not known here, not 10.0.0.1; node1 is 192.0.2.1, ::1 here, not 10.0.0.11"},
        "--limit node2",
    ),
    "ways": (
        "ways",
        _blocked,
        {
            "node1": "no connection to node1:6818 from ctl1: Connection refused; "
            "node1:6818 from node2: Connection refused"
        },
        "(on node1)",
    ),
    "space": (
        "space",
        _full,
        {
            "node1": "/tmp has 4.0 % of its space free; /tmp has 0.0 % of its inodes",
            "node2": "/home does not answer",
        },
        "du",
    ),
    "munge": (
        "munge",
        _other_key,
        {"node2": "munge of node2 and of ctl1, login1, node1 do not understand each other: unmunge: Error"},
        "(on node2)",
    ),
    "speed": ("speed", _slow, {"node2": "310 ms for a piece of work, typical 200 ms"}, "(on node2)"),
}


@pytest.mark.parametrize(("check", "change", "messages", "hint"), WRONG.values(), ids=WRONG)
def test_a_fault_is_found_where_it_is(
    check: str, change: Change, messages: dict[str, str], hint: str
) -> None:
    cluster = Cluster()
    change(cluster)
    results = cluster.results(check)
    failed = by_outcome(results, Outcome.FAILED)
    assert failed.keys() == messages.keys()
    assert {name: messages[name] in message for name, message in failed.items()} == dict.fromkeys(
        failed, True
    )
    assert all(hint in result.hint for result in results if result.outcome is Outcome.FAILED)


def test_a_host_that_knows_nobody_is_not_quoted_at_length() -> None:
    cluster = Cluster()
    cluster.looks["login1"]["addresses"] = {name: [] for name in (*ADDRESSES,)}
    cluster.groups["slurm-node"] = ("node1", "node2", "node3", "node4")
    cluster.groups["slurm-cluster"] = (*ADDRESSES, "node3", "node4")
    cluster.looks["login1"]["addresses"] |= {"node3": [], "node4": []}
    assert by_outcome(cluster.results("names"), Outcome.FAILED)["login1"].endswith("; and 2 more")


def test_mounts() -> None:
    scratch = {"path": "/scratch", "type": "beegfs", "servers": ["10.0.0.1"]}
    cluster = Cluster(variables={"network_mounts_filesystems": [scratch]})
    for name, look in cluster.looks.items():
        look["mounted"] = {"/scratch": "" if name == "node2" else "beegfs"}
    results = cluster.results("mounts")
    assert by_outcome(results, Outcome.FAILED) == {"node2": "not mounted: /scratch"}
    assert by_outcome(results, Outcome.PASSED) == dict.fromkeys(("ctl1", "login1", "node1"), "1 mounted")
    assert next(v.hint for v in results if v.where == "node2") == "mount /scratch   (on node2)"


def test_a_node_without_a_contract_is_not_measured() -> None:
    cluster = Cluster()
    cluster.states["node1"] = answered("node1")
    assert by_outcome(cluster.results("hardware"), Outcome.NOT_MEASURED).keys() == {"node1"}
    del cluster.contract["node1"]
    assert by_outcome(cluster.results("nodes"), Outcome.NOT_MEASURED).keys() == {"node1"}


def test_nodes_are_as_fast_as_their_own_kind() -> None:
    cluster = Cluster()
    cluster.done["probes"]["node2"]["answers"][0]["work_seconds"] = 2.0
    cluster.contract["node2"]["cpus"] = 128
    assert by_outcome(cluster.results("speed"), Outcome.PASSED).keys() == {*NODES}


def test_a_site_says_what_slow_is() -> None:
    cluster = Cluster(thresholds=Thresholds(slow_node_ratio=2.0))
    _slow(cluster)
    assert by_outcome(cluster.results("speed"), Outcome.PASSED).keys() == {*NODES}


def test_divided_gpus() -> None:
    layout = {"mig_layout": [{"devices": ["1g.5gb"] * 7}]}
    assert has_mig(site(layout).nodes[0])
    cluster = Cluster(variables=layout)
    cluster.says("nodes", "gpu:a100:2(S:0-1)", "gpu:1g.5gb:14(S:0-1)")
    assert by_outcome(cluster.results("nodes"), Outcome.PASSED) == dict.fromkeys(
        NODES, "4 CPUs, 8000 MiB, 14 x 1g.5gb"
    )
    assert cluster.plan is not None
    cluster.plan |= {"gpus": {}, "divided": [*NODES]}
    assert by_outcome(cluster.results("gpu-binding"), Outcome.NOT_MEASURED).keys() == {*NODES}
