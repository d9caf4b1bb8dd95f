"""The playbook of the whole cluster: a play for each phase, as roles declare them."""

from collections.abc import Iterator
from pathlib import Path

from deploy.plan.catalog import PHASES, Phase
from deploy.plan.declarations import Step

_HEAD = """\
---
# The whole cluster, phase by phase, made by docs/generate.py: what a phase is, a role says in its
# meta/deploy.yml; when it has its turn, deploy/plan/catalog.py. Arguments of roles are not validated once
# more on every host: deploy checks the whole site by them. The facts that roles read come from check.yml.
- name: Check
  ansible.builtin.import_playbook: check.yml
"""


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The file and its text."""
    yield root / "playbooks/cluster.yml", "\n".join([_HEAD, *map(_play, PHASES)])


def _play(phase: Phase) -> str:
    lines = [
        f"- name: {phase.title}",
        f"  hosts: {phase.group}",
        "  become: true",
        "  gather_facts: false",
        *["  max_fail_percentage: 0"] * phase.all_or_nobody,
        "  tasks:",
        *(line for step in phase.steps for line in _task(step, phase.tag)),
    ]
    return "\n".join(lines) + "\n"


def _task(step: Step, tag: str) -> Iterator[str]:
    yield f"    - name: {step.title}"
    yield "      ansible.builtin.import_role:"
    yield f"        name: {step.role}"
    yield from [f"        tasks_from: {step.tasks_from}"] * bool(step.tasks_from)
    yield "        rolespec_validate: false"
    yield from ["      vars:"] * bool(step.vars)
    yield from (f'        {name}: "{value}"' for name, value in step.vars)
    yield f"      tags: [{', '.join(step.tags or dict.fromkeys([tag, step.role]))}]"
