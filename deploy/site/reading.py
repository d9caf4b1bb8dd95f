"""Has Ansible read an inventory, and turns what it complains of into findings."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deploy.content import ansible_config
from deploy.errors import DeployError, Finding, Severity
from deploy.place import private_place
from deploy.site import own_files
from deploy.site.listing_process import Context, ListingProcess, listing_environment
from deploy.site.origin import SUFFIXES, inventory_files, lines, shown
from deploy.site.plain_listing import plain_listing

_YAML_SUFFIXES = frozenset({".yml", ".yaml", ".json"})
_COMPLAINT = re.compile(r"^\[WARNING\]: (?P<text>.*(?:\n(?!\[).*)*)", re.MULTILINE)
_UNREADABLE = re.compile(r"Failed to parse inventory with '(?P<plugin>\w+)' plugin: (?P<reason>.*)")
_ORIGIN = re.compile(r"^Origin: (?P<place>/.*?:\d+)(?::\d+)?$", re.MULTILINE)
_SECRET = re.compile(r"(\b\w*(?:pass|_key|secret|token)\w*[\"']?\s*[=:]\s*)\S.*", re.IGNORECASE)
_TYPE = re.compile(r"\"?<class '[\w.]*?(?:_AnsibleTagged)?(\w+)'>\"?")
_FILE = re.compile(r"^Could not process '(?P<place>.*?)': failed to combine variables.*")
_QUOTED = re.compile(r"(got: |definition '|undefined group ')(?P<text>.+?)'?(:|\.?$)")
_SOURCE = re.compile(r"Completely failed to parse inventory source (?P<path>/.*)")
_HOST = re.compile(
    r"^\s*\S+\s.*\bansible_host\s*=|^\s+ansible_host:|^\[slurm-(master|login|node)(:\w+)?\]\s*$"
)
"""A line that inventories alone have."""
_NO_BRACKET = "not enough values to unpack"
_RANGE_ERRORS = ("host range", "range() arg", "invalid literal for int()")
_BAD_RANGE = re.compile(r"^[^\[#;\s]\S*\[(?!(\d+|[A-Za-z]):(\d+|[A-Za-z])(:[1-9]\d*)?\])")
_ZEROS = re.compile(r"^[^\[#;\s]\S*\[0\d*:")
_LOOP = re.compile(r"as child to '(?P<group>[^']+)' creates a recursive dependency loop")
_LETTERS = re.compile(r"^[^\[#;\s]\S*\[[A-Za-z]:[A-Za-z]")
_MARKS = (
    (codecs.BOM_UTF8, "it begins with a byte order mark, which is no part of a text"),
    (codecs.BOM_UTF16_LE, "it is not text in UTF-8 but in UTF-16"),
    (codecs.BOM_UTF16_BE, "it is not text in UTF-8 but in UTF-16"),
)
_UNRESOLVED = "what templates come to is left to the run, so every phase runs"
_BY_ANSIBLE_INVENTORY = (
    f"ansible-inventory reads this one, nobody knows in which line a variable stands, and {_UNRESOLVED}"
)
_EXPECTED = (
    "Invalid characters were found in group names",
    "Found both group and host with same name",
    "Deprecation warnings can be disabled",
)
"""What Ansible says of the hyphens in Slurm's group names, and of what is a finding of its own."""


@dataclass(frozen=True)
class Problem:
    """Why a template could never be resolved: what Ansible says, and where, as an absolute ``file:line``."""

    text: str
    where: str
    undefined: bool
    """Whether it mentions a variable that is not there."""


@dataclass(frozen=True, eq=False)
class Resolution:
    """What a value with templates comes to on a host."""

    is_known: bool
    """Else it has problems, or depends on what only the host knows."""
    value: Any
    problems: tuple[Problem, ...]
    looks_up: bool
    """Whether it depends on what is not in the inventory: files, the environment, commands, vaults."""
    vaulted: bool
    """Whether something encrypted went into it."""

    @property
    def is_unforeseen(self) -> bool:
        """Whether only a host can look up what it looks up."""
        return self.looks_up and not self.is_known and not self.problems


