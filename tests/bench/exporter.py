"""What a round of the Slurm exporter costs on a large cluster, with commands that print files."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from deploy.content import roles
from tests.bench.commands import run
from tests.bench.slurm_output import outputs

NODES, JOBS = 1000, 10_000
_ROUNDS = 5
_PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import slurm_metrics
settings = json.loads(sys.argv[2])
collection = slurm_metrics.Collection(slurm_metrics.commands(settings), 60, sys.argv[3])
page = slurm_metrics.Page(collection)
collection.ask()
page.render()
before = slurm_metrics.cpu_seconds()
for _ in range(int(sys.argv[4])):
    collection.ask()
    page.render()
used = (slurm_metrics.cpu_seconds() - before) / int(sys.argv[4])
assert page.text.count(b"slurm_node_state{") == int(sys.argv[5]), "not every node is told"
assert b'slurm_exporter_collect_success{command="jobs"} 1.0' in page.text
sys.stdout.write(str(used))
"""
# Which command of Slurm's, with which word in its arguments, asks for what.
_COMMANDS = {
    "scontrol": {
        "ping": "controllers",
        "nodes": "nodes",
        "partitions": "partitions",
        "config": "configuration",
    },
    "squeue": {"": "jobs"},
    "sdiag": {"": "scheduler"},
    "sacctmgr": {"": "accounting"},
    "sshare": {"": "shares"},
}


def defaults() -> Mapping[str, int]:
    """The role's own values."""
    values: Mapping[str, int] = yaml.safe_load((roles() / "slurm_metrics/defaults/main.yml").read_text())
    return values


def seconds_between_rounds() -> float:
    """How often it asks where nobody changed that."""
    return float(defaults()["slurm_metrics_interval"])


def cpu_seconds_of_a_round(place: Path) -> float:
    """CPU seconds of the exporter and its children; of Slurm's commands only their output is there."""
    place.mkdir(parents=True)
    for name, text in outputs(NODES, JOBS).items():
        (place / f"{name}.txt").write_text(text, encoding="utf-8")
    for command, answers in _COMMANDS.items():
        cases = "".join(f'*"{word}"*) exec cat {place}/{name}.txt ;;\n' for word, name in answers.items())
        script = place / command
        script.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}esac\n', encoding="utf-8")
        script.chmod(0o755)
    settings = {
        "slow_interval": 0,
        "named_jobs": defaults()["slurm_metrics_named_jobs"],
        "accounting": True,
    }
    program = roles() / "slurm_metrics/files/usr/local/lib/slurm_metrics"
    path = f"{place}:/usr/bin:/bin"
    arguments = [str(program), json.dumps(settings), path, str(_ROUNDS), str(NODES)]
    return float(run([sys.executable, "-c", _PROGRAM, *arguments]).text)
