import pytest

from deploy.validate.result import Outcome
from tests.unit.judge.statuses import answered, slurm_node
from tests.unit.validate.clusters import (
    ADDRESSES,
    GROUPS,
    NODES,
    USER,
    Change,
    Cluster,
    by_outcome,
    expect_fault,
)


def _says(what: str, old: str, new: str) -> Change:
    return lambda cluster: cluster.says(what, old, new)


def _is_silent(what: str) -> Change:
    return lambda cluster: cluster.is_silent(what, "Unable to contact slurm controller")


def _looks(host: str, key: str, value: object) -> Change:
    return lambda cluster: cluster.looks[host]["configuration"].update({key: value})


def _state(state: str, reason: str = "") -> Change:
    def change(cluster: Cluster) -> None:
        nodes = {"node1": slurm_node(), "node2": slurm_node(state, reason, by="root", ago=60.0)}
        cluster.states["ctl1"] = answered("ctl1", slurm={"nodes": nodes})

    return change


def _partition(**promised: object) -> Change:
    def change(cluster: Cluster) -> None:
        batch = {"name": "batch", "default": True, "max_time": "7-00:00:00", "default_time": 60, **promised}
        cluster.variables["slurmctld_partitions"] = [batch]

    return change


def _accounts(*accounts: dict[str, object]) -> Change:
    def change(cluster: Cluster) -> None:
        cluster.variables["slurm_accounts_accounts"] = [*accounts]

    return change


PLUGIN = "/usr/lib/slurm/spank_pyxis.so"


def _plugins(cluster: Cluster) -> None:
    for look in cluster.looks.values():
        look["configuration"]["plugins"] = [{"path": PLUGIN, "exists": True}]


def _no_plugin(cluster: Cluster) -> None:
    _plugins(cluster)
    cluster.looks["node1"]["configuration"]["plugins"] = [{"path": PLUGIN, "exists": False}]


def _other_plugins(cluster: Cluster) -> None:
    _plugins(cluster)
    cluster.looks["node1"]["configuration"]["plugins"] = []


