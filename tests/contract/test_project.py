"""What holds for the project as a whole."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.cli.app import VERBS
from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.dashboards import DASHBOARDS
from deploy.plan.catalog import PHASES
from deploy.validate import answers
from deploy.validate.catalog import CHECKS
from tests.contract.content import ROOT, options, read_yaml, role_directories, strings, tasks
from tests.tracked import tracked

_BINARIES = Path(sys.executable).parent
# Where deploy's catalogue says that software comes from; a machine's settings may name it, too.
_UPSTREAM = frozenset({"github.com"})
_HOST = re.compile(r"https?://(?:[^/@\s]*@)?([A-Za-z0-9.-]+)")


def test_generated_documents_are_current() -> None:
    answer = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, f"run: python docs/generate.py\n{answer.stderr}"


def test_layers_are_kept() -> None:
    answer = subprocess.run(
        [_BINARIES / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout


def package_hosts(texts: Iterator[str]) -> set[str]:
    """Hosts that this machine's package managers fetch from; a project must not depend on any of them."""
    hosts = {host for text in texts for host in _HOST.findall(text)}
    return {host for host in hosts if "." in host and not host.startswith("127.") and host not in _UPSTREAM}


def _settings() -> Iterator[str]:
    patterns = ("apt/sources.list", "apt/sources.list.d/*", "apt/apt.conf.d/*", "pip.conf")
    paths = [path for pattern in patterns for path in Path("/etc").glob(pattern)]
    for path in paths:
        yield path.read_text(encoding="utf-8", errors="replace")
    yield subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout


def test_package_hosts_are_recognized() -> None:
    texts = ["deb http://mirror.corp.example/debian x", "index = https://user:word@index.corp.example/simple"]
    assert package_hosts(iter(texts)) == {"mirror.corp.example", "index.corp.example"}


def test_no_file_names_a_package_host_or_this_checkout() -> None:
    forbidden = {*package_hosts(_settings()), f"{ROOT}/"}
    files = tracked()
    assert files
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in files
        for word in forbidden
        if word in path.read_text(encoding="utf-8", errors="replace")
    ]
    assert found == []


def commands_of_make(text: str) -> list[str]:
    """The calls of make in a text, each where it comes first; one that is typed again must change nothing."""
    return list(dict.fromkeys(re.findall(r"^make [a-z-]+", text, re.MULTILINE)))


