"""Slurm's configuration when nodes of a rehearsal pretend to be as large as the site's."""

from deploy.lab.pretended import cgroup_conf, described, expanded, sizes_of, slurm_conf

CONF = """\
SlurmctldHost=ctl(10.0.0.2)
TaskPlugin=task/affinity,task/cgroup
NodeName=g[001-002],x7 NodeAddr=10.0.0.[4-5],10.0.0.9 CPUs=2 RealMemory=1024 Gres=gpu:a100:4 State=UNKNOWN
NodeName=b1 NodeAddr=10.0.0.7 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1024 State=UNKNOWN

PartitionName=gpu Nodes=g[001-002] Default=YES DefMemPerCPU=512 MaxNodes=80
PartitionName=all Nodes=b1,g[001-002] Default=NO DefMemPerCPU=512
"""
LISTED: list[dict[str, int | str]] = [
    {"group": "fast_gpu", "nodes": 80, "cpus": 72, "memory_mb": 512000},
    {"group": "bare", "cpus": 8, "memory_mb": 16000},
]
GROUPS = {"fast_gpu": ("g001", "g002", "g003"), "bare": ("b1",)}
SIZES = sizes_of(LISTED, GROUPS, ["g001", "g002", "x7", "b1"])


def test_only_nodes_of_the_rehearsal_pretend() -> None:
    assert [sorted(size.names) for size in SIZES] == [["g001", "g002"], ["b1"]]
    assert [size.absent for size in SIZES] == ["fast-gpu-pretended[3-80]", ""]


def test_nodes_keep_all_but_their_size() -> None:
    lines = slurm_conf(CONF, SIZES, with_absent=False).splitlines()
    assert [line for line in lines if line.startswith("NodeName=")] == [
        "NodeName=g001 NodeAddr=10.0.0.4 CPUs=72 RealMemory=512000 Gres=gpu:a100:4 State=UNKNOWN",
        "NodeName=g002 NodeAddr=10.0.0.5 CPUs=72 RealMemory=512000 Gres=gpu:a100:4 State=UNKNOWN",
        "NodeName=x7 NodeAddr=10.0.0.9 CPUs=2 RealMemory=1024 Gres=gpu:a100:4 State=UNKNOWN",
        "NodeName=b1 NodeAddr=10.0.0.7 CPUs=8 RealMemory=16000 State=UNKNOWN",
    ]
    assert "TaskPlugin=task/cgroup" in lines
    assert "SlurmdParameters=config_overrides" in lines
    assert not any("CLOUD" in line or line.startswith("Suspend") for line in lines)


def test_jobs_get_the_share_of_memory_of_such_nodes() -> None:
    lines = slurm_conf(CONF, SIZES, with_absent=False).splitlines()
    assert "PartitionName=gpu Nodes=g[001-002] Default=YES DefMemPerCPU=7111 MaxNodes=80" in lines
    assert "PartitionName=all Nodes=b1,g[001-002] Default=NO DefMemPerCPU=2000" in lines
    alone = slurm_conf(CONF, SIZES[:1], with_absent=False).splitlines()
    assert "PartitionName=all Nodes=b1,g[001-002] Default=NO DefMemPerCPU=512" in alone


def test_nodes_that_are_not_there_are_switched_off() -> None:
    lines = slurm_conf(CONF, SIZES, with_absent=True).splitlines()
    assert "NodeName=fast-gpu-pretended[3-80] CPUs=72 RealMemory=512000 Gres=gpu:a100:4 State=CLOUD" in lines
    (gpu,) = [line for line in lines if line.startswith("PartitionName=gpu ")]
    assert gpu.split()[1] == "Nodes=g[001-002],fast-gpu-pretended[3-80]"
    assert {"SuspendProgram=/bin/true", "ResumeProgram=/bin/true", "SuspendTime=864000"} < {*lines}


def test_parameters_of_the_site_stay() -> None:
    conf = slurm_conf("SlurmdParameters=numa_node_as_socket\n" + CONF, SIZES, with_absent=False)
    assert "SlurmdParameters=numa_node_as_socket,config_overrides\n" in conf
    assert conf.count("SlurmdParameters") == 1


def test_jobs_are_not_held_to_cores() -> None:
    assert (
        cgroup_conf("ConstrainCores=yes\nConstrainDevices=yes\n")
        == "ConstrainDevices=yes\nConstrainCores=no\n"
    )


def test_lists_keep_their_order() -> None:
    assert expanded("n[9-11],a2,n[001-002]-ib") == ["n9", "n10", "n11", "a2", "n001-ib", "n002-ib"]


def test_what_is_pretended_is_told() -> None:
    sized = "nodes pretended to have 72 CPUs and 512000 MiB (fast_gpu), 8 CPUs and 16000 MiB (bare)"
    assert described(SIZES, with_absent=False) == sized
    more = "; 80 nodes of fast_gpu, of which those that are not there run nothing"
    assert described(SIZES, with_absent=True) == sized + more