AGAIN = "deploy cluster inventory.ini"
WRONG: dict[str, tuple[str, Change, dict[str, str], str]] = {
    "the controller is down": (
        "controllers",
        _says("ping", "is UP", "is DOWN"),
        {"ctl1": "slurmctld is down"},
        "journalctl -u slurmctld",
    ),
    "another controller": (
        "controllers",
        _says("ping", "ctl1", "head"),
        {"ctl1": "Slurm does not know this controller"},
        "systemctl status slurmctld",
    ),
    "ping says something else": (
        "controllers",
        _says("ping", "Slurmctld(primary) at ctl1 is UP", "hm"),
        {"ctl1": "scontrol ping: it names no controller"},
        "systemctl status slurmctld",
    ),
    "ping fails": (
        "controllers",
        _is_silent("ping"),
        {"ctl1": "scontrol ping: Unable to contact slurm controller"},
        "systemctl status slurmctld",
    ),
    "no database": (
        "accounting-daemon",
        _is_silent("associations"),
        {"ctl1": "sacctmgr: Unable to contact slurm controller"},
        "systemctl status slurmdbd mariadb",
    ),
    "fewer CPUs": (
        "nodes",
        _says("nodes", "node2 Arch=x86_64 CPUTot=4", "node2 Arch=x86_64 CPUTot=2"),
        {"node2": "Slurm has 2 CPUs, the contract 4"},
        AGAIN,
    ),
    "no CPUs told": (
        "nodes",
        _says("nodes", "node2 Arch=x86_64 CPUTot=4", "node2"),
        {"node2": "Slurm has None CPUs, the contract 4"},
        AGAIN,
    ),
    "GPUs without a type": (
        "nodes",
        _says("nodes", "gpu:a100:2(S:0-1)", "gpu:2"),
        dict.fromkeys(NODES, "Slurm has 2 x gpu, the contract 2 x a100"),
        AGAIN,
    ),
    "no GPUs": (
        "nodes",
        _says("nodes", "gpu:a100:2(S:0-1)", "(null)"),
        dict.fromkeys(NODES, "Slurm has no GPUs, the contract 2 x a100"),
        AGAIN,
    ),
    "a stranger": (
        "nodes",
        _says("nodes", "NodeName=node2", "NodeName=node9"),
        {"node2": "Slurm does not know it", "node9": "Slurm has this node, the inventory has not"},
        AGAIN,
    ),
    "drained": (
        "node-state",
        _state("IDLE+DRAIN", "bad disk"),
        {"node2": "drained: bad disk (root, 60 s ago)"},
        "scontrol update nodename=node2 state=resume",
    ),
    "down": (
        "node-state",
        _state("DOWN", "Not responding"),
        {"node2": "Slurm says down: Not responding (root, 60 s ago)"},
        "scontrol update nodename=node2 state=resume",
    ),
    "no partition": (
        "partitions",
        _says("partitions", "PartitionName=batch", "PartitionName=other"),
        {"batch": "there is no partition batch"},
        AGAIN,
    ),
    "other nodes": (
        "partitions",
        _says("partitions", "MaxTime=7-00:00:00 Nodes=node[1-2]", "MaxTime=7-00:00:00 Nodes=(null)"),
        {"batch": "it has the nodes (null), not node[1-2]"},
        AGAIN,
    ),
    "not the default": (
        "partitions",
        _says("partitions", "Default=YES", "Default=NO"),
        {"batch": "it is not the default"},
        AGAIN,
    ),
    "the default": (
        "partitions",
        _partition(default=False),
        {"batch": "it is the default"},
        AGAIN,
    ),
    "longer": (
        "partitions",
        _says("partitions", "MaxTime=7-00:00:00", "MaxTime=UNLIMITED"),
        {"batch": "MaxTime is UNLIMITED, not 7-00:00:00"},
        AGAIN,
    ),
    "another default time": (
        "partitions",
        _says("partitions", "DefaultTime=01:00:00", "DefaultTime=00:30:00"),
        {"batch": "DefaultTime is 00:30:00, not 01:00:00"},
        AGAIN,
    ),
    "open to all": (
        "partitions",
        _says("partitions", f"AllowAccounts={USER}", "AllowAccounts=ALL"),
        {USER: f"AllowAccounts is ALL, not {USER}"},
        AGAIN,
    ),
    "closed": (
        "partitions",
        _says("partitions", "AllowGroups=ALL AllowAccounts=ALL", "AllowGroups=staff AllowAccounts=ALL"),
        {"batch": "AllowGroups is staff, not ALL"},
        AGAIN,
    ),
    "not up": (
        "partitions",
        _says("partitions", "MaxTime=7-00:00:00 Nodes=node[1-2] State=UP", "MaxTime=7-0 State=DRAIN"),
        {"batch": "it has the nodes None, not node[1-2]; it is DRAIN, not UP"},
        AGAIN,
    ),
    "another QOS": ("partitions", _partition(qos="fast"), {"batch": "its QOS is N/A, not fast"}, AGAIN),
    "more nodes": (
        "partitions",
        _partition(max_nodes=1),
        {"batch": "MaxNodes is None, not 1"},
        AGAIN,
    ),
    "no QOS": ("qos", _says("qos", f"{USER}\n", ""), {USER: f"there is no QOS {USER}"}, f"{AGAIN} --full"),
    "no association": (
        "associations",
        _says("associations", "cluster|research|ann", "cluster|research|bob"),
        {"ann": "ann may not charge research"},
        f"{AGAIN} --full",
    ),
    "no budget": (
        "qos",
        _accounts({"name": "ice", "budget": {"hours": "cpu=5"}}),
        {"ice": "there is no QOS ice"},
        f"{AGAIN} --full",
    ),
    "no member": (
        "associations",
        _accounts({"name": "research", "members": ["ann", "bob"]}),
        {"bob": "bob may not charge research"},
        f"{AGAIN} --full",
    ),
    "of another cluster": (
        "associations",
        _says("associations", "cluster|research|ann", "other|research|ann"),
        {"ann": "ann may not charge research"},
        f"{AGAIN} --full",
    ),
    "no slurm.conf": (
        "configuration",
        _looks("node1", "directory", None),
        {"node1": "there is no slurm.conf"},
        "systemctl restart slurmd   (on node1)",
    ),
    "another slurm.conf": (
        "configuration",
        _looks("node1", "hashes", {"slurm.conf": "x", "cgroup.conf": "b", "gres.conf": "y"}),
        {"node1": "slurm.conf, gres.conf in /etc/slurm is not the controller's"},
        "systemctl restart slurmd   (on node1)",
    ),
    "no plugin": (
        "plugins",
        _no_plugin,
        {"node1": f"plugstack.conf loads {PLUGIN}, which is not there"},
        "deploy cluster inventory.ini --limit node1 --full",
    ),
    "another plugstack.conf": (
        "plugins",
        _other_plugins,
        {"node1": f"plugstack.conf does not load {PLUGIN}"},
        "deploy cluster inventory.ini --limit node1 --full",
    ),
}


@pytest.mark.parametrize(("check", "change", "messages", "hint"), WRONG.values(), ids=WRONG)
def test_a_fault_is_found_where_it_is(
    check: str, change: Change, messages: dict[str, str], hint: str
) -> None:
    expect_fault(check, change, messages, hint)


