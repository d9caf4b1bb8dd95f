import pytest

from deploy.validate.result import Outcome
from deploy.validate.thresholds import Thresholds
from tests.unit.validate.clusters import NODES, Change, Cluster, by_outcome, expect_fault


def _other_uid(cluster: Cluster) -> None:
    cluster.surroundings["node2"]["users"]["ann"]["uid"] = 3001


def _undeclared_gid(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["users"]["ann"]["gid"] = 7


def _declared_everywhere_wrong(cluster: Cluster) -> None:
    cluster.variables["users_accounts"] = [{"name": "ann", "uid": 2001}, {"name": "gone", "state": "absent"}]
    for answer in cluster.surroundings.values():
        answer["users"]["ann"]["uid"] = 3001
    cluster.surroundings["node1"]["users"]["ann"] |= {"uid": 2001}


def _unknown_user(cluster: Cluster) -> None:
    cluster.variables["users_accounts"] = [{"name": "ann", "uid": 2001}]
    cluster.surroundings["node1"]["users"]["ann"] = None


def _unknown_elsewhere(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["users"]["local"] = None
    cluster.surroundings["node2"]["groups"] = {"local": 3000}


def _no_shell(cluster: Cluster) -> None:
    cluster.variables["users_accounts"] = [{"name": "ann", "uid": 2001}]
    cluster.surroundings["node1"]["users"]["ann"] |= {"shell": "/bin/zsh", "has_shell": False}


def _other_group(cluster: Cluster) -> None:
    cluster.surroundings["node2"]["groups"]["ann"] = 3001


def _own_group_of_another_number(cluster: Cluster) -> None:
    cluster.variables["users_accounts"] = [
        {"name": "ann", "uid": 2001},
        {"name": "bo", "uid": 2, "group": "ann"},
    ]
    for name in ("ctl1", "login1", "node1"):
        cluster.surroundings[name]["groups"]["ann"] = 3001


def _half_and_half(cluster: Cluster) -> None:
    cluster.surroundings = {name: cluster.surroundings[name] for name in ("node2", "ctl1")}
    cluster.surroundings["node2"]["groups"] = {"local": 4001}
    cluster.surroundings["ctl1"]["groups"] = {"local": 4000}


def _shell_ends(cluster: Cluster) -> None:
    why = "/bin/bash -l ends with exit code 3 before its command"
    cluster.surroundings["node2"]["login_shell"] = {"why": why, "umask": ""}


def _other_umask(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["login_shell"]["umask"] = "0000"


def _closed(cluster: Cluster) -> None:
    cluster.surroundings["login1"]["closed"] = "/etc/nologin"


def _not_sticky(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["directories"]["/tmp"] |= {"mode": 0o777, "uid": 5}


def _no_memory_files(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["directories"]["/dev/shm"]["mounted"] = ""
    cluster.surroundings["node2"]["directories"]["/dev/shm"] = None
    cluster.surroundings["ctl1"]["directories"]["/var/tmp"]["is_read_only"] = True


def _renamed(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["name"] = "elsewhere.example"
    cluster.surroundings["node2"]["name"] = "node2.example"
    cluster.surroundings["login1"]["name"] = "any"


def _swapped(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["addresses_of"] = ["node2"]
    cluster.surroundings["node2"]["addresses_of"] = ["node1"]


def _lossy(cluster: Cluster) -> None:
    for host, peer in (("ctl1", "node2"), ("login1", "node2"), ("node2", "node1")):
        cluster.packets[host]["peers"][peer] |= {"sent": 150, "lost": 45}
    cluster.packets["node2"]["sent_again"] = 21.04


def _far(cluster: Cluster) -> None:
    for host in ("ctl1", "node2"):
        cluster.packets[host]["peers"]["node1"]["seconds"] = 0.25


def _narrow(cluster: Cluster) -> None:
    for host in ("ctl1", "login1", "node2"):
        cluster.packets[host]["peers"]["node1"]["blocked_bytes"] = 9000


def _other_zone(cluster: Cluster) -> None:
    cluster.surroundings["node1"]["zone"] = "-0800"


@pytest.mark.parametrize(
    ("check", "change", "messages", "hint"),
    [
        ("accounts", _other_uid, {"node2": "ann has the uid 3001 instead of 2001"}, "--limit node2"),
        ("accounts", _undeclared_gid, {"node1": "ann has the gid 7 instead of 2001"}, "getent"),
        (
            "accounts",
            _declared_everywhere_wrong,
            dict.fromkeys(("ctl1", "login1", "node2"), "ann has the uid 3001 instead of 2001"),
            "deploy cluster",
        ),
        ("accounts", _unknown_user, {"node1": "ann is not known"}, "deploy cluster"),
        ("accounts", _unknown_elsewhere, {}, ""),
        ("accounts", _no_shell, {"node1": "ann's login shell /bin/zsh is not there"}, ""),
        ("accounts", _other_group, {"node2": "the group ann has the gid 3001 instead of 2001"}, ""),
        (
            "accounts",
            _own_group_of_another_number,
            dict.fromkeys(
                ("ctl1", "login1", "node1"), "bo is not known; the group ann has the gid 3001 instead of 2001"
            )
            | {"node2": "bo is not known"},
            "",
        ),
        ("accounts", _half_and_half, {"node2": "the group local has the gid 4001 instead of 4000"}, ""),
        (
            "login-shell",
            _shell_ends,
            {"node2": "/bin/bash -l ends with exit code 3 before its command"},
            "profile.d",
        ),
        ("login-shell", _other_umask, {"node1": "the umask is 0000, on most hosts 0022"}, "umask"),
        ("login-shell", _closed, {"login1": "/etc/nologin is there: no user may log in"}, "rm /etc/nologin"),
        (
            "shared-directories",
            _not_sticky,
            {"node1": "/tmp has the mode 0777 instead of 1777; /tmp belongs to the uid 5 instead of root"},
            "chmod 1777",
        ),
        (
            "shared-directories",
            _no_memory_files,
            {
                "node1": "/dev/shm is no file system in memory",
                "node2": "/dev/shm is no directory",
                "ctl1": "/var/tmp is mounted read-only",
            },
            "findmnt",
        ),
        ("identity", _renamed, {"node1": "it calls itself elsewhere instead of node1"}, "hostnamectl"),
        (
            "identity",
            _swapped,
            {"node1": "it has node2's address 10.0.0.12", "node2": "it has node1's address 10.0.0.11"},
            "ip address",
        ),
        (
            "packets",
            _lossy,
            {
                "node2": "30 % of 150 packets are lost from ctl1 to node2; 30 % of 150 packets are lost from "
                "login1 to node2; 30 % of 150 packets are lost from node2 to node1 "
                "(TCP has sent 21.0 % again since it started)"
            },
            "(on node2",
        ),
        (
            "packets",
            _far,
            {
                "node1": "no packet takes less than 250 ms there and back from ctl1 to node1; "
                "no packet takes less than 250 ms there and back from node2 to node1"
            },
            "tracepath",
        ),
        (
            "packets",
            _narrow,
            {
                "node1": "; ".join(
                    f"packets of 9000 bytes are lost, small ones arrive: the MTU differs from {host} to node1"
                    for host in ("ctl1", "login1", "node2")
                )
            },
            "ip -statistics link",
        ),
        (
            "clock",
            _other_zone,
            {"node1": "it shows the time of another zone: UTC-0800, on most hosts UTC+0000"},
            "timedatectl",
        ),
    ],
)
def test_fault(check: str, change: Change, messages: dict[str, str], hint: str) -> None:
    expect_fault(check, change, messages, hint)


def test_one_packet_is_no_finding_and_limits_are_the_sites() -> None:
    cluster = Cluster()
    cluster.packets["ctl1"]["peers"]["node1"] |= {"sent": 150, "lost": 7}
    assert by_outcome(cluster.results("packets"), Outcome.FAILED) == {}
    cluster.thresholds = Thresholds(lost_percent=1)
    assert [*by_outcome(cluster.results("packets"), Outcome.FAILED)] == ["node1"]


def test_a_firewall_that_drops_them_proves_nothing() -> None:
    cluster = Cluster()
    for answer in cluster.packets.values():
        for told in answer["peers"].values():
            told |= {"lost": 50, "seconds": None}
    cluster.packets["ctl1"] = {"why": "Operation not permitted", "sent_again": None, "peers": {}}
    assert by_outcome(cluster.results("packets"), Outcome.NOT_MEASURED) == {
        "ctl1": "Operation not permitted",
        **dict.fromkeys(("login1", *NODES), "no peer answers to ICMP echo requests"),
    }


def test_a_host_without_the_user_tries_no_shell() -> None:
    cluster = Cluster()
    cluster.surroundings["ctl1"]["login_shell"] = None
    assert [*by_outcome(cluster.results("login-shell"), Outcome.NOT_MEASURED)] == ["ctl1"]
