"""Numbers that YAML 1.1, as Ansible reads it, takes for others than whoever wrote them meant.

A leading 0 makes an octal number, ``uid: 02001`` is 1025 (yaml.org/type/int.html). Of times
(``24:00:00``), which are numbers to the base of 60, their own checks speak.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from deploy.errors import Finding
from deploy.site.inventory import Site
from deploy.site.origin import shown
from deploy.site.schema import options
from deploy.site.values import faults

_NUMBER = re.compile(r"[-+]?0[0-7_]*[0-7]")
_LOOKS_LIKE_ONE = re.compile(rb"[\s\[{,:+-]0[0-7]")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_other_numbers(site: Site) -> Iterator[Finding]:
    """Those in the values of known variables, unless such a value is wrong anyway."""
    for directory in ("group_vars", "host_vars"):
        for path in sorted((site.directory / directory).rglob("*")):
            if path.suffix in {"", ".yml", ".yaml"} and path.is_file():
                yield from _of_file(path)


def _of_file(path: Path) -> Iterator[Finding]:
    text = path.read_bytes()
    # Most files have none, and parsing takes longer than looking.
    if not _LOOKS_LIKE_ONE.search(text):
        return
    try:
        root = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        return  # Ansible has said so, or the file is a vault.
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value not in options() or faults(key.value, _plain(value)):
            continue
        for node in _numbers(value):
            yield Finding(
                f"{shown(str(path))}:{node.start_mark.line + 1}",
                "number-read-otherwise",
                f"{key.value} has {node.value}, which YAML reads as {_plain(node)}",
                "write it without the leading 0; in quotes where it is a mode",
            )


def _numbers(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        if node.tag == "tag:yaml.org,2002:int" and not node.style and _NUMBER.fullmatch(node.value):
            yield node
    else:
        for inner in node.value:
            for part in inner if isinstance(inner, tuple) else (inner,):
                yield from _numbers(part)


def _plain(node: yaml.Node) -> object:
    return _Constructor().construct_document(node)


class _Constructor(yaml.constructor.SafeConstructor):
    """Makes values of nodes, of which those that only Ansible knows (``!vault``) are texts."""


_Constructor.add_constructor(None, lambda _, node: str(node.value))