@pytest.mark.parametrize(
    ("check", "what"),
    [
        ("nodes", "nodes"),
        ("node-state", "nodes"),
        ("partitions", "partitions"),
        ("qos", "qos"),
        ("associations", "associations"),
    ],
)
def test_a_command_that_fails_is_no_proof_of_anything(check: str, what: str) -> None:
    cluster = Cluster()
    cluster.is_silent(what, "connect failure")
    cluster.states["ctl1"] = answered("ctl1", slurm={"error": "connect failure"})
    (result,) = cluster.results(check)
    assert result.outcome is Outcome.NOT_MEASURED
    assert result.message.endswith(": connect failure")


@pytest.mark.parametrize(
    ("what", "promised"),
    [
        ("MaxTime=7-00:00:00", {"max_time": "7-0"}),
        ("MaxTime=7-00:00:00", {"max_time": 10080}),
        ("MaxTime=UNLIMITED", {"max_time": "INFINITE"}),
        ("MaxTime=UNLIMITED", {"max_time": -1}),
        ("MaxTime=7-00:00:00", {"allow_accounts": []}),
        ("MaxTime=7-00:00:00 MaxNodes=UNLIMITED", {"max_nodes": "unlimited"}),
    ],
)
def test_the_same_in_other_words(what: str, promised: dict[str, object]) -> None:
    cluster = Cluster()
    cluster.says("partitions", "MaxTime=7-00:00:00", what)
    _partition(**promised)(cluster)
    assert by_outcome(cluster.results("partitions"), Outcome.FAILED) == {}


def _watts(node1: str, node2: str = "60") -> Change:
    def change(cluster: Cluster) -> None:
        cluster.variables["slurmctld_energy_sources"] = ["rapl"]
        for name, watts in (("node1", node1), ("node2", node2)):
            line = f"NodeName={name} Arch=x86_64"
            cluster.says("nodes", line, f"{line} CurrentWatts={watts} AveWatts=0")

    return change


@pytest.mark.parametrize(
    ("watts", "outcome", "said"),
    [
        ("143", Outcome.PASSED, "143 W by rapl"),
        ("n/a", Outcome.FAILED, "nothing is measured by rapl: ConsumedEnergy stays empty"),
        ("0", Outcome.NOT_MEASURED, "Slurm has no measurement of it yet"),
    ],
)
def test_the_power_of_nodes_is_measured_where_the_site_says_so(
    watts: str, outcome: Outcome, said: str
) -> None:
    (alone,) = Cluster().results("energy")
    assert alone.outcome is Outcome.NOT_APPLICABLE
    cluster = Cluster()
    _watts(watts)(cluster)
    assert by_outcome(cluster.results("energy"), outcome)["node1"] == said
    assert by_outcome(cluster.results("energy"), Outcome.PASSED)["node2"] == "60 W by rapl"


def test_the_second_controller_tells_when_the_first_is_down() -> None:
    cluster = Cluster()
    cluster.groups |= {"slurm-master": ("ctl1", "login1")}
    cluster.looks["login1"]["slurm"] = cluster.looks["ctl1"]["slurm"]
    cluster.says("ping", "ctl1 is UP", "ctl1 is DOWN\nSlurmctld(backup) at login1 is UP")
    del cluster.looks["ctl1"]
    assert by_outcome(cluster.results("controllers"), Outcome.FAILED) == {"ctl1": "slurmctld is down"}
    assert by_outcome(cluster.results("controllers"), Outcome.PASSED) == {"login1": "is up"}
    assert by_outcome(cluster.results("nodes"), Outcome.PASSED).keys() == {*NODES}
    assert by_outcome(cluster.results("configuration"), Outcome.FAILED) == {}


def test_each_of_several_controllers_has_to_reach_the_others() -> None:
    (alone,) = Cluster().results("standby")
    assert alone.outcome is Outcome.NOT_APPLICABLE
    cluster = Cluster()
    cluster.groups |= {"slurm-master": ("ctl1", "login1")}
    cluster.looks["login1"]["slurm"] = {**cluster.looks["ctl1"]["slurm"]}
    cluster.says("ping", "ctl1 is UP", "ctl1 is UP\nSlurmctld(backup) at login1 is UP")
    both = cluster.looks["ctl1"]["slurm"]["ping"]
    # It may see less than the first one does.
    cluster.looks["login1"]["slurm"]["ping"] = {
        **both,
        "out": both["out"].replace("ctl1 is UP", "ctl1 is DOWN"),
    }
    assert by_outcome(cluster.results("standby"), Outcome.PASSED) == {"ctl1": "reaches the others"}
    assert by_outcome(cluster.results("standby"), Outcome.FAILED) == {"login1": "gets no answer of ctl1"}
    del cluster.looks["login1"]
    assert by_outcome(cluster.results("standby"), Outcome.NOT_MEASURED) == {
        "login1": "scontrol ping: no answer"
    }


