"""docs/cli.md: every verb with its options and examples, as the command itself knows them."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from deploy.cli.app import app
from deploy.cli.verbs import Verb
from deploy.errors import MEANINGS
from deploy.run.patches import WITHOUT
from deploy.run.settings import PLAIN
from deploy.site.ansible_settings import KEPT

Command = TyperCommand | TyperGroup
Context = Any  # Typer's own class is private

_INTRODUCTION = """\
# The command

What `--help` says of every verb, on one page. Made by `docs/generate.py` from the command itself.
"""
_COMPLETION = """\
## Completion

```console
deploy --install-completion     # for bash, zsh or fish: whichever shell it is typed in
deploy --show-completion        # prints what that would install
```

A new shell then completes verbs, options and their values. The shell must find `deploy` on its `PATH`.
"""
_ENVIRONMENT = {
    "NO_COLOR": "set to anything: no colours, as with `--no-color`",
    PLAIN: "`1`: as with `--plain-ansible`",
    WITHOUT: "what deploy changes in Ansible and is to leave out, as [the benchmarks](benchmarks.md) name it",
    **KEPT,
    "ANSIBLE_...": "others are not read, nor is your `ansible.cfg`: a run is the same from every shell",
}
_FILES_HEAD = """\
## Environment and files

What the inventory and options say goes before the environment.

| name | meaning |
|---|---|
"""
_FILES = {
    "secrets.yml": "beside the inventory: the generated secrets, 0600 or encrypted",
    "hardware.yml": "beside the inventory: what each node had when it was first seen",
    ".deploy/": "beside the inventory: the journal of runs, and the lock that keeps two runs apart",
}


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The reference of the command."""
    command = get_command(app)
    assert isinstance(command, TyperGroup)  # noqa: S101 - for mypy
    context = command.make_context("deploy", [], resilient_parsing=True)
    chapters = [_INTRODUCTION, *_chapters(command, context), _exit_codes(), _COMPLETION, _files()]
    yield root / "docs" / "cli.md", "\n".join(chapters)


def verbs(group: TyperGroup) -> Iterator[tuple[str, Command]]:
    """The verbs of a group, loaded."""
    for name, command in group.commands.items():
        loaded = command.load() if isinstance(command, Verb) else command
        assert isinstance(loaded, Command)  # noqa: S101 - for mypy
        yield name, loaded


def _chapters(command: Command, context: Context) -> Iterator[str]:
    yield _chapter(command, context)
    if isinstance(command, TyperGroup):
        for name, inner in verbs(command):
            yield from _chapters(inner, inner.context_class(inner, info_name=name, parent=context))


def _chapter(command: Command, context: Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    text, _, examples = inspect.cleandoc(command.help or "").replace("\b\n", "").partition("Examples:\n")
    parts = [f"## {context.command_path}\n", f"```\n{usage}\n```\n", f"{text.strip()}\n"]
    if isinstance(command, TyperGroup):
        parts.append(_list("Verb", _summaries(command, context)))
    parts.append(_list("Argument", _records(command, context, TyperArgument)))
    parts.append(_list("Option", _records(command, context, TyperOption)))
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    if lines:
        parts.append("```console\n" + "".join(f"{line}\n" for line in lines) + "```\n")
    return "\n".join(part for part in parts if part)


def _summaries(group: TyperGroup, context: Context) -> list[tuple[str, str]]:
    return [
        (f"[{name}](#{'-'.join([*context.command_path.split(), name])})", verb.get_short_help_str(limit=120))
        for name, verb in group.commands.items()
    ]


def _records(command: Command, context: Context, kind: type) -> list[tuple[str, str]]:
    """Name and meaning of each argument or option but --help, as --help shows them."""
    records = [
        parameter.get_help_record(context) for parameter in command.params if isinstance(parameter, kind)
    ]
    return [(f"`{record[0]}`", record[1]) for record in records if record]


def _list(head: str, rows: list[tuple[str, str]]) -> str:
    if not rows:
        return ""
    lines = [f"| {head} | Meaning |", "|---|---|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _files() -> str:
    rows = (f"| `{name}` | {meaning} |\n" for name, meaning in {**_ENVIRONMENT, **_FILES}.items())
    return f"{_FILES_HEAD}{''.join(rows)}"


def _exit_codes() -> str:
    rows = "".join(f"| {code.value} | {meaning} |\n" for code, meaning in MEANINGS.items())
    return f"## Exit codes\n\n| code | meaning |\n|---|---|\n{rows}"
