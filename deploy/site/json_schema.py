"""The variables of all roles as one JSON Schema, by which editors complete and check group_vars.

It is stricter than Ansible where Ansible guesses (a comma-separated text for a list, a text for a number),
and takes whatever is known only later: Jinja templates and encrypted values.
"""

from collections.abc import Mapping
from typing import Any

from deploy.site.schema import OWN_PREFIX, options
from deploy.site.wording import Spec, plain_meaning

Schema = dict[str, Any]

_LATER = {"$ref": "#/$defs/later"}
_TYPES: Mapping[str, Schema] = {
    # Ansible makes a text of a number; a truth value where a text is due is a forgotten quote: off, no, yes.
    "str": {"type": ["string", "number"]},
    "path": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    # To Ansible's YAML 1.1 yes and no are truth values; editors that speak YAML 1.2 see text.
    "bool": {"enum": [True, False, "yes", "no", "Yes", "No", "on", "off", "On", "Off"]},
    "list": {"type": "array"},
    "dict": {"type": "object"},
    "raw": {},
}


def variables_schema() -> Schema:
    """What a file of group_vars or host_vars may hold."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Variables of a deploy site",
        "description": "A file of group_vars or host_vars. Made by: deploy schema",
        # A file in which every line is still commented out is empty.
        "type": ["object", "null"],
        "properties": {name: _value(option.spec) for name, option in options().items()},
        "patternProperties": {f"^({OWN_PREFIX}|ansible_)": {}},
        "additionalProperties": False,
        "$defs": {
            "later": {
                "description": "A Jinja template, or a value encrypted with ansible-vault.",
                "type": "string",
                "pattern": r"\{\{|\{%|^\s*\$ANSIBLE_VAULT;",
            }
        },
    }


def _value(spec: Spec) -> Schema:
    """The schema of one variable or key."""
    noted: Schema = {"description": plain_meaning(spec)}
    if spec.get("default") is not None:
        noted["default"] = spec["default"]
    alternatives = _alternatives(spec)
    if spec.get("default") is None and not spec.get("required"):
        alternatives.append({"type": "null"})
    return noted | (alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives})


def _alternatives(spec: Spec) -> list[Schema]:
    """The forms a value may have: written out, or known only later."""
    typed = _typed(spec)
    takes_any_text = not typed or "string" in typed.get("type", ())
    return [typed] if takes_any_text else [typed, _LATER]


def _typed(spec: Spec) -> Schema:
    """The schema of a value that is written out."""
    kind = spec.get("type", "str")
    if kind == "list":
        return _TYPES["list"] | {"items": {"anyOf": _alternatives(_element(spec))}}
    if choices := spec.get("choices"):
        return {"enum": list(choices)}
    if kind == "dict" and (keys := spec.get("options")):
        return _TYPES["dict"] | {
            "properties": {name: _value(inner) for name, inner in keys.items()},
            "required": [name for name, inner in keys.items() if inner.get("required")],
            "additionalProperties": False,
        }
    return dict(_TYPES[kind])


def _element(spec: Spec) -> Spec:
    """What a list's specification says of its elements."""
    return {
        "type": spec.get("elements", "raw"),
        "options": spec.get("options"),
        "choices": spec.get("choices"),
    }
