"""One value compared with its specification: what is wrong with it, as (message, hint)."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from deploy.site.rules import Form, rule_of
from deploy.site.schema import is_secret, options
from deploy.site.wording import Spec, plain_meaning

Fault = tuple[str, str]

_KINDS: Mapping[str, tuple[type, ...]] = {
    "list": (list,),
    "dict": (dict,),
    "bool": (bool,),
    "int": (int, float, str),
    "float": (int, float, str),
    "str": (str, int, float),
    "path": (str,),
}
"""What Python makes of a value of each type. Ansible would guess more: it splits a text where a list is
expected, but the roles that read it do not."""

_WORDS: Mapping[str, str] = {
    "list": "a list",
    "dict": "a mapping",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
    "str": "text",
    "path": "text",
}
_READ_EARLY = re.compile(
    r"slurmd_(hardware|features|gpu_shards|gpu_mps|weight|node_parameters)\b.*|mig_layout\b.*|hosts_file_address"
    r"|slurmctld_private_data|slurm_reservations_planned(\[\]|\[\]\.(name|groups|nodes)(\[\])?)?"
    r"|job_programs_(gpu_files|gpu_directory|clean_up|check_health)|bootstrap_(mirror|archive)|slurmctld_plugstack|pyxis_(runtime_directory|container_scope|options)"
    r"|slurmctld_partitions(\[\]|\[\]\.(name|groups|nodes)(\[\])?)?"
)
"""What deploy itself reads to compute the variables of other hosts, before Ansible resolves templates."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_UNSEEN = re.compile("[\0\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
"""Nothing, marks of a text's direction and of its beginning: copied with a value, and no part of it."""
_LINES_OF_A_FILE = re.compile(
    r"\w+_(parameters|sysctls)|enroot_settings|nvidia_driver_module_options|pyxis_options"
    r"|slurmctld_partitions\[\]\.parameters"
)
"""Mappings of which each key becomes a line of a file, whose program would read two as two settings."""
_INDEX = re.compile(r"\[\d+\]")


def faults(name: str, value: object) -> list[Fault]:
    """Everything that is wrong with the value of a variable that a role knows."""
    spec = options()[name].spec
    if value is None and spec.get("default") is None:
        return []  # As an optional variable is left that has no default: not given.
    return list(_faults(name, spec, value))


def opaque(value: object) -> bool:
    """Whether a value, or a part of it, is known only on the hosts: a template, or encrypted."""
    text = json.dumps(value, default=str)
    return "{{" in text or "{%" in text or "__ansible_vault" in text


def suggestion(name: str, known: Mapping[str, object]) -> str:
    """The known name that was probably meant."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else "known names: see docs/variables.md"


def _faults(place: str, spec: Spec, value: object) -> Iterator[Fault]:
    """The faults of a value and of all that is in it; ``place`` is its path with indexes."""
    path = _INDEX.sub("[]", place)
    kind = str(spec.get("type", "str"))
    if value is None:
        yield f"{place} has no value", "write a value, or remove the line to have the default"
    elif _is_encrypted(value) and not is_secret(spec):
        yield (
            f"{place} is encrypted by itself and no secret: deploy must know it before Ansible decrypts it",
            "write the value itself, or encrypt the whole file that it is in: ansible-vault encrypt FILE",
        )
    elif _is_encrypted(value) or _is_template(value):
        yield from _template_faults(place, path)
    elif kind in _KINDS and not _is_kind(kind, value):
        yield f"{place} is {_shown(value)}, not {_WORDS[kind]}", _kind_hint(kind, value, spec)
    elif isinstance(value, list):
        element = {**spec, "type": spec.get("elements", "raw")}
        for index, item in enumerate(value):
            yield from _faults(f"{place}[{index}]", element, item)
    elif isinstance(value, dict):
        yield from _key_faults(place, spec, value)
    elif unseen := _UNSEEN.search(str(value)):
        yield f"{place} has the invisible character {unseen[0]!a}", "type the value anew"
    elif expected := _unmet(path, spec, value):
        rule = rule_of(path, spec)
        is_hidden = is_secret(spec) or (isinstance(rule, Form) and not rule.shown)
        shown = "" if is_hidden else f"{value!r:.80}, "
        yield f"{place} is {shown}not {expected}", _value_hint(spec, value, expected)


def _key_faults(place: str, spec: Spec, value: Mapping[Any, object]) -> Iterator[Fault]:
    if _LINES_OF_A_FILE.fullmatch(_INDEX.sub("[]", place)):
        yield from _line_faults(place, value)
    known: Mapping[str, Spec] = spec.get("options") or {}
    for key, inner in value.items() if known else ():
        if key in known:
            yield from _faults(f"{place}.{key}", known[key], inner)
        else:
            yield f"{place} has no key {key!r}", suggestion(str(key), known)
    for key, inner_spec in known.items():
        if inner_spec.get("required") and key not in value:
            yield f"{place} lacks the key {key!r}", _meaning(inner_spec)


def _line_faults(place: str, value: Mapping[Any, object]) -> Iterator[Fault]:
    """What would be more than a line, or no name of a setting."""
    for key, inner in value.items():
        if not re.fullmatch(r"[^\s=#]+", str(key)):
            yield (
                f"{place} has the key {key!r}, which is no name of a setting",
                "write one name, without spaces",
            )
        for text in inner if isinstance(inner, list) else [inner]:
            if not isinstance(text, str) or _is_template(text):
                continue
            if re.search(r"[\r\n\0]", text.rstrip()):
                yield f"{place}.{key} has more than one line", "write one line, or one setting for each"
            elif place.startswith("slurm") and re.search(r"(?<!\\)#", text):
                yield (
                    f"{place}.{key} has a #, and what follows it would be a comment",
                    "write \\# for the character",
                )


def _is_kind(kind: str, value: object) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))


def _unmet(path: str, spec: Spec, value: object) -> str:
    """What a text or a number should be and is not."""
    choices = spec.get("choices")
    if choices and str(value) not in map(str, choices):
        return f"one of {', '.join(map(str, choices))}"
    if spec.get("type") == "float" and not _NUMBER.fullmatch(str(value)):
        return "a number"
    rule = rule_of(path, spec)
    return rule.expected if rule and not rule.fits(value) else ""


def _template_faults(place: str, path: str) -> Iterator[Fault]:
    if _READ_EARLY.fullmatch(path):
        yield (
            f"{place} is a template, but deploy must know it before Ansible resolves it",
            "write the value itself",
        )


def _is_encrypted(value: object) -> bool:
    return isinstance(value, dict) and "__ansible_vault" in value


def _is_template(value: object) -> bool:
    return isinstance(value, str) and ("{{" in value or "{%" in value)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value}"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "text"


def _kind_hint(kind: str, value: object, spec: Spec) -> str:
    if isinstance(value, bool) and kind in {"str", "path"}:
        return "put it in quotes: YAML takes yes, no, on and off for true and false"
    if kind == "bool" and isinstance(value, str):
        return "write true or false without quotes; in an INI inventory True or False"
    if kind == "list" and isinstance(value, str):
        return "write a list: [first, second]"
    return _meaning(spec)


def _value_hint(spec: Spec, value: object, expected: str) -> str:
    if "in quotes" in expected and not isinstance(value, str):
        return f"put it in quotes: without them YAML reads 24:00:00 as 86400, 0750 as 488, this as {value}"
    return _meaning(spec)


def _meaning(spec: Spec) -> str:
    return f"it means: {plain_meaning(spec)}" if spec.get("description") else "see docs/variables.md"
