"""Sites for tests: a small healthy inventory in a directory, changed where a test wants it."""

from collections.abc import Mapping
from pathlib import Path

INVENTORY = """\
[all]
ctl1 ansible_host=10.0.0.1
login1 ansible_host=10.0.0.2
node1 ansible_host=10.0.0.11
node2 ansible_host=10.0.0.12

[slurm-master]
ctl1

[slurm-login]
login1

[slurm-node]
node[1:2]

[slurm-cluster:children]
slurm-master
slurm-login
slurm-node
"""
NODE_VARIABLES = "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: [{type: a100, count: 2}]}\n"


def write_site(directory: Path, inventory: str = INVENTORY, files: Mapping[str, str] | None = None) -> Path:
    """Writes inventory.ini and further files (path below the directory -> text); returns the inventory."""
    path = directory / "inventory.ini"
    path.write_text(inventory)
    for name, text in {"group_vars/slurm-node.yml": NODE_VARIABLES, **(files or {})}.items():
        target = directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o600)
    return path