def test_a_controller_that_fails_is_not_asked_when_another_answers() -> None:
    cluster = Cluster()
    cluster.groups |= {"slurm-master": ("ctl1", "login1")}
    cluster.looks["login1"]["slurm"] = {**cluster.looks["ctl1"]["slurm"]}
    cluster.is_silent("nodes", "connect failure")
    assert by_outcome(cluster.results("nodes"), Outcome.PASSED).keys() == {*NODES}


def test_what_the_inventory_does_not_declare_is_not_applicable() -> None:
    without = Cluster(variables={"users_validation": {}, "slurm_accounts_users": []})
    for check in ("associations", "qos"):
        (result,) = without.results(check)
        assert result.outcome is Outcome.NOT_APPLICABLE


def test_names_in_slurm_are_in_lower_case() -> None:
    people = [{"name": "Ann", "accounts": ["Research"]}]
    cluster = Cluster(variables={"slurm_accounts_users": people, "slurm_accounts_qos": [{"name": "NORMAL"}]})
    assert by_outcome(cluster.results("associations"), Outcome.FAILED) == {}
    assert by_outcome(cluster.results("qos"), Outcome.FAILED) == {}


def test_plugins_of_a_healthy_site() -> None:
    cluster = Cluster()
    _plugins(cluster)
    assert by_outcome(cluster.results("plugins"), Outcome.PASSED) == dict.fromkeys(cluster.looks, "1 there")


def test_a_site_with_containers_needs_a_plugin() -> None:
    cluster = Cluster()
    cluster.groups["slurm-container"] = NODES
    assert by_outcome(cluster.results("plugins"), Outcome.FAILED) == dict.fromkeys(
        cluster.looks, "plugstack.conf loads nothing, although the site offers containers"
    )


def test_without_a_controller_there_is_nothing_to_compare_with() -> None:
    cluster = Cluster()
    del cluster.looks["ctl1"]
    (result,) = cluster.results("configuration")
    assert result.outcome is Outcome.NOT_MEASURED


@pytest.mark.parametrize(
    ("server", "outcome"),
    [
        ("ctl1", Outcome.PASSED),
        ("ctl9,ctl1:6817", Outcome.PASSED),
        ("ctl9", Outcome.FAILED),
        ("", Outcome.FAILED),
    ],
)
def test_commands_may_fetch_the_files_each_time(server: str, outcome: Outcome) -> None:
    cluster = Cluster()
    none: dict[str, object] = {"directory": None, "hashes": {}, "plugins": [], "server": server}
    cluster.looks["login1"]["configuration"] = none
    assert by_outcome(cluster.results("configuration"), outcome).keys() >= {"login1"}


def test_each_host_has_the_files_that_its_daemon_gets() -> None:
    cluster = Cluster()
    every = {name: name for name in (*("slurm.conf", "cgroup.conf", "gres.conf"), "topology.conf")}
    for look in cluster.looks.values():
        look["configuration"]["hashes"] = dict(every)
    node, login = (cluster.looks[name]["configuration"] for name in ("node1", "login1"))
    # Those of slurmd, and those of sackd.
    login["hashes"] = {name: name for name in ("slurm.conf", "topology.conf")}
    assert by_outcome(cluster.results("configuration"), Outcome.FAILED) == {}
    node["hashes"] = {"slurm.conf": "slurm.conf", "topology.conf": "old"}
    del login["hashes"]["topology.conf"]
    assert by_outcome(cluster.results("configuration"), Outcome.FAILED) == {
        "node1": "topology.conf in /etc/slurm is not the controller's; "
        "cgroup.conf, gres.conf in /etc/slurm is not there",
        "login1": "topology.conf in /etc/slurm is not there",
    }


def test_plugins_of_a_host_without_files_are_not_measured() -> None:
    cluster = Cluster()
    _plugins(cluster)
    cluster.looks["login1"]["configuration"] |= {"directory": None, "plugins": [], "server": "ctl1"}
    results = cluster.results("plugins")
    assert by_outcome(results, Outcome.NOT_MEASURED).keys() == {"login1"}
    assert by_outcome(results, Outcome.FAILED) == {}


def test_a_host_with_the_accounting_database_alone_needs_no_configuration_of_slurm() -> None:
    cluster = Cluster(groups={**GROUPS, "slurm-database": ("db1",), "slurm-cluster": (*ADDRESSES, "db1")})
    _plugins(cluster)
    none: dict[str, object] = {"directory": None, "hashes": {}, "plugins": [], "server": ""}
    cluster.looks["db1"] = {**cluster.looks["node1"], "configuration": none}
    for name in ("configuration", "plugins"):
        assert {result.where for result in cluster.results(name)} == {*ADDRESSES}, name
        assert by_outcome(cluster.results(name), Outcome.FAILED) == {}
