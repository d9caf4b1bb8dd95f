from typing import Any

import pytest
import yaml

from tests.unit.roles.loading import ROOT, load_module

module = load_module("roles/slurmctld/module_utils/slurm_conf.py")

NEEDS_CONSENT = {
    "ProctrackType",
    "TaskPlugin",
    "JobAcctGatherType",
    "PrologFlags",
    "AccountingStorageType",
    "GresTypes",
}
"""Of those that deploy writes itself: plugins that jobs do not all survive."""

CONF = """\
ClusterName=c
SelectType=select/cons_tres
StateSaveLocation=/var/spool/slurmctld
NodeName=DEFAULT State=UNKNOWN
NodeName=node1 CPUs=2
NodeName=node2 CPUs=2
PartitionName=batch Nodes=node[1-2] MaxTime=1:00:00
"""


def guarded(after: str, before: str = CONF) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = module.guarded({"slurm.conf": before}, {"slurm.conf": after})
    return changes


def parameters(after: str, before: str = CONF) -> list[str]:
    return [lost["parameter"] for lost in guarded(after, before)]


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
    (lost,) = guarded(CONF + line + "\n")
    assert (lost["parameter"], lost["after"], lost["pending"]) == (name, value, False)
    assert lost["before"]


@pytest.mark.parametrize(
    "name", ["acct_gather.conf", "plugstack.conf", "topology.conf", "job_submit.lua", "cli_filter.lua"]
)
def test_files_that_no_running_job_notices(name: str) -> None:
    before = {"slurm.conf": CONF}
    assert module.guarded(before, {**before, name: "x\n"}) == []
    assert module.guarded({**before, name: "x\n"}, {**before, name: "y\n"}) == []


def test_a_default_that_is_written_out_changes_nothing() -> None:
    assert parameters(CONF + "SlurmdSpoolDir=/var/spool/slurmd\nSlurmdPort=6818\n") == []


def test_another_state_directory_loses_the_queue() -> None:
    (lost,) = guarded(CONF.replace("/var/spool/slurmctld", "/srv/state"))
    assert lost["pending"]
    assert (lost["before"], lost["after"]) == ("/var/spool/slurmctld", "/srv/state")


def test_a_node_that_goes_takes_only_its_own_jobs() -> None:
    (lost,) = guarded(CONF.replace("NodeName=node2 CPUs=2\n", ""))
    assert (lost["before"], lost["nodes"]) == ("node2", ["node2"])


def test_a_node_that_goes_takes_those_that_wait_for_it_by_name() -> None:
    (lost,) = guarded(CONF.replace("NodeName=node2 CPUs=2\n", ""))
    assert lost["required"]
    assert module.ASK_WHAT_WAITS[-3:] == ("%i|%n", "--states", "PENDING")
    said = "7|\n8|node2\n9_[1-4]|node[1-3]\n10|node1,node3\nsqueue: something\n"
    assert module.who_waits_for(lost["nodes"], said) == ["8", "9_[1-4]"]


def test_nothing_is_lost_where_nothing_ran() -> None:
    assert parameters(CONF, before="") == []


def test_only_jobs_that_would_be_lost_are_asked_for() -> None:
    (node,) = guarded(CONF.replace("NodeName=node2 CPUs=2\n", ""))
    (queue,) = guarded(CONF.replace("/var/spool/slurmctld", "/srv/state"))
    assert module.squeue_arguments(node)[2:] == ["--nodelist", "node2"]
    assert "PENDING" not in module.squeue_arguments(node)[1]
    assert module.squeue_arguments(queue)[1].startswith("PENDING,")
    assert len(module.squeue_arguments(queue)) == 2


@pytest.mark.parametrize(
    "line",
    [
        "SelectType=select/linear",
        "SwitchType=switch/hpe_slingshot",
        "ProctrackType=proctrack/pgid",
        "AcctGatherProfileType=acct_gather_profile/hdf5",
        "ParameterOfALaterRelease=yes",
    ],
)
def test_plugins_and_what_nobody_knows_count_as_losing_all_jobs(line: str) -> None:
    (lost,) = guarded(CONF.replace("SelectType=select/cons_tres\n", "") + line + "\n", without_select(line))
    assert lost["parameter"] == line.partition("=")[0]
    assert lost["pending"]


def without_select(line: str) -> str:
    """What was there: another plugin of the same kind, or nothing."""
    return CONF if line.startswith("SelectType") else CONF.replace("SelectType=select/cons_tres\n", "")


def test_slurm_does_not_care_for_the_case_of_a_parameter() -> None:
    assert parameters(CONF.replace("SelectType=", "selecttype=")) == []
    assert parameters(CONF + "slurmdtimeout=10\n") == []


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        ("CPUs=1", "CPUs"),
        ("CPUs=4", "CPUs"),
        ("CPUs=2 CoresPerSocket=2", "CoresPerSocket"),
        ("CPUs=2 Gres=gpu:a100:1", "Gres"),
        ("CPUs=2 CoreSpecCount=1", "CoreSpecCount"),
    ],
)
def test_other_cores_or_gpus_abort_the_jobs_of_their_nodes(words: str, parameter: str) -> None:
    (lost,) = guarded(CONF.replace("CPUs=2", words))
    assert (lost["parameter"], lost["nodes"], lost["pending"]) == (parameter, ["node1", "node2"], False)


def test_features_weights_and_memory_disturb_nobody() -> None:
    assert parameters(CONF.replace("CPUs=2", "CPUs=2 RealMemory=9 Features=x Weight=2")) == []


