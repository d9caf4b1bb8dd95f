"""The rules of the house for roles: functions from a role's directory to what is wrong there."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from deploy.plan.requirements import SYSTEMS
from tests.contract.content import Task, options, read_yaml, strings, tasks

Rule = Callable[[Path], Iterator[str]]

_OTHER_HOSTS = re.compile(r"\b(groups|hostvars)\s*[\[.]|\b(groups|hostvars)\s*\|")
_ANSIBLE_VARIABLE = re.compile(r"(?<![\w.])ansible_\w+")
_CONNECTION = frozenset(
    {"ansible_connection", "ansible_become", "ansible_python_interpreter", "ansible_playbook_python"}
)
_ALLOWED_ANSIBLE = _CONNECTION | {
    "ansible_facts",
    "ansible_check_mode",
    "ansible_managed",
    *("ansible_play_hosts", "ansible_play_hosts_all"),  # who is at work, and nothing of them
    "ansible_diff_mode",
}
_CONDITIONS = ("when", "that", "until", "failed_when", "changed_when")
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_KINDS: Mapping[str, type] = {"int": int, "bool": bool, "str": str, "list": list, "dict": dict}
_INSTALL = frozenset(
    f"ansible.builtin.{name}" for name in ("apt", "apt_repository", "deb822_repository", "dnf", "package")
)
_NO_ACTION = frozenset({"Have", "Let", "Say", "See", "Tell"})
_RELEASES = frozenset(
    f"{system}-{version.partition('.')[0]}" for system, versions in SYSTEMS.items() for version in versions
)
_OF_SYSTEM = re.compile(rf"ansible_facts\W+(?:distribution|os_family|lsb)|['\"](?:{'|'.join(SYSTEMS)})\b")
_THIS_RELEASE = "\"{{ ansible_facts['distribution'] }}-{{ ansible_facts['distribution_major_version'] }}\""
_SHOW_DIFFERENCES = frozenset(
    f"ansible.builtin.{name}" for name in ("copy", "template", "lineinfile", "blockinfile")
)
_WRITE_ONCE = tuple(f"ansible.builtin.{name}" for name in ("copy", "template", "get_url"))


def defaults_equal_specification(role: Path) -> Iterator[str]:
    """An option has the same default in both files; a required one has none."""
    defaults = read_yaml(role / "defaults" / "main.yml") or {}
    specified = options(role)
    for name in sorted(set(defaults) - set(specified)):
        yield f"{name} has a default but no specification"
    for name, option in specified.items():
        if option.get("required") and "default" in option:
            yield f"{name} is required and has a default"
        if ("default" in option) != (name in defaults):
            yield f"{name} has a default in one of defaults/main.yml and argument_specs.yml only"
        elif name in defaults and defaults[name] != option["default"]:
            yield f"{name} has different defaults: {defaults[name]!r} and {option['default']!r}"


def defaults_have_their_type(role: Path) -> Iterator[str]:
    """A default is a valid value of its option."""
    for name, option in options(role).items():
        if "default" not in option:
            continue
        errors = (
            ArgumentSpecValidator({name: dict(option)}).validate({name: option["default"]}).error_messages
        )
        yield from errors
        kind = _KINDS.get(option.get("type", "str"), object)
        if not isinstance(option["default"], kind) and option["default"] is not None:
            yield f"{name}: the default {option['default']!r} is not of type {option.get('type', 'str')}"


def options_are_described(role: Path) -> Iterator[str]:
    """Every option, nested ones too, says its type and what it means."""
    specs = read_yaml(role / "meta" / "argument_specs.yml")
    if specs is None:
        yield "there is no meta/argument_specs.yml"
        return
    if not specs["argument_specs"]["main"].get("short_description"):
        yield "argument_specs has no short_description"
    yield from _undescribed("", options(role))


def _undescribed(place: str, listed: Mapping[str, Any]) -> Iterator[str]:
    for name, option in listed.items():
        for key in ("type", "description"):
            if not option.get(key):
                yield f"{place}{name} has no {key}"
        if option.get("type") == "list" and not option.get("elements"):
            yield f"{place}{name} has no elements"
        yield from _undescribed(f"{place}{name}.", option.get("options") or {})


def variables_carry_the_role_name(role: Path) -> Iterator[str]:
    """Public variables start with the role's name, private ones with two underscores and the role's name."""
    public, private = f"{role.name}_", f"__{role.name}_"
    for name in options(role):
        if not name.startswith(public):
            yield f"the variable {name} does not start with {public}"
    found = {name for path in role.glob("vars/*.yml") for name in read_yaml(path) or {}}
    for task in tasks(role):
        facts = task.words.get("ansible.builtin.set_fact") or {}
        found |= {name for name in facts if name != "cacheable"} | set(task.words.get("vars") or {})
        found |= {task.words["register"]} if "register" in task.words else set()
    for name in sorted(found):
        if not name.startswith(private) and name not in _CONNECTION:
            yield f"the variable {name} does not start with {private}"


def defines_what_it_names(role: Path) -> Iterator[str]:
    """A private variable that something reads comes from vars, a result, a fact or a loop of the role."""
    private = re.compile(rf"\b__{role.name}_\w+")
    known = {name for path in role.glob("vars/*.yml") for name in read_yaml(path) or {}}
    for task in tasks(role):
        known |= {task.words.get("register"), *(task.words.get("loop_control") or {}).values()}
        known |= {*(task.words.get("ansible.builtin.set_fact") or {}), *(task.words.get("vars") or {})}
    for path in _files(role, "tasks", "handlers", "templates", "vars", "defaults"):
        text = path.read_text(encoding="utf-8")
        known_here = known | set(re.findall(r"\{%-? set (\w+)", text))
        for name in sorted(set(private.findall(text)) - known_here):
            yield f"{path}: {name} comes from nowhere"


def has_its_documents(role: Path) -> Iterator[str]:
    """A README that says something, and meta/main.yml."""
    readme = role / "README.md"
    if not readme.exists() or not readme.read_text(encoding="utf-8").startswith(f"# {role.name}\n"):
        yield f"there is no README.md that starts with '# {role.name}'"
    if not ((read_yaml(role / "meta" / "main.yml") or {}).get("galaxy_info") or {}).get("description"):
        yield "meta/main.yml has no galaxy_info.description"


def reads_nothing_of_other_hosts(role: Path) -> Iterator[str]:
    """Neither groups nor hostvars, and no injected facts."""
    for path in _files(role, "tasks", "handlers", "templates", "vars", "defaults"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _OTHER_HOSTS.search(line):
                yield f"{path}:{number}: reads other hosts' variables; let deploy compute a role variable"
            injected = set(_ANSIBLE_VARIABLE.findall(line)) - _ALLOWED_ANSIBLE
            if injected:
                yield f"{path}:{number}: {', '.join(sorted(injected))}: use ansible_facts"


def explains_its_exceptions(role: Path) -> Iterator[str]:
    """Errors are never ignored; a result that is overruled has a comment above that says why."""
    for path in _files(role, "tasks", "handlers"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if re.match(r"\s*-?\s*ignore_(errors|unreachable):", line):
                yield f"{path}:{number}: errors are not ignored here"
            if re.match(r"\s*(failed_when|changed_when):\s*false\b", line) and not (
                number > 1 and lines[number - 2].lstrip().startswith("#")
            ):
                yield f"{path}:{number}: no comment in the line above says why"


def tags_its_tasks(role: Path) -> Iterator[str]:
    """Every task has a tag: install, configure or service; where it imports others, it or each of them."""
    untagged = [task for task in tasks(role) if task.file.parent.name == "tasks" and not task.tags]
    imported = {task.words.get("ansible.builtin.import_tasks", "") for task in untagged}
    for task in untagged:
        is_import = "ansible.builtin.import_tasks" in task.words
        if task.file.name in {"main.yml", *imported} and not is_import:
            yield f"{task.place}: has no tag"


def names_action_and_object(role: Path) -> Iterator[str]:
    """The name of a task, as ``deploy plan`` shows it, says what is done to what."""
    for task in tasks(role):
        first = str(task.words.get("name", "")).partition(" ")[0]
        if first in _NO_ACTION:
            yield f"{task.place}: {first} is no action: Configure, Create, Install, Check, Explain ..."


def installs_packages_in_one_way(role: Path) -> Iterator[str]:
    """Packages come by the action plugin ``packages``, which knows what is there and has no daemon start."""
    for task in tasks(role):
        if task.module in _INSTALL:
            yield f"{task.place}: {task.module} instead of packages"


def tells_releases_apart_in_one_place(role: Path) -> Iterator[str]:
    """What differs between releases is ``__<role>_by_release`` in vars/main.yml, which has all of them."""
    place = role / "vars" / "main.yml"
    this = f"__{role.name}_release: {_THIS_RELEASE}"
    for path in _files(role, "tasks", "handlers", "templates", "vars", "defaults"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _OF_SYSTEM.search(line) and not (path == place and line == this):
                yield f"{path}:{number}: tells systems apart outside of __{role.name}_by_release"
    table = (read_yaml(place) or {}).get(f"__{role.name}_by_release")
    if table is not None and set(table) != _RELEASES:
        differing = ", ".join(sorted(set(table) ^ _RELEASES))
        yield f"{place}: __{role.name}_by_release and deploy/plan/requirements.py differ: {differing}"


def has_no_key_twice(role: Path) -> Iterator[str]:
    """A run refuses a file with a key that is there twice, be it by a merge (``<<``)."""
    for path in _files(role, "tasks", "handlers", "vars", "defaults", "meta"):
        if path.suffix == ".yml":
            for node in _mappings(yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)):
                yaml.SafeLoader("").flatten_mapping(node)
                keys = [key.value for key, _ in node.value]
                for name in sorted({name for name in keys if keys.count(name) > 1}):
                    yield f"{path}:{node.start_mark.line + 1}: {name} is there twice"


def _mappings(node: yaml.Node | None) -> Iterator[yaml.MappingNode]:
    if isinstance(node, yaml.MappingNode):
        yield node
        parts = [part for pair in node.value for part in pair]
    else:
        parts = node.value if isinstance(node, yaml.SequenceNode) else []
    for part in parts:
        yield from _mappings(part)


# A path and what it says, as root_files has them.
_ROOT_FILE = re.compile(
    r"""^\s+(/[\w./-]+): (?:"|>-\n\s+)\{\{ lookup\('ansible.builtin.template', '([^']+)'\)""", re.MULTILINE
)