@dataclass(frozen=True)
class Reading:
    """An inventory as Ansible reads it.

    ``origins`` says ``file:line`` by host and variable, ``connections`` how each host is reached,
    ``resolutions`` what the variables with templates come to that roles read.
    """

    hosts: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, list[str]]
    origins: Mapping[str, Mapping[str, str]]
    connections: Mapping[str, Mapping[str, Any]]
    resolutions: Mapping[str, Mapping[str, Resolution]]
    warnings: tuple[Finding, ...]
    leaves_templates: bool
    """Whether nobody could say what templates come to: the installed Ansible is not as it is known here."""


def read_with_ansible(
    inventory: Path,
    limit: str | None,
    vault_password_file: Path | None,
    context: Context,
    under_way: ListingProcess | None = None,
) -> Reading:
    """What Ansible makes of an inventory; with a ``context`` templates are resolved.

    ``under_way`` is asked where it waits. Raises DeployError ``inventory-invalid``.
    """
    arguments = [str(inventory), str(ansible_config().parent), limit or "", str(vault_password_file or "")]
    answer, stderr, notices = _asked(arguments, context, under_way)
    if "error" in answer:
        raise DeployError(_refused(inventory, answer["error"], answer["where"], stderr))
    if passed_over := tuple(_passed_over(inventory)):
        raise DeployError(*passed_over)
    return Reading(
        answer["hosts"],
        answer["groups"],
        answer["origins"],
        answer["connections"],
        _resolutions(answer),
        (*_doubts(inventory, stderr), *notices),
        leaves_templates=bool(notices),
    )


def _asked(
    arguments: list[str], context: Context, under_way: ListingProcess | None
) -> tuple[dict[str, Any], str, list[Finding]]:
    """What listing.py answers, or ansible-inventory where it cannot; Ansible's warnings, and ours."""
    text, complaints = _answer(arguments, context, under_way)
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        answer = {"error": (complaints.strip().splitlines() or ["no answer"])[-1], "fits": False}
    if not answer.get("fits", True):
        notice = _misfit("deploy's own reading of inventories", answer["error"], _BY_ANSIBLE_INVENTORY)
        with private_place() as place:
            environment = listing_environment() | {"ANSIBLE_LOCAL_TEMP": str(place)}
            answer, stderr = plain_listing(environment, *arguments)
        return answer, stderr, [notice]
    if why := answer.get("unresolved"):
        return answer, complaints, [_misfit("the resolution of templates", why, _UNRESOLVED)]
    return answer, complaints, []


def _misfit(what: str, why: str, instead: str) -> Finding:
    return Finding(
        f"ansible-core {version('ansible-core')}",
        "ansible-does-not-fit",
        f"{what} does not fit it ({_discreet(why)}): {instead}",
        "nothing is wrong with the site; an ansible-core that docs/support.md names is read faster",
        Severity.WARNING,
    )


def _resolutions(answer: Mapping[str, Any]) -> dict[str, dict[str, Resolution]]:
    """By host and variable; hosts that share one have the same object."""
    known = [
        Resolution(
            is_known="value" in entry,
            value=entry.get("value"),
            problems=tuple(Problem(**problem) for problem in entry.get("problems", ())),
            looks_up=entry["looks_up"],
            vaulted=entry["vaulted"],
        )
        for entry in answer["resolutions"]
    ]
    return {
        host: {name: known[number] for name, number in names.items()}
        for host, names in answer["resolved"].items()
    }


def _answer(arguments: list[str], context: Context, under_way: ListingProcess | None) -> tuple[str, str]:
    """What listing.py prints, and what Ansible says beside."""
    if under_way and under_way.is_waiting:
        return under_way.answer(arguments, context)
    with ListingProcess() as program:
        return program.answer(arguments, context)


def _refused(inventory: Path, error: str, place: str, stderr: str) -> Finding:
    """What is wrong with an inventory; of a directory, with the one of its files that Ansible names."""
    if not inventory.is_dir() or not (source := _SOURCE.search(error)):
        return _unreadable(inventory, error, place, stderr)
    finding = _unreadable(Path(source["path"]), error, place, stderr)
    elsewhere = f"what is no inventory belongs into {own_files.FILES}/, which is not read as one"
    return replace(finding, hint=f"{finding.hint}; {elsewhere}")