def test_a_partition_that_goes_takes_running_and_pending_jobs() -> None:
    (lost,) = guarded(CONF.replace("PartitionName=batch", "PartitionName=other"))
    assert (lost["parameter"], lost["before"], lost["pending"]) == ("PartitionName", "batch", True)
    assert module.squeue_arguments(lost)[2:] == ["--partition", "batch"]


def test_what_nobody_knows_of_a_partition_counts_as_losing_its_jobs() -> None:
    (lost,) = guarded(CONF.replace("MaxTime=1:00:00", "MaxTime=1:00:00 SelectTypeParameters=CR_Core"))
    assert (lost["parameter"], lost["partition"]) == ("SelectTypeParameters", "batch")


@pytest.mark.parametrize(
    ("file", "before", "after", "nodes"),
    [
        ("cgroup.conf", "CgroupPlugin=cgroup/v1\n", "CgroupPlugin=cgroup/v2\n", None),
        ("gres.conf", "AutoDetect=off\n", "AutoDetect=nvml\n", None),
        (
            "gres.conf",
            "NodeName=node[1-2] Name=gpu File=/dev/nvidia[0-1]\n",
            "NodeName=node1 Name=gpu File=/dev/nvidia[0-1]\nNodeName=node2 Name=gpu File=/dev/nvidia[2-3]\n",
            ["node2"],
        ),
        ("job_container.conf", "NodeName=node1 BasePath=/a\n", "NodeName=node1 BasePath=/b\n", ["node1"]),
    ],
)
def test_the_other_files_are_guarded_as_well(
    file: str, before: str, after: str, nodes: list[str] | None
) -> None:
    (lost,) = module.guarded({"slurm.conf": CONF, file: before}, {"slurm.conf": CONF, file: after})
    assert lost.get("nodes") == nodes
    constrain = {"slurm.conf": CONF, "cgroup.conf": "ConstrainCores=yes\n"}
    assert module.guarded({"slurm.conf": CONF}, constrain) == []


SCRATCH = "NodeName=node1 BasePath=/a\nNodeName=node2 BasePath=/a\n"


@pytest.mark.parametrize(
    ("after", "parameter", "nodes"),
    [
        (SCRATCH.replace("NodeName=node2 BasePath=/a\n", ""), "BasePath", ["node2"]),
        ("", "BasePath", ["node1", "node2"]),
        (SCRATCH + "EntireStepInNS=true\n", None, None),
        (SCRATCH + "InitScript=/x\n", "initscript", None),
    ],
)
def test_private_directories_that_go_are_guarded(
    after: str, parameter: str | None, nodes: list[str] | None
) -> None:
    file = "job_container.conf"
    found = module.guarded({"slurm.conf": CONF, file: SCRATCH}, {"slurm.conf": CONF, file: after})
    assert [lost["parameter"] for lost in found] == ([parameter] if parameter else [])
    assert [lost.get("nodes") for lost in found] == ([nodes] if parameter else [])


def test_a_node_that_goes_is_told_once() -> None:
    without = {
        "slurm.conf": CONF.replace("NodeName=node2 CPUs=2\n", ""),
        "job_container.conf": SCRATCH.replace("NodeName=node2 BasePath=/a\n", ""),
    }
    found = module.guarded({"slurm.conf": CONF, "job_container.conf": SCRATCH}, without)
    assert [lost["parameter"] for lost in found] == ["NodeName"]


def test_a_file_that_nobody_knows_counts_as_losing_all_jobs() -> None:
    before = {"slurm.conf": CONF, "plugstack.conf": "", "burst_buffer.conf": "Flags=a\n"}
    (lost,) = module.guarded(before, {**before, "plugstack.conf": "required x.so", "burst_buffer.conf": ""})
    assert (lost["parameter"], lost["pending"]) == ("burst_buffer.conf", True)


def test_preemption_that_ends_jobs_is_guarded() -> None:
    assert parameters(CONF + "PreemptMode=SUSPEND,GANG\n") == []
    assert parameters(CONF, CONF + "PreemptMode=CANCEL\n") == []
    (lost,) = guarded(CONF + "PreemptMode=requeue\n")
    assert (lost["parameter"], lost["pending"]) == ("PreemptMode", False)
    (lost,) = guarded(CONF.replace("MaxTime=1:00:00", "MaxTime=1:00:00 PreemptMode=CANCEL"))
    assert (lost["partition"], lost["pending"]) == ("batch", False)
    assert parameters(CONF.replace("MaxTime=1:00:00", "MaxTime=1:00:00 PreemptMode=OFF")) == []


def test_a_controller_at_another_address_loses_running_jobs() -> None:
    before = "SlurmctldHost=ctl1(10.0.0.1)\n" + CONF
    (lost,) = guarded(before.replace("10.0.0.1", "10.0.0.9"), before)
    assert (lost["parameter"], lost["before"], lost["after"]) == ("SlurmctldHost", "10.0.0.1", "10.0.0.9")
    assert not lost["pending"]
    assert parameters(before + "SlurmctldHost=ctl2(10.0.0.2)\n", before) == [], (
        "one more takes over, if at all"
    )


def test_every_default_of_the_role_has_an_entry() -> None:
    """A parameter that deploy itself writes is one of which it knows what a change does."""
    tables = module.KEEPS | {name.lower() for name in module.LOSES}
    variables = yaml.safe_load((ROOT / "roles/slurmctld/vars/main.yml").read_text())
    unknown = {name for name in variables["__slurmctld_parameters"] if name.lower() not in tables}
    assert unknown == NEEDS_CONSENT