def mirrors_targets_in_template_paths(role: Path) -> Iterator[str]:
    """The template of /etc/x/y lies at templates/etc/x/y.j2."""
    known = {
        name: value for path in role.glob("vars/*.yml") for name, value in (read_yaml(path) or {}).items()
    }
    for path in _files(role, "tasks", "vars"):
        if path.suffix == ".yml":
            for target, source in _ROOT_FILE.findall(path.read_text(encoding="utf-8")):
                if target.removeprefix("/") != source.removesuffix(".j2"):
                    yield f"{path}: {source} does not mirror {target}"
    for task in tasks(role):
        words = task.words.get("ansible.builtin.template")
        if not words:
            continue
        variable = re.fullmatch(r"\{\{ (\w+) \}\}", words["dest"])
        target = str(known.get(variable[1], words["dest"])) if variable else words["dest"]
        if target.removeprefix("/") != words["src"].removesuffix(".j2"):
            yield f"{task.place}: {words['src']} does not mirror {target}"


def keeps_secrets_quiet(role: Path) -> Iterator[str]:
    """A task that touches a secret, itself or through a template, has no_log and shows no difference."""
    secrets = [name for name, option in options(role).items() if _is_secret(option)]
    if not secrets:
        return
    direct = _any_of(secrets)
    private = [
        name
        for path in role.glob("vars/*.yml")
        for name, value in (read_yaml(path) or {}).items()
        if any(direct.search(text) for text in strings(value))
    ]
    word = _any_of([*secrets, *private])
    templates = {
        str(path.relative_to(role / "templates"))
        for path in _files(role, "templates")
        if word.search(path.read_text(encoding="utf-8"))
    }
    for task in tasks(role):
        if not _touches(task, direct, word, templates):
            continue
        if not task.no_log:
            yield f"{task.place}: touches a secret without no_log"
        if task.words.get("diff") is not False and task.module in _SHOW_DIFFERENCES:
            yield f"{task.place}: writes a secret without diff: false"


