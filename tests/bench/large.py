"""The offline check of a large site: read by Ansible, every value held against every rule, no connection."""

import sys
from pathlib import Path

from tests.bench.commands import run

_HARDWARE = "{cpus: 64, sockets: 2, cores_per_socket: 16, threads_per_core: 2, memory_mb: 512000}"
_PROGRAM = """
import sys
from pathlib import Path
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
site = read_site(Path(sys.argv[1]))
check_site(site, None)
assert len(site.hosts) == int(sys.argv[2])
"""


def seconds_to_check(place: Path, nodes: int) -> float:
    """Writes a site of that many compute nodes and checks it in a process of its own."""
    place.mkdir(parents=True)
    inventory = place / "inventory.ini"
    inventory.write_text(_inventory(nodes), encoding="utf-8")
    (place / "group_vars").mkdir()
    variables = f"slurmd_hardware: {_HARDWARE}\n"
    (place / "group_vars" / "slurm-node.yml").write_text(variables, encoding="utf-8")
    return run([sys.executable, "-c", _PROGRAM, str(inventory), str(nodes + 2)]).seconds


def _inventory(nodes: int) -> str:
    hosts = {"ctl1": "10.0.0.1", "login1": "10.0.0.2"}
    hosts |= {f"node{n}": f"10.{1 + n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(1, nodes + 1)}
    lines = "\n".join(f"{name} ansible_host={address}" for name, address in hosts.items())
    return (
        f"[all]\n{lines}\n\n[slurm-master]\nctl1\n\n[slurm-login]\nlogin1\n\n[slurm-node]\nnode[1:{nodes}]\n\n"
        "[slurm-cluster:children]\nslurm-master\nslurm-login\nslurm-node\n"
    )