def _unreadable(inventory: Path, error: str, place: str, stderr: str) -> Finding:
    """The one cause: each of Ansible's readers complains of a file, and only one was meant for it."""
    meant = "yaml" if inventory.suffix in _YAML_SUFFIXES else "ini"
    for complaint in _COMPLAINT.finditer(stderr):
        if (found := _UNREADABLE.search(complaint["text"])) and found["plugin"] == meant:
            error = found["reason"]
            place = origin["place"] if (origin := _ORIGIN.search(stderr)) else place
    for path in [Path(place.partition(":")[0])] if place else inventory_files(inventory):
        if fault := _fault_of_encoding(path):
            return Finding(
                shown(str(path)),
                "inventory-invalid",
                f"Ansible cannot read this: {fault}",
                "save it as UTF-8 without a byte order mark",
            )
    if any(words in error for words in _RANGE_ERRORS):
        patterns = (_BAD_RANGE, _LETTERS, _ZEROS)
        place = next(filter(None, (_line_of(inventory, pattern) for pattern in patterns)), place)
    elif loop := _LOOP.search(error):
        place = _line_of(inventory, re.compile(rf"^\[{re.escape(loop['group'])}:children\]"))
    if _NO_BRACKET in error:
        error, place = "a section has no closing bracket", _line_of(inventory, re.compile(r"^\[[^\]]*$"))
    elif file := _FILE.match(error):
        error, place = "it is not a mapping of names to values", file["place"]
    elif not place and (quoted := _QUOTED.search(error)):
        place = _line_of(inventory, re.compile(re.escape(quoted["text"])))
    return Finding(
        shown(place or str(inventory)),
        "inventory-invalid",
        f"Ansible cannot read this: {_discreet(_TYPE.sub(_plain_type, error))}",
        f"fix it until this answers: ansible-inventory -i {shown(str(inventory))} --list",
    )


def _line_of(inventory: Path, pattern: re.Pattern[str]) -> str:
    """The first line of the inventory that has something; Ansible names the file only."""
    for path in inventory_files(inventory):
        for number, line in enumerate(lines(path), start=1):
            if pattern.search(line):
                return f"{path}:{number}"
    return ""


def _fault_of_encoding(path: Path) -> str:
    """Why a file is no text as Ansible reads it; empty where it is."""
    try:
        content = path.read_bytes()
        content.decode()
    except OSError:
        return ""
    except UnicodeDecodeError:
        return next((said for mark, said in _MARKS if content.startswith(mark)), "it is not text in UTF-8")
    if b"\0" in content:
        return "it is not text in UTF-8, or has a character that is nothing"
    return _MARKS[0][1] if content.startswith(codecs.BOM_UTF8) else ""


def _plain_type(match: re.Match[str]) -> str:
    return f"a {match[1].lower()}"


def _passed_over(inventory: Path) -> Iterator[Finding]:
    """Inventories in a directory of them that have the place of what is none: their hosts would vanish."""
    for name in own_files.DIRECTORIES if inventory.is_dir() else ():
        place = inventory / name
        below = sorted(place.rglob("*")) if name == own_files.FILES else ()
        for path in (place, *(path for path in below if path.suffix in SUFFIXES)):
            target = inventory / ("more-hosts" if path == place else path.name)
            if path.is_file() and (path == place or any(map(_HOST.search, lines(path)))):
                yield Finding(
                    shown(str(path)),
                    "inventory-passed-over",
                    f"{name}/ of an inventory is no part of it, so nothing in this file would count",
                    f"move it, as by: mv {shown(str(path))} {shown(str(target))}",
                )


def _doubts(inventory: Path, stderr: str) -> Iterator[Finding]:
    """What Ansible read with a warning: it goes on, with less than was written."""
    for complaint in _COMPLAINT.finditer(stderr):
        text = _discreet(" ".join(complaint["text"].split("\n\n")[0].split()))
        if not text.startswith(_EXPECTED):
            yield Finding(
                shown(str(inventory)),
                "inventory-doubtful",
                f"Ansible says: {text}",
                "fix what it names; it went on without that",
                Severity.WARNING,
            )


def _discreet(text: str) -> str:
    """A complaint without the values of what sounds like a secret: Ansible quotes lines as they are."""
    return _SECRET.sub(r"\1(not shown)", text)[:600]