def test_ci_types_what_the_readme_says_in_its_order() -> None:
    readme = commands_of_make((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(readme) > 3
    assert commands_of_make((ROOT / ".ci" / "run").read_text(encoding="utf-8")) == readme


def test_the_readme_counts_what_is_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    alerts = sum(len(chapter.alerts) for chapter in CHAPTERS)
    assert len(DASHBOARDS) == 9
    assert re.findall(r"(\w+) dashboards and (\d+) alerts", readme) == [("Nine", str(alerts))]
    assert re.findall(r"(\d+) checks", readme) == [str(len(CHECKS))]
    named = set(re.findall(r"\bdeploy ([a-z]+)(?=[` ])", readme))
    assert len(named) > 10
    assert named <= {verb.name for verb in VERBS}


def test_what_was_seen_by_hand_says_when() -> None:
    text = (ROOT / "docs" / "support.md").read_text(encoding="utf-8").partition("\n|")[2]
    assert text.count("by hand") > 3
    assert re.findall(r".{40}by hand(?! on \d{4}-\d\d-\d\d).{0,20}", text) == []
    assert re.findall(r".{40}\b(?:seen once|was tried|validated whole)\b(?! by hand).{0,20}", text) == []


def _play_variables() -> Iterator[tuple[str, str]]:
    for play in _plays():
        for holder in [play, *(play.get("tasks") or [])]:
            for name in holder.get("vars") or {}:
                yield str(play.get("name")), name


def _plays() -> Iterator[dict[str, Any]]:
    for path in sorted(ROOT.glob("playbooks/**/*.yml")):
        yield from read_yaml(path) or []


def _roles(play: Mapping[str, Any]) -> Iterator[str]:
    """The roles of a play; each is a task, because only a task can leave the arguments alone."""
    assert "roles" not in play
    for task in play.get("tasks") or []:
        if call := task.get("ansible.builtin.import_role"):
            assert call["rolespec_validate"] is False
            yield call["name"]


def test_playbooks_set_only_variables_of_roles() -> None:
    known = {name for role in role_directories() for name in options(role)}
    unknown = [
        place
        for place in _play_variables()
        # A task's id is for whoever reads the events.
        if place[1] not in {*known, "deploy_step"} and not place[1].startswith(("ansible_", "__"))
    ]
    assert unknown == []


def test_playbooks_name_roles_that_exist() -> None:
    known = {role.name for role in role_directories()}
    named = {role for play in _plays() for role in _roles(play)}
    assert named
    assert named <= known


def test_the_catalog_names_the_roles_of_every_phase() -> None:
    written: dict[str, list[str]] = {phase.group: [] for phase in PHASES}
    for play in _plays():
        written.get(play.get("hosts", ""), []).extend(_roles(play))
    assert {group: tuple(dict.fromkeys(roles)) for group, roles in written.items()} == {
        phase.group: phase.roles for phase in PHASES
    }


def test_a_list_is_kept_by_one_task_that_reads_nothing_of_its_host() -> None:
    lists = [phase for phase in PHASES if phase.follows_membership]
    assert lists
    for phase in lists:
        (role,) = (directory for directory in role_directories() if (directory.name,) == phase.roles)
        (task,) = tasks(role)
        assert not [text for text in strings(task) if "ansible_facts" in text]


_OF_COLLECTIONS = re.compile(
    r"\b(?!ansible\.(?:builtin|module_utils)\b)(?:ansible|community|containers)\.\w+\.\w+"
)


def test_nothing_is_needed_of_collections() -> None:
    """Only ansible-core is installed."""
    assert _OF_COLLECTIONS.search("- community.general.modprobe:")
    assert _OF_COLLECTIONS.search("  ansible.posix.mount:")
    assert not _OF_COLLECTIONS.search("- ansible.builtin.copy:")
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in tracked()
        if path.relative_to(ROOT).parts[0] in {"roles", "playbooks", "molecule"}
        and path.suffix in {".yml", ".j2"}
        for name in _OF_COLLECTIONS.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_only_the_site_says_which_controller_speaks_for_all() -> None:
    """A second controller is found in one place."""
    chosen = re.compile(r"\b(?:controllers|database_hosts|accounting_hosts)\[:?[01]\]|\.masters\b")
    assert chosen.search("site.controllers[0]")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.relative_to(ROOT).parts[0] == "deploy" and path.suffix == ".py"
        if path.relative_to(ROOT).parts[1:] != ("site", "inventory.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if chosen.search(line)
    ]
    assert found == []


def _names(tasks: object) -> Iterator[str]:
    """The names of plays and tasks, however deep they stand in blocks."""
    for task in tasks if isinstance(tasks, list) else []:
        yield task.get("name", "")
        for section in ("tasks", "block", "rescue", "always"):
            yield from _names(task.get(section))


def _texts_of_code(path: Path) -> Iterator[str]:
    """Every text that a program works with."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_plays_and_tasks_are_known_by_ids() -> None:
    """Their names are for people: nothing looks for one."""
    files = [*ROOT.glob("playbooks/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]
    names = {name for file in files for name in _names(read_yaml(file)) if " " in name}
    assert len(names) > 100
    # The titles of phases are those of their plays, and shown.
    code = [path for path in ROOT.glob("deploy/**/*.py") if path != ROOT / "deploy/plan/catalog.py"]
    assert [(path, text) for path in code for text in _texts_of_code(path) if text in names] == []


def test_the_steps_of_a_validation_are_those_of_its_playbook() -> None:
    known = {name: value for name, value in vars(answers).items() if name.isupper()}
    plays = read_yaml(ROOT / "playbooks/validate.yml")
    steps = [task["vars"]["deploy_step"] for play in plays for task in play["tasks"]]
    assert sorted(steps) == sorted(known.values())


def test_the_changelog_says_nothing_twice() -> None:
    entries = re.findall(r"^- .*$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    starts = [entry[:60] for entry in entries]
    assert [start for start in {*starts} if starts.count(start) > 1] == []


def test_no_two_roles_share_a_variable() -> None:
    names = [name for role in role_directories() for name in options(role)]
    assert sorted(names) == sorted(set(names))
