"""The JSON Schema takes what is right, in every example and every lab, and nothing that is wrong."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from deploy.lab.site_files import group_vars
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from deploy.site.json_schema import variables_schema
from deploy.site.schema import options
from tests.contract.content import ROOT
from tests.unit.site.sites import write_site
from tests.unit.site.test_example import settings

VALIDATOR = Draft202012Validator(variables_schema())
_BLOCK = re.compile(r"```ya?ml\n(.*?)```", re.DOTALL)


class _Loader(yaml.SafeLoader):
    """Reads ``!vault`` and ``!unsafe`` values as editors do: as their text."""


def _text(loader: yaml.SafeLoader, node: yaml.Node) -> object:
    assert isinstance(node, yaml.ScalarNode)
    return loader.construct_scalar(node)


_Loader.add_constructor("!vault", _text)
_Loader.add_constructor("!unsafe", _text)


def mistakes(text: str) -> list[str]:
    """Where a file of group_vars does not fit."""
    values = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader subclass
    return [
        "/".join(map(str, found.absolute_path)) or found.message for found in VALIDATOR.iter_errors(values)
    ]


def test_it_is_a_schema_of_the_draft_that_it_names() -> None:
    Draft202012Validator.check_schema(VALIDATOR.schema)
    assert VALIDATOR.schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


def test_it_describes_every_variable() -> None:
    properties: dict[str, Any] = VALIDATOR.schema["properties"]
    assert properties.keys() == options().keys()
    assert [name for name, schema in properties.items() if not schema["description"]] == []


def _examples() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "inventory").glob("**/*_vars/**/*.yml")):
        yield str(path.relative_to(ROOT)), path.read_text()
    for path in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md"), ROOT / "README.md"]):
        for number, block in enumerate(_BLOCK.findall(path.read_text())):
            yield f"{path.relative_to(ROOT)}-{number}", block
    for release, gpus, cgroup_v1 in product(("trixie", "bookworm"), (0, 2), (False, True)):
        for name, text in group_vars(release=release, gpus=gpus, cgroup_v1=cgroup_v1).items():
            yield f"lab-{release}-{gpus}-{cgroup_v1}-{name}", text
    example = (ROOT / "inventory" / "example" / "group_vars" / "all.yml").read_text()
    yield "every default", "\n".join(settings(example))


EXAMPLES = dict(_examples())


def test_examples_are_found() -> None:
    assert {
        "inventory/example/group_vars/all.yml",
        "docs/admin.md-0",
        "roles/time_sync/README.md-0",
        "every default",
    } <= EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_fit(name: str) -> None:
    assert mistakes(EXAMPLES[name]) == []


RIGHT = """\
site_anything: [1, two, {three: 4}]
ansible_user: admin
ansible_become: true
users_create_home: yes
hosts_file_address:
slurmctld_slurmd_timeout: "{{ site_timeout }}"
slurmctld_gres_autodetect: "{% if site_nvml %}nvml{% else %}off{% endif %}"
slurmctld_partitions:
  - {name: batch, default: true, max_nodes: "{{ site_most }}", default_time: "10", state: UP}
slurm_accounts_accounts: [{name: physics}]
slurm_accounts_users:
  - {name: alice, accounts: [physics], fairshare: 10, admin_level: operator}
site_timeout: 300
site_nvml: false
site_most: 4
"""

KNOWN_LATER = """\
slurmd_hardware: "{{ site_hardware[inventory_hostname] }}"
slurmctld_partitions:
  - "{{ site_partition }}"
  - name: "{{ site_name }}"
users_accounts: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  6162
munge_key: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  6162
"""


def test_templates_and_encrypted_values_fit_anywhere() -> None:
    assert mistakes(RIGHT) == []
    assert mistakes(KNOWN_LATER) == []


def test_what_fits_passes_the_checks_of_a_run(tmp_path: Path) -> None:
    path = write_site(tmp_path, files={"group_vars/all.yml": RIGHT})
    assert check_site(read_site(path)) == []


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("slurmctld_partition: []", "'slurmctld_partition' does not match"),
        ("slurmctld_slurmd_timeout: soon", "slurmctld_slurmd_timeout"),
        ("slurmctld_slurmd_timeout: 1.5", "slurmctld_slurmd_timeout"),
        ("slurmctld_slurmd_timeout: true", "slurmctld_slurmd_timeout"),
        ("slurmctld_slurmd_timeout:", "slurmctld_slurmd_timeout"),
        ("slurmctld_partitions: [{name: b, qos: }]", "slurmctld_partitions/0/qos"),
        ("users_create_home: 1", "users_create_home"),
        ("users_create_home: perhaps", "users_create_home"),
        ("slurmctld_cluster_name: [a]", "slurmctld_cluster_name"),
        ("slurmctld_cluster_name: off", "slurmctld_cluster_name"),
        ("slurmctld_gres_autodetect: sometimes", "slurmctld_gres_autodetect"),
        ("slurmctld_return_to_service: 3", "slurmctld_return_to_service"),
        ("slurmctld_partitions: batch", "slurmctld_partitions"),
        ("slurmctld_partitions: [batch]", "slurmctld_partitions/0"),
        ("slurmctld_partitions: [{default: true}]", "slurmctld_partitions/0"),
        ("slurmctld_partitions: [{name: batch, colour: red}]", "slurmctld_partitions/0"),
        ("slurmctld_partitions: [{name: b}, {name: c, max_nodes: x}]", "slurmctld_partitions/1/max_nodes"),
        ("slurmctld_partitions: [{name: batch, state: OPEN}]", "slurmctld_partitions/0/state"),
        ("slurmd_hardware: {gpus: [{type: a100}]}", "slurmd_hardware/gpus/0"),
        ("slurmd_hardware: {memory_gb: 8}", "slurmd_hardware"),
        ("slurmd_features: [[ib]]", "slurmd_features/0"),
        ("slurmctld_priority_weights: {age: old}", "slurmctld_priority_weights/age"),
        ("sites_helper: 1", "'sites_helper' does not match"),
        ("[]", "[] is not of type 'object', 'null'"),
    ],
)
def test_what_is_wrong_does_not_fit(text: str, where: str) -> None:
    found = mistakes(text)
    assert len(found) == 1
    assert where in found[0]
