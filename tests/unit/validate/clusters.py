"""A small cluster in which every check passes, for tests to change."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.judge.site_status import site_status
from deploy.run.events import HostResult
from deploy.site.inventory import Host, Site
from deploy.validate.answers import Answers
from deploy.validate.catalog import CHECKS, judged
from deploy.validate.context import Context
from deploy.validate.questions import Questions
from deploy.validate.result import Outcome, Result
from deploy.validate.thresholds import Thresholds
from tests.unit.judge.statuses import NOW, answered, slurm_node
from tests.unit.validate.measurements import PLAN, measured

ADDRESSES = {"ctl1": "10.0.0.1", "login1": "10.0.0.2", "node1": "10.0.0.11", "node2": "10.0.0.12"}
GROUPS = {
    "slurm-master": ("ctl1",),
    "slurm-login": ("login1",),
    "slurm-node": ("node1", "node2"),
    "slurm-cluster": tuple(ADDRESSES),
}
NODES = GROUPS["slurm-node"]
HARDWARE = {"cpus": 4, "memory_mb": 8000, "gpus": [{"type": "a100", "count": 2}]}
USER, MARKER, NONCE = "deploy-validate", "deploy-validate-0a1b", "c0ffee"
SLURM = {
    "ping": "Slurmctld(primary) at ctl1 is UP\n",
    "nodes": "".join(
        f"NodeName={node} Arch=x86_64 CPUTot=4 Gres=gpu:a100:2(S:0-1) State=IDLE RealMemory=8000\n"
        for node in NODES
    ),
    "partitions": (
        "PartitionName=batch AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL Default=YES QoS=N/A"
        " DefaultTime=01:00:00 MaxTime=7-00:00:00 Nodes=node[1-2] State=UP\n"
        f"PartitionName={USER} AllowGroups=ALL AllowAccounts={USER} AllowQos=ALL Default=NO QoS=N/A"
        " DefaultTime=NONE MaxTime=00:10:00 Nodes=node[1-2] State=UP\n"
    ),
    "qos": f"normal\n{USER}\n",
    "associations": (
        f"cluster|root|root||normal\ncluster|{USER}|{USER}||{USER}\ncluster|research|ann||normal\n"
    ),
}
VARIABLES: dict[str, Any] = {
    # The recorded Prometheus asks none.
    "gpu_exporter_source": "none",
    "slurm_accounts_users": [{"name": "ann", "accounts": ["research"]}],
    "slurmctld_partitions": [
        {"name": "batch", "default": True, "max_time": "7-00:00:00", "default_time": "01:00:00"}
    ],
}


def site(variables: dict[str, Any] | None = None, groups: dict[str, tuple[str, ...]] | None = None) -> Site:
    """A site of those groups; every host has the variables."""
    groups = groups or GROUPS
    names = list(dict.fromkeys(host for members in groups.values() for host in members))
    members_of = {group: {*members} for group, members in groups.items()}
    hosts = {
        name: Host(
            name,
            {"ansible_host": ADDRESSES.get(name, "10.9.9.9"), **VARIABLES, **(variables or {})},
            frozenset(group for group, members in members_of.items() if name in members),
        )
        for name in names
    }
    return Site(Path("/site/inventory.ini"), hosts, groups)


def run(
    *answers: dict[str, Any], code: int | None = 0, said: str = "", seconds: float = 1.0
) -> dict[str, Any]:
    """What deploy/validate/programs/user.py says of a program."""
    return {"code": code, "seconds": seconds, "said": said, "answers": list(answers)}


def refused(said: str) -> dict[str, Any]:
    """A job that did not start."""
    return run(code=1, said=said)


BUSY = refused("srun: error: Unable to allocate resources: Requested nodes are busy")


def probe(node: str, job: int, **changes: object) -> dict[str, Any]:
    """What a probe says."""
    return {
        "node": node,
        "host": node,
        "job": str(job),
        "ranks": 1,
        "rank": 0,
        "cpus": 1,
        "devices": {"/dev/nvidia0": "EPERM", "/dev/nvidia1": "EPERM"},
        "from": 100.0,
        "to": 102.0,
        **changes,
    }


def row(job: int | str, node: str, **changes: str) -> dict[str, str]:
    """A row of accounting."""
    expected = {"User": USER, "Account": USER, "Partition": USER, "QOS": USER, "State": "COMPLETED"}
    tres = "billing=1,cpu=1,mem=100M,node=1"
    return {"JobID": str(job), "NodeList": node, "ExitCode": "0:0", "AllocTRES": tres, **expected, **changes}


def jobs() -> dict[str, Any]:
    """What the jobs of a healthy cluster say."""
    shared, private = {"nonce": NONCE}, {"TMPDIR": "/tmp"}
    answers = {
        node: probe(node, number, shared=shared, private=private, work_seconds=0.2)
        for number, node in enumerate(NODES, 11)
    }
    devices = {"/dev/nvidia0": "open", "/dev/nvidia1": "open"}
    single = [
        [
            run(probe(node, number + half, devices={**devices, f"/dev/nvidia{half}": "EPERM"}))
            for half in (0, 1)
        ]
        for number, node in ((21, "node1"), (23, "node2"))
    ]
    denied = {"code": 255, "said": "Access denied: user has no active jobs on this node", "seconds": 1.0}
    return {
        "probes": {node: run(answer) for node, answer in answers.items()},
        "shared": dict.fromkeys(NODES, NONCE),
        "together": run(*(probe(node, 31) for node in NODES)),
        "array": "41",
        "memory": {node: run(code=137, said="Killed") for node in NODES},
        "single": dict(zip(NODES, single, strict=True)),
        "all_gpus": {node: run(probe(node, 25, devices=devices)) for node in NODES},
        "ssh": {
            node: {
                "without": {**denied, "answers": []},
                "job": "51",
                "why": "RUNNING",
                "within": run(said="0::/system.slice/slurmstepd.scope/job_51/step_extern"),
            }
            for node in NODES
        },
        "mpi": {**run(*({"rank": n, "ranks": 4, "host": NODES[n // 2]} for n in range(4))), "expected": 4},
        "container": {node: run(said=f"NAME=x\nNONCE={NONCE}") for node in NODES},
        **measured(NODES),
        "limit": {"job": "61", "why": "", "states": ["TIMEOUT"], "seconds": 75.0},
        "accounting": [
            *(row(number, node) for number, node in enumerate(NODES, 11)),
            *(
                row(number, NODES[number > 22], AllocTRES="cpu=1,mem=100M,node=1,gres/gpu=1")
                for number in range(21, 25)
            ),
            *(row(f"41_{task}", "node1") for task in range(4)),
            *(row(70 + n, node, State="OUT_OF_MEMORY", ExitCode="0:125") for n, node in enumerate(NODES)),
        ],
        "trouble": [],
    }


def looks() -> dict[str, dict[str, Any]]:
    """What the hosts of a healthy cluster say."""
    hashes = {"slurm.conf": "a", "cgroup.conf": "b"}
    slurm = {what: {"code": 0, "out": text, "why": ""} for what, text in SLURM.items()}
    look: dict[str, Any] = {
        "configuration": {"directory": "/etc/slurm", "hashes": hashes, "plugins": [], "server": ""},
        "credential": "MUNGE:x:",
        "addresses": {name: [address] for name, address in ADDRESSES.items()},
        "refusals": {},
        "mounted": {},
        "silent": [],
        "space": {"/": [50, 100, 50, 100], "/tmp": [50, 100, 0, 0]},
        "slurm": None,
    }
    return {name: deepcopy({**look, "slurm": slurm if name == "ctl1" else None}) for name in ADDRESSES}


def surroundings() -> dict[str, dict[str, Any]]:
    """What users of a healthy cluster meet on its hosts."""
    own = {"uid": 2001, "gid": 2001, "shell": "/bin/bash", "has_shell": True}
    plain = {"mode": 0o1777, "uid": 0, "mounted": "", "is_read_only": False}
    answer = {
        "users": {"ann": own, USER: {**own, "uid": 59990, "gid": 59990}},
        "groups": {"ann": 2001},
        "directories": {"/tmp": {**plain}, "/var/tmp": {**plain}, "/dev/shm": {**plain, "mounted": "tmpfs"}},
        "closed": "",
        "zone": "+0000",
        "login_shell": {"why": "", "umask": "0022"},
    }
    return {name: deepcopy({**answer, "name": name, "addresses_of": [name]}) for name in ADDRESSES}


def system() -> dict[str, dict[str, Any]]:
    """What the kernels of a healthy cluster do for users."""
    kernel = {
        "system": "debian 13",
        "running": "6.12.57+deb13-amd64",
        "installed": ["6.12.48+deb13-amd64", "6.12.57+deb13-amd64"],
    }
    groups = {"version": 2, "controllers": ["cpuset", "cpu", "io", "memory", "pids"], "words": []}
    groups["known"] = [1, 2]
    answer = {
        "kernel": kernel,
        "control_groups": groups,
        "quotas": {},
        "serves_quotas": None,
        "root_sees": None,
        "open_exports": {},
    }
    return {name: deepcopy(answer) for name in ADDRESSES}


def packets() -> dict[str, dict[str, Any]]:
    """How packets between the hosts of a healthy cluster travel."""
    way = {"sent": 50, "lost": 0, "seconds": 0.0001, "blocked_bytes": 0}
    return {
        name: {"why": "", "sent_again": 0.1, "peers": {peer: {**way} for peer in ADDRESSES if peer != name}}
        for name in ADDRESSES
    }


def reply(code: int | None = 200, data: object = None, why: str = "") -> dict[str, Any]:
    """What deploy/validate/programs/monitoring.py says of a request."""
    return {"code": code, "why": why, "data": data}


def monitoring() -> dict[str, Any]:
    """What the monitoring of a healthy cluster says."""
    jobs = [*(("node", name) for name in ADDRESSES), ("slurm", "ctl1"), ("mysqld", "ctl1")]
    jobs += [(job, "ctl1") for job in ("prometheus", "alertmanager", "blackbox", "blackbox")]
    jobs += [("blackbox", "login1")]
    targets = [{"job": job, "instance": name, "health": "up", "error": ""} for job, name in jobs]
    return {
        "prometheus": {
            "url": "http://10.0.0.1:9090",
            "ready": reply(),
            "runtime": reply(data={"taken": True}),
            "targets": reply(data=targets),
            "alerts": reply(data=[]),
        },
        "alertmanager": {"url": "http://10.0.0.1:9093", "ready": reply()},
        "grafana": {
            "url": "http://10.0.0.1:3000",
            "health": reply(data={"database": "ok"}),
            "source": reply(data={"status": "OK", "message": "Successfully queried the Prometheus API."}),
        },
        "pages": {"Prometheus": reply(302), "Alertmanager": reply(), "Grafana": reply()},
        "doors": {"login1": ""},
    }


def states() -> dict[str, HostResult]:
    """What node_status says of a healthy cluster."""
    slurm = {"nodes": {node: slurm_node() for node in NODES}}
    return {
        name: answered(
            name,
            shortfalls=[] if name in NODES else None,
            slurm=slurm if name == "ctl1" else None,
        )
        for name in ADDRESSES
    }


def plan() -> dict[str, Any]:
    """What was asked for: everything."""
    return {
        "partition": USER,
        "nodes": list(NODES),
        "gpus": dict.fromkeys(NODES, 2),
        "divided": [],
        "ssh_nodes": list(NODES),
        "container_nodes": list(NODES),
        "has_mpi": True,
        "performance": PLAN,
    }


@dataclass
class Cluster:
    """What a test changes before it asks for the results of a check."""

    variables: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(GROUPS))
    contract: dict[str, Any] = field(default_factory=lambda: {node: deepcopy(HARDWARE) for node in NODES})
    states: dict[str, HostResult] = field(default_factory=states)
    looks: dict[str, dict[str, Any]] = field(default_factory=looks)
    credentials: dict[str, Any] = field(
        default_factory=lambda: {name: {"undecoded": {}} for name in ADDRESSES}
    )
    jobs: dict[str, Any] | None = field(default_factory=jobs)
    leftovers: dict[str, Any] = field(default_factory=lambda: {node: {"leftovers": []} for node in NODES})
    silent: dict[tuple[str, str], str] = field(default_factory=dict)
    complaints: dict[str, Any] = field(
        default_factory=lambda: {node: {"lines": [], "count": 0, "why": ""} for node in NODES}
    )
    plan: dict[str, Any] | None = field(default_factory=plan)
    thresholds: Thresholds = field(default_factory=Thresholds)
    admins: dict[str, Any] = field(
        default_factory=lambda: {node: {"admins": {"admin": "", "chief": ""}} for node in NODES}
    )
    monitoring: dict[str, Any] | None = field(default_factory=monitoring)
    portal: dict[str, Any] | None = None

    surroundings: dict[str, Any] = field(default_factory=surroundings)
    packets: dict[str, Any] = field(default_factory=packets)
    system: dict[str, Any] = field(default_factory=system)
    away: tuple[str, ...] = ()
    """Nodes that Slurm has switched off, which nobody asked."""

    @property
    def watched(self) -> dict[str, Any]:
        """What the monitoring says, where it says something."""
        assert self.monitoring is not None
        return self.monitoring

    @property
    def done(self) -> dict[str, Any]:
        """The jobs, where there are some."""
        assert self.jobs is not None
        return self.jobs

    def says(self, what: str, old: str, new: str) -> None:
        """Another word in what a controller says."""
        answer = self.looks["ctl1"]["slurm"][what]
        assert old in answer["out"]
        answer["out"] = answer["out"].replace(old, new)

    def is_silent(self, what: str, why: str) -> None:
        """One of Slurm's commands fails."""
        self.looks["ctl1"]["slurm"][what] = {"code": 1, "out": "", "why": why}

    def context(self) -> Context:
        """What a check looks at."""
        whole = site(self.variables, self.groups)
        made = whole.without(self.away)
        asked = (self.states, self.looks, self.credentials, self.jobs, self.leftovers, self.silent)
        answers = Answers(
            *asked,
            complaints=self.complaints,
            admins=self.admins,
            monitoring=self.monitoring,
            portal=self.portal,
            surroundings=self.surroundings,
            packets=self.packets,
            system=self.system,
        )
        status = site_status(
            whole, self.states, {}, {}, asked=list(made.hosts), limit=None, inventory="inventory.ini", at=NOW
        )
        questions = Questions(MARKER, NONCE, self.plan)
        return Context(made, self.contract, questions, answers, status, self.thresholds, whole=whole)

    def results(self, name: str) -> tuple[Result, ...]:
        """What a check says."""
        return judged(self.context(), [check for check in CHECKS if check.name == name])[0].results


Change = Callable[[Cluster], object]


def by_outcome(results: tuple[Result, ...], outcome: Outcome) -> dict[str, str]:
    """By place, the messages of the results that ended so."""
    return {result.where: result.message for result in results if result.outcome is outcome}


def expect_fault(check: str, change: Change, messages: dict[str, str], hint: str) -> None:
    """A cluster with that change fails the check with these messages by place; the hints have the hint."""
    cluster = Cluster()
    change(cluster)
    results = cluster.results(check)
    assert by_outcome(results, Outcome.FAILED) == messages
    assert all(hint in result.hint for result in results if result.outcome is Outcome.FAILED)


def outcomes(cluster: Cluster) -> Iterator[tuple[str, Outcome]]:
    """How every check ended."""
    yield from ((check.check, check.outcome) for check in judged(cluster.context(), CHECKS))
