"""The checks on what real clusters said: two nodes with two simulated GPUs, Slurm 22.05 to 26.05."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.judge.site_status import site_status
from deploy.run.events import HostResult, Status
from deploy.site.inventory import Host, Site
from deploy.validate import slurm_text
from deploy.validate.answers import Answers
from deploy.validate.catalog import CHECKS, judged
from deploy.validate.context import Context
from deploy.validate.questions import Questions
from deploy.validate.result import Outcome
from tests.unit.judge.statuses import NOW
from tests.unit.validate.clusters import GROUPS

RECORDINGS = Path(__file__).parent / "recorded"
RELEASES = ("22.05", "24.11", "26.05")
DECLARED = {
    "slurmd_hardware": {"memory_mb": 1024, "gpus": [{"type": "a100", "count": 2}]},
    "slurm_accounts_users": [{"name": name, "accounts": ["research"]} for name in ("alice", "bob")],
}
MEASURED = {"nccl", "nccl-bandwidth", "nvbandwidth", "dcgm", "training", "burn-in"}
UNWATCHED = {"prometheus", "targets", "alerts", "alertmanager", "grafana"}
STORED = {"mounts", "file-servers", "quotas"}
ELSEWHERE = {"energy", "plugins", "containers", "mpi", "portal", "standby", *STORED, *UNWATCHED}
"""What the clusters did not have."""
USERS_MEET = {"accounts", "login-shell", "shared-directories", "identity", "packets"}
KERNELS = {"kernels", "control-groups"}
LATER = {"admin-logins", "portals", *KERNELS, *USERS_MEET, *MEASURED}
"""What was not asked yet when this was recorded, and what was not asked of them."""
Recorded = dict[str, Any]


def recorded(release: str) -> Recorded:
    content: Recorded = json.loads((RECORDINGS / f"{release}.json").read_text(encoding="utf-8"))
    return content


def context(content: Recorded) -> Context:
    hosts = {
        name: Host(
            name,
            {"ansible_host": address, **DECLARED},
            frozenset(group for group, members in GROUPS.items() if name in members),
        )
        for name, address in content["addresses"].items()
    }
    site = Site(Path("/site/inventory.ini"), hosts, {**GROUPS, "slurm-metric": ()})
    states = {
        host: HostResult(NOW, host, "Validation", "", "Ask", "", Status.OK, 1.0, answer=answer)
        for host, answer in content["states"].items()
    }
    keys = ("looks", "credentials", "jobs", "leftovers")
    answers = Answers(states, **{key: content[key] for key in keys})
    questions = Questions(content["marker"], content["nonce"], content["plan"])
    status = site_status(
        site, states, {}, {}, asked=list(hosts), limit=None, inventory="inventory.ini", at=NOW
    )
    return Context(site, content["contract"], questions, answers, status)


def failures(content: Recorded) -> dict[str, dict[str, str]]:
    return {
        check.check: {result.where: result.message for result in check.of(Outcome.FAILED)}
        for check in judged(context(content), CHECKS)
        if check.outcome is Outcome.FAILED
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_healthy_cluster_passes(release: str) -> None:
    found = {check.check: check.outcome for check in judged(context(recorded(release)), CHECKS)}
    assert failures(recorded(release)) == {}
    assert {name for name, outcome in found.items() if outcome is not Outcome.PASSED} == ELSEWHERE | LATER
    assert {found[name] for name in LATER} == {Outcome.NOT_MEASURED}
    assert {found[name] for name in ELSEWHERE} == {Outcome.NOT_APPLICABLE}


Change = Callable[[Recorded], object]


def _says(what: str, old: str, new: str) -> Change:
    def change(content: Recorded) -> None:
        answer = content["looks"]["ctl1"]["slurm"][what]
        assert old in answer["out"]
        answer["out"] = answer["out"].replace(old, new)

    return change


def _row(key: str, value: str) -> Change:
    def change(content: Recorded) -> None:
        job = content["jobs"]["probes"]["node2"]["answers"][0]["job"]
        next(row for row in content["jobs"]["accounting"] if row["JobID"] == job)[key] = value

    return change


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("change", "check", "where"),
    [
        (_says("ping", "is UP", "is DOWN"), "controllers", "ctl1"),
        (_says("nodes", "NodeName=node2", "NodeName=node3"), "nodes", "node3"),
        (_says("nodes", "Gres=gpu:a100:2", "Gres=gpu:a100:1"), "nodes", "node1"),
        (_says("nodes", "RealMemory=1024", "RealMemory=900"), "nodes", "node1"),
        (_says("partitions", "PartitionName=batch", "PartitionName=b"), "partitions", "batch"),
        (_says("partitions", "Nodes=node[1-2]", "Nodes=node1"), "partitions", "batch"),
        (_says("qos", "deploy-validate", "other"), "qos", "deploy-validate"),
        (_says("associations", "|research|alice|", "|research|eve|"), "associations", "alice"),
        (_row("State", "CANCELLED by 0"), "accounting", "node2"),
        (_row("AllocTRES", "cpu=0"), "cpu-binding", "node2"),
    ],
)
def test_a_word_of_slurm_makes_the_difference(release: str, change: Change, check: str, where: str) -> None:
    content = recorded(release)
    change(content)
    found = failures(content)
    assert check in found
    assert where in found[check]


@pytest.mark.parametrize("release", RELEASES)
def test_records_of_nodes(release: str) -> None:
    nodes = slurm_text.first_of(
        slurm_text.records(recorded(release)["looks"]["ctl1"]["slurm"]["nodes"]["out"]), "NodeName"
    )
    assert [*nodes] == ["node1", "node2"]
    assert nodes["node1"]["Version"].startswith(release)
    assert slurm_text.gpus(nodes["node1"]["Gres"]) == {"a100": 2}