def keeps_owner_and_mode_of_what_it_leaves(role: Path) -> Iterator[str]:
    """What is written only where it is missing keeps its owner and mode by a task of its own.

    Ansible ends such a task when the file is there: a changed mode would become the recorded one.
    What ``creates`` names may be half of an archive that was cut off.
    """
    kept = {str((task.words.get("ansible.builtin.file") or {}).get("path")) for task in tasks(role)}
    for task in tasks(role):
        words: Mapping[str, Any] = next((task.words[name] for name in _WRITE_ONCE if name in task.words), {})
        if words.get("force") is False and str(words["dest"]) not in kept:
            yield f"{task.place}: no task of ansible.builtin.file keeps the mode of {words['dest']}"
        if "creates" in (task.words.get("ansible.builtin.unarchive") or {}):
            yield f"{task.place}: creates takes half an archive for a whole one"


def _touches(task: Task, direct: re.Pattern[str], word: re.Pattern[str], templates: set[str]) -> bool:
    texts = list(strings(task.words))
    if any(name in text for text in texts for name in templates):
        return True
    # A condition that fails shows its own text, so the private variable in it keeps the secret.
    conditions = [text for key in _CONDITIONS for text in strings(_under(task.words, key))]
    if any(direct.search(text) for text in conditions):
        return True
    return any(word.search(expression) for text in texts for expression in _EXPRESSION.findall(text))


def _under(value: Any, key: str) -> list[Any]:  # noqa: ANN401
    if isinstance(value, Mapping):
        return [inner if name == key else _under(inner, key) for name, inner in value.items()]
    return []


def _any_of(names: list[str]) -> re.Pattern[str]:
    return re.compile(rf"\b({'|'.join(names)})\b")


def _is_secret(option: Mapping[str, Any]) -> bool:
    nested = option.get("options") or {}
    return option.get("no_log") is True or any(_is_secret(inner) for inner in nested.values())


def _files(role: Path, *directories: str) -> list[Path]:
    return sorted(path for name in directories for path in (role / name).rglob("*") if path.is_file())


RULES: tuple[Rule, ...] = (
    defaults_equal_specification,
    defaults_have_their_type,
    options_are_described,
    variables_carry_the_role_name,
    defines_what_it_names,
    has_its_documents,
    reads_nothing_of_other_hosts,
    explains_its_exceptions,
    tags_its_tasks,
    names_action_and_object,
    installs_packages_in_one_way,
    tells_releases_apart_in_one_place,
    has_no_key_twice,
    mirrors_targets_in_template_paths,
    keeps_secrets_quiet,
    keeps_owner_and_mode_of_what_it_leaves,
)
