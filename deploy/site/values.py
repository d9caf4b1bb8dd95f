"""One value held against its specification: what is wrong with it, as (message, hint)."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from deploy.site.rules import rule_of
from deploy.site.schema import options
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
    r"slurmd_(hardware|features|weight|node_parameters)\b.*|hosts_file_address|mariadb_(users|databases)"
    r"|slurmctld_partitions(\[\]|\[\]\.(name|groups|nodes)(\[\])?)?"
)
"""What deploy itself reads to compute the variables of other hosts, before Ansible resolves templates."""

_INDEX = re.compile(r"\[\d+\]")


def faults(name: str, value: object) -> list[Fault]:
    """Everything that is wrong with the value of a variable that a role knows."""
    spec = options()[name].spec
    if value is None and spec.get("default") is None:
        return []  # As an optional variable is left that has no default: not given.
    found = list(_faults(name, spec, value))
    if not found and not opaque(value):
        for message in _validated(spec, value).error_messages:
            text = re.sub(r"found in value\b", f"found in {name}", message)
            found.append((f"{name}: {text.replace(chr(39) + 'value' + chr(39), repr(name))}", _meaning(spec)))
    return found


def completed(name: str, value: object) -> Any:  # noqa: ANN401 - what the specification says
    """A value without faults, with the defaults of its keys; None where it is not known yet or has faults."""
    if opaque(value) or faults(name, value):
        return None
    return _validated(options()[name].spec, value).validated_parameters["value"]


def opaque(value: object) -> bool:
    """Whether a value, or a part of it, is known only on the hosts: a template, or encrypted."""
    text = json.dumps(value, default=str)
    return "{{" in text or "{%" in text or "__ansible_vault" in text


def suggestion(name: str, known: Mapping[str, object]) -> str:
    """The known name that was probably meant."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else "known names: see docs/variables.md"


def _validated(spec: Spec, value: object) -> Any:  # noqa: ANN401 - Ansible's own result
    return ArgumentSpecValidator({"value": {**spec, "required": False}}).validate({"value": value})


def _faults(place: str, spec: Spec, value: object) -> Iterator[Fault]:
    """The faults of a value and of all that is in it; ``place`` is its path with indexes."""
    path = _INDEX.sub("[]", place)
    kind = str(spec.get("type", "str"))
    if value is None:
        yield f"{place} has no value", "write a value, or remove the line to have the default"
    elif _is_encrypted(value) or _is_template(value):
        yield from _template_faults(place, path, value)
    elif not isinstance(value, _KINDS.get(kind, (object,))) or (isinstance(value, bool) and kind != "bool"):
        yield f"{place} is {_shown(value)}, not {_WORDS[kind]}", _kind_hint(kind, value, spec)
    elif isinstance(value, list):
        element = {"type": spec.get("elements", "raw"), "options": spec.get("options")}
        for index, item in enumerate(value):
            yield from _faults(f"{place}[{index}]", element, item)
    elif isinstance(value, dict):
        yield from _key_faults(place, spec.get("options") or {}, value)
    elif (rule := rule_of(path, spec)) and not rule.fits(value):
        yield f"{place} is {value!r}, not {rule.expected}", _meaning(spec)


def _key_faults(place: str, known: Mapping[str, Spec], value: Mapping[Any, object]) -> Iterator[Fault]:
    for key, inner in value.items() if known else ():
        if key in known:
            yield from _faults(f"{place}.{key}", known[key], inner)
        else:
            yield f"{place} has no key {key!r}", suggestion(str(key), known)


def _template_faults(place: str, path: str, value: object) -> Iterator[Fault]:
    if _READ_EARLY.fullmatch(path):
        yield (
            f"{place} is a template or encrypted, but deploy must know it before Ansible resolves it",
            "write the value itself",
        )
    elif isinstance(value, str) and (problem := _syntax_error(value)):
        yield f"{place} is not a template that Jinja can read: {problem}", "mend its braces and quotes"


def _syntax_error(template: str) -> str:
    # Jinja costs a tenth of the start, and few sites have templates.
    from jinja2 import Environment, TemplateSyntaxError  # noqa: PLC0415

    try:
        Environment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"], autoescape=True).parse(template)
    except (TemplateSyntaxError, RecursionError) as problem:
        return str(problem)
    return ""


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


def _meaning(spec: Spec) -> str:
    """What a value means; an element of a list has its meaning from the list."""
    return f"it means: {plain_meaning(spec)}" if spec.get("description") else "see docs/variables.md"
