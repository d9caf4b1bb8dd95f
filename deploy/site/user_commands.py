"""user-commands.yml: what users of a site type, and what shall come of it (docs/user-commands.md)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from deploy.errors import DeployError, Finding, error
from deploy.site import own_files
from deploy.site.inventory import Site
from deploy.site.origin import shown
from deploy.site.plain_yaml import NotReadable, parse_mapping, read_text

FILE_NAME = own_files.USER_COMMANDS
STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}
_COUNT = {"type": "integer", "minimum": 1}
_EXPECT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "exit": {"type": "integer", "minimum": 0, "maximum": 255},
        "output": _TEXT,
        "sacct": {"enum": list(STATES)},
        "files": _TEXTS,
    },
}
_SIZE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["group", "cpus", "memory_mb"],
    "properties": {"group": _TEXT, "nodes": _COUNT, "cpus": _COUNT, "memory_mb": _COUNT},
}
_PACKAGE = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9.+-]+$"}
_SERVED_IMAGE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image", "tags", "packages"],
    "properties": {
        "image": {"type": "string", "pattern": r"^[a-z0-9.-]+\.[a-z]+(/[a-z0-9._-]+)+$"},
        "tags": {"type": "array", "items": {"type": "string", "pattern": r"^[\w][\w.-]*$"}, "minItems": 1},
        "packages": {"type": "array", "items": _PACKAGE},
    },
}
_COMMAND = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "guide", "wording", "user", "run", "expect"],
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
        "guide": {
            "type": "object",
            "additionalProperties": False,
            "required": ["file", "heading"],
            "properties": {"file": {"type": "string", "pattern": r"^[a-z-]+\.md$"}, "heading": _TEXT},
        },
        "wording": {"enum": ["verbatim", "described"]},
        "user": _TEXT,
        "files": _TEXTS,
        "images": {"type": "array", "items": {"type": "string", "pattern": r"\.sqsh$"}, "minItems": 1},
        "run": _TEXT,
        "input": _TEXT,
        "alone": {"type": "boolean"},
        "needs": {
            "type": "object",
            "additionalProperties": False,
            "minProperties": 1,
            "properties": {"nodes": _COUNT, "cpus": _COUNT, "memory_mb": _COUNT},
        },
        "password_file": {"type": "string", "pattern": r"^[\w.-]+$"},
        "expect": _EXPECT,
        "in_containers": {
            "type": "object",
            "additionalProperties": False,
            "required": ["replaced"],
            "properties": {"replaced": {"type": "string", "minLength": 10}, "expect": _EXPECT},
        },
        "cannot_run_here": {"type": "string", "minLength": 10},
    },
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["guide", "shared", "commands"],
    "properties": {
        "guide": _TEXT,
        "shared": {"type": "array", "items": {"type": "string", "pattern": "^/"}, "minItems": 1},
        "packages": {"type": "array", "items": _PACKAGE, "minItems": 1},
        "sizes": {"type": "array", "items": _SIZE, "minItems": 1},
        "served_images": {"type": "array", "items": _SERVED_IMAGE, "minItems": 1},
        "commands": {"type": "array", "items": _COMMAND, "minItems": 1},
    },
}

Command = Mapping[str, Any]
"""One command, with the keys of docs/user-commands.md."""


def default_file(site: Site) -> Path:
    """Where a site's commands are, unless the admin says otherwise."""
    return site.directory / FILE_NAME


def read_user_commands(path: Path) -> dict[str, Any]:
    """The content of a file, which keeps to SCHEMA, with unique ids and expressions that compile.

    Raises DeployError ``commands-not-found`` and ``commands-invalid``, which names all that is wrong.
    """
    if not path.is_file():
        raise error(
            "commands-not-found",
            "there is no file of user commands here",
            where=shown(str(path)),
            hint="write one, as docs/user-commands.md explains, or name another with --commands",
        )
    try:
        text = read_text(path)
        content = parse_mapping(text)
    except NotReadable as problem:
        raise DeployError(_finding(problem.place(path), problem.reason)) from None
    findings = [
        _finding(f"{path}:{_line(text, place)}", message) for place, message in sorted(_faults(content))
    ]
    if findings:
        raise DeployError(*findings)
    return content


def check_sizes(content: Mapping[str, Any], site: Site, path: Path) -> None:
    """Raises DeployError ``commands-invalid`` where sizes are those of a group that the site has not."""
    unknown = sorted({size["group"] for size in content.get("sizes", ())} - site.groups.keys())
    if unknown:
        raise DeployError(_finding(str(path), f"sizes: the inventory has no group {', '.join(unknown)}"))


def _finding(place: str, message: str) -> Finding:
    return Finding(
        shown(place), "commands-invalid", message, "docs/user-commands.md explains the keys; fix this one"
    )


def _faults(content: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The place of each fault, as keys and indices from the top, and what is wrong there."""
    faults = [
        (tuple(fault.absolute_path), f"{fault.json_path.removeprefix('$.')}: {fault.message}")
        for fault in Draft202012Validator(SCHEMA).iter_errors(content)
    ]
    yield from faults
    if faults:
        return
    ids = Counter(command["id"] for command in content["commands"])
    for index, command in enumerate(content["commands"]):
        if ids[command["id"]] > 1:
            yield ("commands", index, "id"), f"another command is called {command['id']}, too"
        for place, pattern in _patterns(command):
            try:
                re.compile(pattern, re.MULTILINE)
            except re.error as problem:
                yield ("commands", index, *place), f"not a regular expression: {problem}"


def _patterns(command: Command) -> Iterator[tuple[tuple[str, ...], str]]:
    """The regular expressions of a command, and where each stands in it."""
    for place, of in ((), command), (("in_containers",), command.get("in_containers", {})):
        expect = of.get("expect", {})
        if "output" in expect:
            yield (*place, "expect", "output"), expect["output"]
        for name, pattern in expect.get("files", {}).items():
            yield (*place, "expect", "files", name), pattern


def typed_in_containers(command: Command) -> Command:
    """A command as it is typed on machines that are containers, and what of it is another there."""
    otherwise = command.get("in_containers")
    if not otherwise:
        return command
    return {
        **command,
        "expect": otherwise.get("expect", command["expect"]),
        "here": [otherwise["replaced"]],
    }


def _line(text: str, place: Sequence[Any]) -> int:
    """The line of a place in a YAML text, or of the nearest thing around it."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == step), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line
