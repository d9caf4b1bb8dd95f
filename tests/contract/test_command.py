"""Every verb explains itself, is in docs/cli.md, and pays for no other verb's imports."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from deploy.cli.app import VERBS, app
from deploy.cli.verbs import Verb
from deploy.errors import MEANINGS, ExitCode
from tests.contract.content import ROOT

Command = TyperCommand | TyperGroup
REFERENCE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def _verbs(command: object, path: str) -> Iterator[tuple[str, Command]]:
    loaded = command.load() if isinstance(command, Verb) else command
    assert isinstance(loaded, Command)
    yield path, loaded
    if isinstance(loaded, TyperGroup):
        for name, inner in loaded.commands.items():
            yield from _verbs(inner, f"{path} {name}")


COMMANDS = dict(_verbs(get_command(app), "deploy"))
ACTING = {path: command for path, command in COMMANDS.items() if not isinstance(command, TyperGroup)}


def _options(command: Command) -> set[str]:
    return {name for option in command.params if isinstance(option, TyperOption) for name in option.opts}


def _examples(command: Command) -> list[str]:
    _, _, examples = (command.help or "").partition("Examples:\n")
    return [line.strip() for line in examples.splitlines() if line.strip()]


def test_verbs_are_found() -> None:
    assert {"deploy", "deploy cluster", "deploy init", "deploy lab", "deploy lab up"} <= COMMANDS.keys()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_summaries_fit_on_one_line_of_help(verb: Verb) -> None:
    assert verb.help
    assert re.fullmatch(r"[A-Z].{5,62}\.", verb.help)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_verb_and_option_has_help(path: str) -> None:
    command = COMMANDS[path]
    assert re.match(r"[A-Z].*[.:]\n", f"{command.help}\n"), "the first line is a sentence"
    silent = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
    assert silent == []


@pytest.mark.parametrize("path", ACTING)
def test_every_verb_has_examples(path: str) -> None:
    own = [line for line in _examples(ACTING[path]) if line.startswith(path)]
    assert own, f"the docstring needs a section 'Examples:' with a line that starts with '{path}'"


@pytest.mark.parametrize("path", ACTING)
def test_examples_are_commands_that_exist(path: str) -> None:
    for line in _examples(ACTING[path]):
        words = shlex.split(line, comments=True)
        own = words[: words.index("--")] if "--" in words else words
        named = max((p for p in ACTING if " ".join([*own, ""]).startswith(f"{p} ")), key=len, default=None)
        assert named, f"no such verb: {line}"
        unknown = {word.split("=")[0] for word in own if word.startswith("-")} - _options(ACTING[named])
        assert unknown == set(), line


@pytest.mark.parametrize("path", COMMANDS)
def test_examples_keep_their_lines_in_help(path: str) -> None:
    command = COMMANDS[path]
    shown = command.context_class(command, info_name=path).get_help().splitlines()
    assert {line.strip() for line in shown} >= set(_examples(command))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_verb_is_in_the_reference(path: str) -> None:
    _, found, rest = REFERENCE.partition(f"## {path}\n")
    chapter = rest.partition("\n## ")[0]
    assert found
    command = COMMANDS[path]
    assert [name for name in sorted(_options(command) - {"--help"}) if name not in chapter] == []
    assert [line for line in _examples(command) if line not in chapter] == []


def test_every_exit_code_is_explained() -> None:
    assert MEANINGS.keys() == set(ExitCode)
    assert [code for code in ExitCode if f"| {code.value} | {MEANINGS[code]} |" not in REFERENCE] == []
    shown = get_command(app).make_context("deploy", [], resilient_parsing=True).get_help()
    assert [code for code, meaning in MEANINGS.items() if f"{code:<4} {meaning}" not in shown] == []


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def below(packages: set[str], modules: set[str]) -> set[str]:
    return {name for name in modules if any(f"{name}.".startswith(f"{package}.") for package in packages)}


HEAVY = {"rich", "jinja2", "pydantic", "ansible_runner"}
WORK = {"yaml", "ansible", "deploy.site", "deploy.plan", "deploy.run", "deploy.show", "deploy.lab"}


def test_the_command_alone_imports_no_work() -> None:
    modules = modules_after("import deploy.cli.app")
    assert "deploy.cli.app" in modules
    assert below(HEAVY | WORK, modules) == set()


@pytest.mark.parametrize(
    ("verb", "foreign"),
    [
        ("cluster", HEAVY | {"deploy.lab", "deploy.cli.lab", "deploy.cli.demo", "deploy.cli.report"}),
        ("init", HEAVY | {"deploy.plan", "deploy.run", "deploy.show", "deploy.lab"}),
        ("lab", HEAVY | {"yaml", "ansible", "deploy.site", "deploy.plan", "deploy.run", "deploy.show"}),
    ],
)
def test_a_verb_imports_only_what_it_needs(verb: str, foreign: set[str]) -> None:
    modules = modules_after(
        f"from deploy.cli.app import VERBS\nnext(found for found in VERBS if found.name == {verb!r}).load()"
    )
    assert f"deploy.cli.{verb}" in modules
    assert below(foreign, modules) == set()


def complete(words: str) -> list[str]:
    """What bash offers for the last of these words, with the script that the command itself prints."""
    script = f"""
        source <(deploy --show-completion)
        COMP_WORDS=({words}) COMP_CWORD=$(( $(set -- {words}; echo $#) - 1 ))
        _deploy_completion deploy
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": "/nonexistent"}
    answer = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return answer.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("deploy clu", ["cluster"]),
        ("deploy lab sto", ["stop"]),
        ("deploy cluster --vault", ["--vault-password-file"]),
        ("deploy cluster --output pl", ["plain"]),
    ],
)
def test_bash_completes(words: str, offered: list[str]) -> None:
    assert complete(words) == offered
