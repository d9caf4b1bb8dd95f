"""The variables of all roles as one JSON Schema, by which editors complete and check group_vars.

It is stricter than Ansible where Ansible guesses (a comma-separated text for a list, a text for a number),
and takes whatever is known only later: Jinja templates and encrypted values.
"""

from collections.abc import Mapping
from typing import Any

from deploy.site.schema import OWN_PREFIX, options
from deploy.site.wording import Spec, plain_meaning

Schema = dict[str, Any]

_LATER = r"\{\{|\{%|^\s*\$ANSIBLE_VAULT;"
"""A text that is a Jinja template, or encrypted with ansible-vault."""

_TYPES: Mapping[str, tuple[str, ...]] = {
    # Ansible makes a text of a number; a truth value where a text is due is a forgotten quote: off, no, yes.
    "str": ("string", "number"),
    "path": ("string",),
    "int": ("integer",),
    "float": ("number",),
    "list": ("array",),
    "dict": ("object",),
}
_CHOICES: Mapping[str, list[Any]] = {
    # To Ansible's YAML 1.1 yes and no are truth values; editors that speak YAML 1.2 see text.
    "bool": [True, False, "yes", "no", "Yes", "No", "on", "off", "On", "Off"]
}


def variables_schema() -> Schema:
    """What a file of group_vars or host_vars may hold."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Variables of a deploy site",
        "description": "A file of group_vars or host_vars. Made by: deploy schema",
        # A file in which every line is still commented out is empty.
        "type": ["object", "null"],
        # A variable that has no default may be left without a value.
        "properties": {
            name: _variable(option.spec, null=option.spec.get("default") is None)
            for name, option in options().items()
        },
        "patternProperties": {f"^({OWN_PREFIX}|ansible_)": {}},
        "additionalProperties": False,
    }


def _variable(spec: Spec, *, null: bool = False) -> Schema:
    """The schema of a variable or a key, as its role describes it."""
    noted: Schema = {"description": plain_meaning(spec)}
    if spec.get("default") is not None:
        noted["default"] = spec["default"]
    return noted | _value(spec, null=null)


def _value(spec: Spec, *, null: bool = False) -> Schema:
    """The schema of a value: one of the specification's type, a text that is known later, perhaps nothing.

    Keywords such as items and pattern bear on values of their own type only, so they stand side by side and
    a mistake is found where it is, not in "none of these".
    """
    kind = spec.get("type", "str")
    if kind == "raw":
        return {}
    choices = spec.get("choices") or _CHOICES.get(kind)
    if choices and kind != "list":
        return {"anyOf": [{"enum": [*choices, *[None] * null]}, {"type": "string", "pattern": _LATER}]}
    schema: Schema = {"type": list(dict.fromkeys([*_TYPES[kind], "string", *["null"] * null]))}
    if "string" not in _TYPES[kind]:
        schema |= {"pattern": _LATER, "patternErrorMessage": f"Neither of type {kind} nor a template."}
    if kind == "list":
        schema["items"] = _value(_element(spec))
    if kind == "dict" and (keys := spec.get("options")):
        schema |= {
            "properties": {name: _variable(inner) for name, inner in keys.items()},
            "required": [name for name, inner in keys.items() if inner.get("required")],
            "additionalProperties": False,
        }
    return schema


def _element(spec: Spec) -> Spec:
    """What a list's specification says of its elements."""
    return {"type": spec.get("elements", "raw"), **{k: spec[k] for k in ("options", "choices") if k in spec}}
