"""What deploy says of a host in templates is known in the play that reads it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

from deploy.plan.catalog import PHASES, Phase
from deploy.plan.declarations import Step
from deploy.plan.generated_inventory import wired_variables
from deploy.site.inventory import Host, read_site
from deploy.site.schema import options
from tests.contract.content import ROOT, read_yaml, strings
from tests.unit.site.sites import write_site

_INVENTORY = """
[slurm-master]
ctl1 ansible_host=10.0.0.1
[slurm-database]
{database}
[slurm-login]
login1 ansible_host=10.0.0.2
[slurm-metric]
ctl1
[slurm-rest]
login1
[slurm-portal]
login1
[slurm-node]
node[1:3] ansible_host=10.0.0.3
"""
_NAME = re.compile(r"\w+")


def _read(step: Step) -> set[str]:
    """The variables that a step may read: of its tasks those that it begins with, and what they import."""
    role = ROOT / "roles" / step.role
    others = (
        path for part in ("handlers", "templates") for path in (role / part).rglob("*") if path.is_file()
    )
    text = "".join(path.read_text(encoding="utf-8") for path in others)
    files = [f"{step.tasks_from or 'main'}.yml"]
    while files:
        here = (role / "tasks" / files.pop()).read_text(encoding="utf-8")
        files += re.findall(r"(?:import|include)_tasks: (\S+\.yml)", here)
        text += here
    names, left = {*_NAME.findall(text)}, dict(read_yaml(role / "vars/main.yml") or {})
    while found := left.keys() & names:
        names |= {name for one in found for part in strings(left.pop(one)) for name in _NAME.findall(part)}
    return names


def _needed(value: object) -> Iterator[str]:
    """The site's variables that the templates in a value name."""
    for text in strings(value):
        names = Environment(autoescape=True).parse(text).find_all(nodes.Name)
        yield from (it.name for it in names if not it.name.startswith(("__", "ansible_")))


@pytest.mark.parametrize("database", ["login1", "login1\nnode1\nctl1"])
def test_what_a_play_reads_is_known_there(tmp_path: Path, database: str) -> None:
    site = read_site(write_site(tmp_path, _INVENTORY.format(database=database)))
    wired = wired_variables(site, {})

    def unknown(phase: Phase, host: Host) -> Iterator[str]:
        told = {**wired.shared.get(phase.group, {}), **wired.by_host[host.name]}
        read = {name for step in phase.steps for name in _read(step)}
        known = {name for name, option in options().items() if option.secret or option.role in phase.roles}
        known |= {*told, *host.variables}
        for name in told.keys() & read:
            yield from (f"{phase.name}: {name}: {it}" for it in _needed(told[name]) if it not in known)

    places = [(phase, host) for phase in PHASES for host in phase.members(site, {})]
    assert {each for place in places for each in unknown(*place)} == set()
