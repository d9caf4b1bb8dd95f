"""Whether a host's record can know what a role manages: its modules say so, or the role declares probes."""

from collections.abc import Iterator
from pathlib import Path

from deploy.run.managed import RECORDED
from tests.contract.content import ROOT, Task, read_yaml, tasks

_MANAGE_NOTHING = frozenset(
    {
        *("assert", "command", "debug", "fail", "fetch", "find", "getent", "meta", "pause", "reboot"),
        *("import_role", "import_tasks", "include_role", "include_tasks", "include_vars"),
        *("package_facts", "service_facts", "set_fact", "setup", "slurp", "stat"),
        *("wait_for", "wait_for_connection"),
    }
)
"""A command is here when it says itself that it changes nothing."""
_SILENT_FILES = frozenset({"copy", "template", "lineinfile", "blockinfile"})


def unrecorded(role: Path) -> Iterator[str]:
    """Tasks whose work no record would know."""
    if read_yaml(role / "meta" / "probes.yml"):
        return
    found = list(tasks(role))
    inputs = " ".join(str(task.words["service_current"]) for task in found if "service_current" in task.words)
    written = {
        task.words[task.module].get("dest") for task in found if task.module.endswith((".copy", ".template"))
    }
    for task in found:
        module = task.module.rpartition(".")[2]
        if not module:
            if not _own_module_says(task):
                yield f"{task.place}: its module returns no deploy_manages, and there is no probes.yml"
        elif module == "command" and not (
            task.words.get("changed_when") is False or task.words[task.module].get("creates") in written
        ):
            yield f"{task.place}: what a command changes has to be asked: declare it in meta/probes.yml"
        elif module not in RECORDED | _MANAGE_NOTHING:
            yield f"{task.place}: no recorder understands {task.module}: declare a probe in meta/probes.yml"
        elif (
            module in _SILENT_FILES and task.no_log and str(task.words[task.module].get("dest")) not in inputs
        ):
            yield f"{task.place}: its result is hidden; name the file among the inputs of service_current"


def _own_module_says(task: Task) -> bool:
    """Whether the project's own module of a task returns what it manages, or manages nothing."""
    shared = ("playbooks/library", "playbooks/action_plugins")
    for place in (*shared, *(f"roles/{path.name}/library" for path in ROOT.glob("roles/*"))):
        for word in task.words:
            path = ROOT / place / f"{word}.py"
            if path.exists():
                source = path.read_text(encoding="utf-8")
                return (
                    "deploy_manages=" in source or '"deploy_manages"' in source or "changed=False" in source
                )
    return False
