import json
from pathlib import Path
from typing import Any

import pytest

from deploy.site.inventory import Site
from deploy.validate.questions import (
    write_host_questions,
    write_job_questions,
    write_questions,
    write_repair_question,
)
from deploy.validate.thresholds import Thresholds
from tests.unit.validate.clusters import ADDRESSES, GROUPS, HARDWARE, NODES, USER, site

MASTER, LOGIN, NODE, CLUSTER = "slurm-master", "slurm-login", "slurm-node", "slurm-cluster"


def asked(
    tmp_path: Path,
    made: Site,
    kinds: tuple[str, ...] = ("probes",),
    **hardware: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """The inventory source's groups: hosts with variables."""
    path = tmp_path / "questions.json"
    contract = {node.name: {**HARDWARE, **hardware} for node in made.nodes}
    questions = write_questions(path, made, contract, kinds)
    source = json.loads(path.read_text())["all"]
    found: dict[str, Any] = {name: group["hosts"] for name, group in source["children"].items()}
    return {**found, "vars": source["vars"], "questions": questions}


def large(nodes: int) -> Site:
    names = tuple(f"n{number:05}" for number in range(nodes))
    return site(
        groups={MASTER: ("ctl1",), LOGIN: ("login1",), NODE: names, CLUSTER: ("ctl1", "login1", *names)}
    )


def test_what_each_host_is_asked(tmp_path: Path) -> None:
    found = asked(tmp_path, site())
    hosts = found["phase_validation"]
    assert {name for name, host in hosts.items() if host["validation_asks_slurm"]} == {"ctl1"}
    assert {name for name, host in hosts.items() if "validation_contract" in host} == {*NODES}
    assert hosts["node1"]["validation_look"]["names"] == ["ctl1", "login1", "node2", "node1"]
    assert "slurmd" in hosts["node1"]["validation_services"]
    assert found["vars"]["validation_makers"] == ["ctl1", "login1", "node1", "node2"]
    assert [*found["phase_validation_afterwards"]] == [*NODES]


def test_some_hosts_alone_are_asked_nothing_of_jobs(tmp_path: Path) -> None:
    path, made = tmp_path / "questions.json", site()
    questions = write_host_questions(path, made, {}, ["ctl1", "node2"])
    source = json.loads(path.read_text())["all"]
    groups = {name: [*group["hosts"]] for name, group in source["children"].items()}
    assert groups.pop("phase_validation") == ["ctl1", "node2"]
    assert {*map(tuple, groups.values())} == {()}
    assert source["vars"]["validation_makers"] == ["ctl1", "node2"]
    assert questions.plan is None


def test_the_monitoring_alone_is_asked_who_is_to_be_repaired(tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    assert write_repair_question(path, site(), {}) == "ctl1"
    source = json.loads(path.read_text())["all"]
    groups = {name: [*group["hosts"]] for name, group in source["children"].items()}
    assert groups.pop("phase_validation_monitoring") == ["ctl1"]
    assert {*map(tuple, groups.values())} == {()}
    assert source["vars"]["validation_monitoring_function"] == "unfit"


def test_what_users_meet_is_asked_of_every_host(tmp_path: Path) -> None:
    people = {
        "users_accounts": [{"name": "ann", "uid": 2001}, {"name": "eve", "uid": 2002, "state": "absent"}],
        "users_groups": [{"name": "lab", "gid": 3000}],
    }
    hosts = asked(tmp_path, site(people))["phase_validation"]
    told = hosts["node1"]["validation_surroundings"]
    assert told["user"] == USER
    assert told["users"] == ["ann", USER, "slurm"]
    assert told["groups"] == ["ann", USER, "lab"]
    assert told["addresses"] == ADDRESSES
    assert [name for name, *_ in hosts["ctl1"]["validation_packets"]] == [*NODES]
    assert [name for name, *_ in hosts["node1"]["validation_packets"]] == ["ctl1", "node2"]


def test_what_the_kernel_does_is_asked_where_it_can_be_seen(tmp_path: Path) -> None:
    limits = [{"path": "/home", "each_user": {"space": "1G"}}, {"path": "/empty"}]
    made = site({"quotas_filesystems": limits}, {**GROUPS, "slurm-nfs": ("ctl1",)})
    hosts = asked(tmp_path, made)["phase_validation"]
    found = {name: host["validation_system"] for name, host in hosts.items()}
    assert found["ctl1"] == {"user": None, "quotas": ["/home"], "serves_quotas": True, "exports": True}
    assert found["node1"] == {"user": USER, "quotas": ["/home"], "serves_quotas": False, "exports": False}


@pytest.mark.parametrize(
    ("host", "peers"),
    [
        ("ctl1", ["ctl1:6817", "node1:6818", "node2:6818"]),
        ("node1", ["ctl1:6817", "node2:6818"]),
        ("node2", ["ctl1:6817", "node1:6818"]),
    ],
)
def test_whom_a_host_must_reach(tmp_path: Path, host: str, peers: list[str]) -> None:
    look = asked(tmp_path, site())["phase_validation"][host]["validation_look"]
    assert [f"{name}:{port}" for name, _, port in look["peers"]] == peers


def test_daemons_are_tried_where_the_site_has_them_listen(tmp_path: Path) -> None:
    moved = site({"slurmctld_parameters": {"SlurmctldPort": "7000-7003", "SlurmdPort": 7010}})
    look = asked(tmp_path, moved)["phase_validation"]["node1"]["validation_look"]
    assert [f"{name}:{port}" for name, _, port in look["peers"]] == ["ctl1:7000", "node2:7010"]


def test_hosts_outside_slurm_reach_nobody(tmp_path: Path) -> None:
    groups = {MASTER: ("ctl1",), NODE: NODES, "slurm-nfs": ("nfs1",), CLUSTER: ("ctl1", *NODES)}
    found = asked(tmp_path, site(groups=groups))
    assert found["phase_validation"]["nfs1"]["validation_look"]["peers"] == []
    assert found["phase_validation"]["nfs1"]["validation_look"]["auth_type"] == ""
    # The controllers are the login nodes of a site without any.
    assert [*found["phase_validation_jobs"]] == ["ctl1"]


def test_a_controller_that_is_a_node(tmp_path: Path) -> None:
    found = asked(tmp_path, site(groups={MASTER: ("node1",), NODE: NODES, CLUSTER: NODES}))
    peers = {name: host["validation_look"]["peers"] for name, host in found["phase_validation"].items()}
    assert peers["node1"] == [["node1", "10.0.0.11", 6817], ["node2", "10.0.0.12", 6818]]
    assert peers["node2"] == [["node1", "10.0.0.11", 6817], ["node1", "10.0.0.11", 6818]]


def test_what_jobs_are_planned(tmp_path: Path) -> None:
    groups = {MASTER: ("ctl1",), LOGIN: ("node1",), NODE: NODES, "slurm-container": ("node2", "ctl1")}
    made = site({"openmpi_packages": ["openmpi-bin"]}, groups={**groups, CLUSTER: ("ctl1", *NODES)})
    found = asked(tmp_path, made, kinds=("ssh", "probes"))
    (variables,) = found["phase_validation_jobs"].values()
    plan = variables["validation_plan"]
    assert plan == {
        "partition": USER,
        "marker": found["questions"].marker,
        "nonce": found["questions"].nonce,
        "kinds": ["probes", "ssh"],
        "limit_seconds": 120,
        "nodes": [*NODES],
        "gpus": dict.fromkeys(NODES, 2),
        "divided": [],
        # The other lets everybody in.
        "ssh_nodes": ["node2"],
        "container_nodes": ["node2"],
        "has_mpi": True,
    }
    assert found["vars"]["validation_leftovers"] == {"user": USER, "marker": plan["marker"]}
    assert variables["validation_user"] == USER
    assert variables["validation_seconds"] > plan["limit_seconds"]


def test_nodes_without_gpus_and_with_divided_ones(tmp_path: Path) -> None:
    none = asked(tmp_path, site(), gpus=[])["questions"].plan
    assert (none["gpus"], none["divided"]) == ({}, [])
    divided = asked(tmp_path, site({"mig_layout": [{"devices": ["1g.5gb"]}]}))["questions"].plan
    assert (divided["gpus"], divided["divided"]) == ({}, [*NODES])


def test_nodes_without_a_contract(tmp_path: Path) -> None:
    questions = write_questions(tmp_path / "q", site(), {}, ["probes"])
    assert questions.plan is not None
    assert questions.plan["nodes"] == [*NODES]
    assert "validation_contract" not in (tmp_path / "q").read_text()


@pytest.mark.parametrize(("variables", "kinds"), [({}, ()), ({"users_validation": {}}, ("probes",))])
def test_no_jobs(tmp_path: Path, variables: dict[str, Any], kinds: tuple[str, ...]) -> None:
    found = asked(tmp_path, site(variables), kinds=kinds)
    assert found["questions"].plan is None
    assert found["phase_validation_jobs"] == found["phase_validation_afterwards"] == {}


def test_a_large_site_is_asked_a_bounded_number_of_things_per_host(tmp_path: Path) -> None:
    found = asked(tmp_path, large(300))
    looks = {name: host["validation_look"] for name, host in found["phase_validation"].items()}
    assert {len(look["names"]) for look in looks.values()} <= {100, 101, 102}
    assert {len(look["peers"]) for look in looks.values()} == {17}
    # Everybody is asked for, and tried, by somebody.
    assert {name for look in looks.values() for name in look["names"]} == looks.keys()
    assert {peer[0] for look in looks.values() for peer in look["peers"]} == looks.keys() - {"login1"}
    assert looks["n00299"]["peers"][1][0] == "n00000"
    assert len(found["vars"]["validation_makers"]) == 100
    assert found["vars"]["validation_makers"][0] == "ctl1"


def test_two_validations_have_names_of_their_own(tmp_path: Path) -> None:
    one, other = (asked(tmp_path, site())["questions"] for _ in range(2))
    assert one.marker != other.marker
    assert one.nonce != other.nonce


def test_nodes_that_everybody_may_enter_are_not_tried(tmp_path: Path) -> None:
    found = asked(tmp_path, site({"job_ssh_admits": "everyone"}))
    assert found["questions"].plan["ssh_nodes"] == []
    assert not [name for name, host in found["phase_validation"].items() if "validation_admins" in host]


def test_whom_pam_is_asked_about(tmp_path: Path) -> None:
    own = {"ansible_user": "ops", "job_ssh_admin_users": ["eve"], "job_ssh_admin_groups": ["wheel"]}
    hosts = asked(tmp_path, site(own))["phase_validation"]
    asked_about = {
        name: host["validation_admins"] for name, host in hosts.items() if "validation_admins" in host
    }
    admins = {"connecting": "ops", "users": ["eve"], "groups": ["wheel"]}
    assert asked_about == {"node1": admins, "node2": admins}
    own = asked(tmp_path, site())["phase_validation"]["node1"]["validation_admins"]
    assert own == {"connecting": "", "users": [], "groups": ["sudo"]}


def test_jobs_on_some_nodes_alone_are_in_a_reservation(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    questions = write_job_questions(
        path, site(), {}, ["probes"], ["node2"], reservation="deploy_1", thresholds=Thresholds()
    )
    groups = json.loads(path.read_text())["all"]["children"]
    assert questions.plan is not None
    assert (questions.plan["nodes"], questions.plan["reservation"]) == (["node2"], "deploy_1")
    assert [*groups["phase_validation_afterwards"]["hosts"]] == ["node2"]
    assert {*groups["phase_validation"]["hosts"]} == {"ctl1", "node2"}
    assert groups["phase_validation_monitoring"]["hosts"] == {}


def test_the_portal_is_asked_where_there_is_one_and_somebody_wants_it(tmp_path: Path) -> None:
    with_portal = site(groups={**GROUPS, "slurm-portal": ("ctl1",)})
    told = asked(tmp_path, with_portal, ("portal",))
    assert told["phase_validation_portal"] == {"ctl1": {"validation_portal": {"user": USER, "seconds": 240}}}
    assert told["phase_validation_jobs"] == {}
    assert asked(tmp_path, with_portal)["phase_validation_portal"] == {}
    assert asked(tmp_path, site(), ("portal",))["phase_validation_portal"] == {}
