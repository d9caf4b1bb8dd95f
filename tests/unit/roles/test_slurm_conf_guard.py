import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/slurmctld/module_utils/slurm_conf.py")

CONF = """\
ClusterName=c
StateSaveLocation=/var/spool/slurmctld
NodeName=DEFAULT State=UNKNOWN
NodeName=node1 CPUs=2
NodeName=node2 CPUs=2
PartitionName=batch Nodes=node[1-2] MaxTime=1:00:00
"""


def parameters(after: str, before: str = CONF) -> list[str]:
    return [lost["parameter"] for lost in module.guarded(before, after)]


def test_what_keeps_jobs_is_not_guarded() -> None:
    assert parameters(CONF) == []
    assert parameters(CONF.replace("1:00:00", "2:00:00")) == []
    assert parameters(CONF + "NodeName=node3 CPUs=2\n") == []


@pytest.mark.parametrize(
    "line",
    ["SlurmdSpoolDir=/scratch/slurmd", "SlurmctldPort=7000", "SlurmdPort=7001", "AuthType=auth/slurm"],
)
def test_a_new_place_port_or_authentication_loses_jobs(line: str) -> None:
    name, value = line.split("=")
    (lost,) = module.guarded(CONF, CONF + line + "\n")
    assert (lost["parameter"], lost["after"], lost["pending"]) == (name, value, False)
    assert lost["before"]


def test_a_default_that_is_written_out_changes_nothing() -> None:
    assert parameters(CONF + "SlurmdSpoolDir=/var/spool/slurmd\nSlurmdPort=6818\n") == []


def test_another_state_directory_loses_the_queue() -> None:
    (lost,) = module.guarded(CONF, CONF.replace("/var/spool/slurmctld", "/srv/state"))
    assert lost["pending"]
    assert (lost["before"], lost["after"]) == ("/var/spool/slurmctld", "/srv/state")


def test_a_node_that_goes_takes_only_its_own_jobs() -> None:
    (lost,) = module.guarded(CONF, CONF.replace("NodeName=node2 CPUs=2\n", ""))
    assert lost["node"] == "node2"


def test_nothing_is_lost_where_nothing_ran() -> None:
    assert parameters(CONF, before="") == []


def test_only_jobs_that_would_be_lost_are_asked_for() -> None:
    (node,) = module.guarded(CONF, CONF.replace("NodeName=node2 CPUs=2\n", ""))
    (queue,) = module.guarded(CONF, CONF.replace("/var/spool/slurmctld", "/srv/state"))
    assert module.squeue_arguments(node)[2:] == ["--nodelist", "node2"]
    assert "PENDING" not in module.squeue_arguments(node)[1]
    assert module.squeue_arguments(queue)[1].startswith("PENDING,")
    assert len(module.squeue_arguments(queue)) == 2
