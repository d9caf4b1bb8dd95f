"""What ``--tags`` and ``--skip-tags`` leave of a plan, and which tags there are."""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

from deploy.content import playbook, read_data, roles
from deploy.plan.build import Plan
from deploy.plan.catalog import PHASES, Phase
from deploy.plan.declarations import Step

_ANSIBLES_OWN = frozenset({"all", "always", "never", "tagged", "untagged"})
_EVERYTHING = frozenset({"all", "tagged"})
_FILES = ("import_tasks", "include_tasks", "ansible.builtin.import_tasks", "ansible.builtin.include_tasks")


def tagged(plan: Plan, tags: str | None, skip_tags: str | None) -> Plan:
    """The phases of a plan of which something is run."""
    wanted, unwanted = words(tags), words(skip_tags)
    return plan.only(
        {step.phase.name: step.hosts for step in plan.steps if _has_part(step.phase, wanted, unwanted)}
    )


def unknown_tags(*said: str | None) -> list[str]:
    """Of these lists of tags what no task has."""
    known = _ANSIBLES_OWN.union(_found(read_data(playbook("check"))))
    known = known.union(
        *(_of_step(phase, step) | _of_tasks(step) for phase in PHASES for step in phase.steps)
    )
    return sorted({tag for text in said for tag in words(text)} - known)


def words(tags: str | None) -> frozenset[str]:
    """A list of tags as it is typed."""
    return frozenset(filter(None, (tag.strip() for tag in (tags or "").split(","))))


def _has_part(phase: Phase, wanted: Collection[str], unwanted: Collection[str]) -> bool:
    for step in phase.steps:
        own = _of_step(phase, step)
        if own & {*unwanted}:
            continue
        if not wanted or _EVERYTHING & {*wanted} or (own | _of_tasks(step)) & {*wanted}:
            return True
    return False


def _of_step(phase: Phase, step: Step) -> frozenset[str]:
    return frozenset(step.tags or (phase.tag, step.role))


@cache
def _of_tasks(step: Step) -> frozenset[str]:
    """Those in the files of a role that a step goes through."""
    directory, found = roles() / step.role / "tasks", set[str]()
    left, seen = [f"{step.tasks_from.removesuffix('.yml') or 'main'}.yml"], set[str]()
    while left:
        name = left.pop()
        seen.add(name)
        tasks = read_data(directory / name)
        found |= set(_found(tasks))
        named = [file for file in _files(tasks) if "{{" not in file]
        if len(named) < len([*_files(tasks)]):
            named = [path.name for path in directory.glob("*.yml")]
        left += [file for file in named if file not in seen]
    return frozenset(found)


def _found(content: Any) -> Iterator[str]:  # noqa: ANN401 - YAML holds anything
    """Every tag in a file of plays or tasks, those of blocks among them."""
    for each in content if isinstance(content, list) else ():
        if isinstance(each, dict):
            tags = each.get("tags", ())
            yield from [tags] if isinstance(tags, str) else tags
            for part in each.values():
                yield from _found(part)


def _files(content: Any) -> Iterator[str]:  # noqa: ANN401
    for each in content if isinstance(content, list) else ():
        if isinstance(each, dict):
            for name in _FILES:
                if name in each:
                    yield each[name] if isinstance(each[name], str) else each[name]["file"]
            for part in each.values():
                yield from _files(part)
