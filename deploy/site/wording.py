"""What argument_specs say of a variable, in words: for tables, for comments, for editors."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

Spec = Mapping[str, Any]

_MARKUP = re.compile(r"\b[BCIV]\((.*?)\)")
_COMPUTED = re.compile(r"(`deploy`|[Aa] deployment) (sets|computes)")


def meaning(spec: Spec) -> str:
    """The description as one line of Markdown, with the choices."""
    description = spec.get("description", "")
    sentences = description if isinstance(description, list) else [description]
    text = _MARKUP.sub(r"`\1`", " ".join(" ".join(str(sentence).split()) for sentence in sentences))
    if choices := spec.get("choices"):
        text += f" One of {', '.join(f'`{choice}`' for choice in choices)}."
    return text


def plain_meaning(spec: Spec) -> str:
    """The description as one line of plain text."""
    return meaning(spec).replace("`", "")


def type_name(spec: Spec) -> str:
    """The type, of a list also that of its elements."""
    kind = str(spec.get("type", "str"))
    return f"{kind} of {spec['elements']}" if spec.get("elements") else kind


def default_value(spec: Spec) -> str:
    """The default as YAML on one line; empty when there is none."""
    if spec.get("default") is None:
        return ""
    dumped = yaml.safe_dump(spec["default"], default_flow_style=True, width=10_000, sort_keys=False)
    return dumped.removesuffix("\n").removesuffix("...").strip()


def is_computed(spec: Spec) -> bool:
    """Whether deploy works the value out from the inventory, so that nobody needs to set it."""
    return bool(_COMPUTED.search(meaning(spec)))


def with_keys(options: Mapping[str, Spec], place: str = "") -> Iterator[tuple[str, Spec]]:
    """Every variable and, below it, the keys that it or its elements have, as ``variable[].key``."""
    for name, spec in options.items():
        yield place + name, spec
        inside = f"{place}{name}[]." if spec.get("type") == "list" else f"{place}{name}."
        yield from with_keys(spec.get("options") or {}, inside)
