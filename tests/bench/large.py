"""Large sites without machines: offline check and plan, and a rerun where a stand-in answers for ssh."""

import os
import sys
from pathlib import Path

from tests.bench.commands import BenchError, run
from tests.bench.lab import DEPLOY

_HARDWARE = (
    "{cpus: 64, sockets: 2, cores_per_socket: 16, threads_per_core: 2, memory_mb: 512000,"
    " gpus: [{type: h100, count: 8}]}"
)
_CHECK = """
import sys
from pathlib import Path
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
site = read_site(Path(sys.argv[1]))
check_site(site, None)
assert len(site.hosts) == int(sys.argv[2])
"""

# What is worked out before hosts are asked: what runs where, with which variables, and the fingerprints.
_PLAN = """
import sys
from pathlib import Path
from deploy.plan.build import build_plan
from deploy.plan.fingerprint import fingerprints
from deploy.plan.generated_inventory import wired_variables, write_inventory
from deploy.site.inventory import read_site
inventory = Path(sys.argv[1])
site = read_site(inventory)
plan = build_plan(site)
write_inventory(inventory.with_name("generated.json"), site, plan, {})
found = fingerprints(site, {}, wired_variables(site, {}), {})
assert len(found) == len(plan.hosts) == int(sys.argv[2])
"""

# What every host would answer when all is as it was recorded.
_CONVERGED = """
import json, sys, time
from pathlib import Path
from deploy.plan.fingerprint import fingerprints
from deploy.plan.generated_inventory import wired_variables
from deploy.site.hardware import read_contract
from deploy.site.inventory import read_site
from deploy.site.secrets import fill_secrets, read_secrets, secrets_file
site = read_site(Path(sys.argv[1]))
fill_secrets(site, None)
wired = wired_variables(site, read_contract(site), is_limited=False)
expected = fingerprints(site, {}, wired, read_secrets(secrets_file(site), None))
for host in site.cluster:
    told = {"at": time.time(), "version": "bench", "drift": []}
    answer = {phase: {"fingerprint": value, **told} for phase, value in expected[host.name].items()}
    address = host.connection["ansible_host"]
    Path(sys.argv[2], address).write_text("deploy:" + json.dumps(answer) + "\\n")
"""
# The last two arguments of ssh are the address and the command there, which reads its program from the input.
_SSH = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
cat > /dev/null
exec cat '{answers}'/"$1"
"""


def seconds_to_check(place: Path, nodes: int) -> float:
    """Writes a site of that many compute nodes and checks it in a process of its own."""
    return _seconds_of(_CHECK, place, nodes)


def seconds_to_plan(place: Path, nodes: int) -> float:
    """Writes a site of that many compute nodes and plans its deployment in a process of its own."""
    return _seconds_of(_PLAN, place, nodes)


def _seconds_of(program: str, place: Path, nodes: int) -> float:
    inventory = _site(place, nodes)
    return run([sys.executable, "-c", program, str(inventory), str(nodes + 2)]).seconds


def cpu_seconds_of_rerun(place: Path, nodes: int) -> float:
    """CPU seconds of a converged `deploy cluster` on that many nodes, with all its children but real ssh."""
    inventory = _site(place, nodes)
    answers, ssh = place / "answers", place / "ssh"
    answers.mkdir()
    ssh.write_text(_SSH.format(answers=answers), encoding="utf-8")
    ssh.chmod(0o755)
    (place / "group_vars/all.yml").write_text(f"ansible_ssh_executable: {ssh}\n", encoding="utf-8")
    run([sys.executable, "-c", _CONVERGED, str(inventory), str(answers)])
    environment = {**os.environ, "XDG_STATE_HOME": str(place / "state")}
    command = [*DEPLOY, "cluster", str(inventory), "--output", "plain"]
    # The first run does not know yet that there is no need for Ansible.
    run(command, environment=environment)
    finished = run(command, environment=environment)
    if "converged: no task failed (0 changes" not in finished.text:
        what = "a rerun on simulated hosts"
        raise BenchError(what, finished.text[-2000:])
    return finished.cpu


def _site(place: Path, nodes: int) -> Path:
    """Writes a site of that many compute nodes; returns its inventory."""
    place.mkdir(parents=True)
    inventory = place / "inventory.ini"
    inventory.write_text(_inventory(nodes), encoding="utf-8")
    (place / "group_vars").mkdir()
    variables = f"slurmd_hardware: {_HARDWARE}\n"
    (place / "group_vars" / "slurm-node.yml").write_text(variables, encoding="utf-8")
    return inventory


def _inventory(nodes: int) -> str:
    hosts = {"ctl1": "10.0.0.1", "login1": "10.0.0.2"}
    hosts |= {f"node{n}": f"10.{1 + n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(1, nodes + 1)}
    lines = "\n".join(f"{name} ansible_host={address}" for name, address in hosts.items())
    return (
        f"[all]\n{lines}\n\n[slurm-master]\nctl1\n\n[slurm-login]\nlogin1\n\n[slurm-node]\nnode[1:{nodes}]\n\n"
        "[slurm-cluster:children]\nslurm-master\nslurm-login\nslurm-node\n"
    )
