"""The text of a new site: inventory, group_vars that change nothing yet, and what keeps secrets out of git.

Nothing of it is written down here twice: the variables come from the argument_specs of the roles that are
installed, so what a new site says of them is what this version of deploy does.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from deploy.site import own_files
from deploy.site.inventory import CACHE, CLUSTER, LOGIN, MASTER, METRIC, NODE, SECRETS_FILE
from deploy.site.json_schema import variables_schema
from deploy.site.schema import entry_points
from deploy.site.wording import Spec, default_value, is_computed, plain_meaning, type_name, with_keys

INVENTORY = "inventory.ini"
VARIABLES = "group_vars/all.yml"
SCHEMA = own_files.SCHEMA

_WIDTH = 98
_INVENTORY = """\
# The machines of the cluster, one line each, below the group that says what they do. ansible_host is the
# address by which Ansible and the cluster's hosts reach a machine; leave it out where its name resolves.
# Groups of your own (node types, for partitions and variables) are welcome.

# One controller: slurmctld, slurmdbd, MariaDB.
[{MASTER}]
{controller}

# The compute nodes. Ranges are written as node[1:4].
[{NODE}]
{nodes}

# Where users log in. Left empty, that is the controller.
[{LOGIN}]
{logins}

# Monitoring: Prometheus, Alertmanager, Grafana. Left empty, nobody watches the cluster.
[{METRIC}]
{metric}

# To fetch each package once for all hosts, through one of them:
# [{CACHE}]
# {cache}

[{CLUSTER}:children]
{MASTER}
{NODE}
{LOGIN}
{METRIC}

[all:vars]
{user}
"""
_VARIABLES = """\
# yaml-language-server: $schema=../{schema}
---
# Every variable with its default, commented out: uncomment what you change. Variables for some hosts only
# go into group_vars/<group>.yml or host_vars/<host>.yml; begin such a file with the first line of this one,
# and an editor with a YAML language server completes and checks it. Names of your own start with site_.
# Secrets are in {secrets}, and what deploy computes from the inventory is left out.

"""
_IGNORED = f"""\
# Made by deploy, and not for a repository: secrets (once encrypted with ansible-vault they may be; remove
# the line then), the journal of runs, and backups.
{SECRETS_FILE}
.{SECRETS_FILE}.*
.deploy/
backups/
"""


@dataclass(frozen=True)
class Machines:
    """The host names of a new site; without any, the inventory shows where they go."""

    controller: str | None = None
    nodes: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()


def starter_files(machines: Machines, user: str | None = None) -> Mapping[str, str]:
    """Path below the site's directory -> text, of every file but the secrets."""
    return {
        INVENTORY: starter_inventory(machines, user),
        VARIABLES: starter_variables(),
        SCHEMA: json.dumps(variables_schema(), indent=1) + "\n",
        ".gitignore": _IGNORED,
    }


def starter_inventory(machines: Machines, user: str | None = None) -> str:
    """An inventory of these machines."""
    return _INVENTORY.format(
        MASTER=MASTER,
        NODE=NODE,
        LOGIN=LOGIN,
        METRIC=METRIC,
        CACHE=CACHE,
        CLUSTER=CLUSTER,
        controller=machines.controller or "# ctl1 ansible_host=10.0.0.1",
        cache=machines.controller or "ctl1",
        metric=machines.controller or "# ctl1",
        nodes="\n".join(machines.nodes) or "# node1 ansible_host=10.0.0.11\n# node2 ansible_host=10.0.0.12",
        logins="\n".join(machines.logins) or "# login1 ansible_host=10.0.0.2",
        user=f"ansible_user={user}" if user else "# ansible_user=admin",
    )


def starter_variables() -> str:
    """Group variables for all hosts that change nothing: everything an admin may set, commented out."""
    chapters = [_VARIABLES.format(schema=SCHEMA, secrets=SECRETS_FILE)]
    for role, entry in entry_points().items():
        settable = {
            name: spec
            for name, spec in (entry.get("options") or {}).items()
            if not spec.get("required") and not is_computed(spec)
        }
        if settable:
            chapters.append(f"# == {role}: {entry['short_description']}\n\n")
            chapters += [_commented(name, spec) for name, spec in settable.items()]
    return "".join(chapters).rstrip("\n") + "\n"


def _commented(name: str, spec: Spec) -> str:
    """A variable's meaning, its keys, and a line that sets it to its default. Prose starts with ``# ``."""
    prose = textwrap.wrap(plain_meaning(spec), _WIDTH)
    for place, key in with_keys(spec.get("options") or {}):
        item = f"- {place} ({', '.join(_traits(key))}): {plain_meaning(key)}"
        prose += textwrap.wrap(item, _WIDTH, subsequent_indent="  ")
    lines = [f"# {line}" for line in prose] + [f"#{line}" for line in _setting(name, spec)]
    return "\n".join([*lines, "", ""])


def _traits(spec: Spec) -> Iterator[str]:
    yield type_name(spec)
    if spec.get("required"):
        yield "required"
    elif spec.get("default") not in (None, "", [], {}):
        yield f"default {default_value(spec)}"


def _setting(name: str, spec: Spec) -> list[str]:
    default = spec.get("default")
    if not (default and isinstance(default, (dict, list))):
        return [f"{name}: {default_value(spec)}".rstrip()]
    dumped: str = yaml.dump({name: default}, Dumper=_Indenting, sort_keys=False, default_flow_style=False)
    return dumped.splitlines()


class _Indenting(yaml.SafeDumper):
    """Indents the items of a list below its name, as yamllint and ansible-lint want it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: ANN401, ARG002, FBT001, FBT002
        return super().increase_indent(flow, False)  # noqa: FBT003 - PyYAML's own signature
