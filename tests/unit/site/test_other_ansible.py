"""An Ansible that lacks what reads inventories here: it is said, and Ansible's own way is taken."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.errors import DeployError, Finding
from deploy.plan.fingerprint import fingerprints
from deploy.plan.generated_inventory import WiredVariables
from deploy.site import listing_process
from deploy.site.checks import check_site
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import INVENTORY, write_site

LISTING = listing_process.LISTING
RESOLUTION = LISTING.with_name("resolution.py")
EXAMPLES = Path(__file__).parents[3] / "inventory" / "sites"
WITHOUT = """\
import importlib, runpy, sys
import ansible.cli.playbook
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import lookup_loader
DataLoader().load("all: [Ansible has what it takes itself]")
module = sys.modules.get({module!r}) or importlib.import_module({module!r})
{broken}
runpy.run_path({listing!r}, run_name="__main__")
"""
VARIABLES = """\
motd_text: ["{{ site_word }}"]
site_word: hello
site_day: 2026-11-24
ansible_user: admin
site_secret: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  61656335353764373833353366313235353933326130656166323661333366336663626433323136
  3663663562653730636136393636656434396532653963660a636135616335376235636265363431
  61316233303533613533633862303532353061373061353232346233626561633233643262626238
  3066653166383463360a333138646532353939653764376434383137396663343431376661636632
  3861
"""


def taken(program: Path) -> Iterator[tuple[str, str]]:
    """What a program imports of Ansible, wherever it does, as module and name."""
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ansible."):
            yield from ((str(node.module), alias.name) for alias in node.names)


OF_LISTING = [*taken(LISTING)]
OF_RESOLUTION = [
    # Without TrustedAsTemplate Ansible itself reads nothing.
    *(each for each in taken(RESOLUTION) if each not in OF_LISTING and each[1] != "TrustedAsTemplate"),
    ("ansible.constants", "INTERNAL_STATIC_VARS"),
    ("ansible.plugins.lookup.password", "_get_lock"),
    ("ansible.plugins.lookup.password", "_release_lock"),
    ("ansible.plugins.lookup.password", "_write_password_file"),
]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Broken":
    return Broken(tmp_path, monkeypatch)


class Broken:
    """Reads sites by an Ansible that lacks a name."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        self._place = place
        self._patch = patch

    def read(self, how: str, module: str = "ansible.template", variables: str = VARIABLES) -> Site:
        directory = self._place / "site"
        directory.mkdir()
        return self.read_at(write_site(directory, files={"group_vars/all.yml": variables}), how, module)

    def read_at(self, inventory: Path, how: str, module: str = "ansible.template") -> Site:
        program = self._place / "listing.py"
        text = WITHOUT.format(module=module, broken=how, listing=str(LISTING))
        program.write_text(text, encoding="utf-8")
        self._patch.setattr(listing_process, "LISTING", program)
        return read_site(inventory)

    def as_it_is(self) -> Site:
        self._patch.setattr(listing_process, "LISTING", LISTING)
        return read_site(self._place / "site" / "inventory.ini")


def told(site: Site) -> Finding:
    """The one warning of a site."""
    (finding,) = check_site(site)
    assert finding.reference == "ansible-does-not-fit"
    assert finding.where.startswith("ansible-core 2.")
    return finding


def test_something_is_taken() -> None:
    assert len(OF_LISTING) >= 8
    assert len(OF_RESOLUTION) >= 6


@pytest.mark.parametrize(("module", "name"), OF_LISTING)
def test_without_what_reading_takes_ansible_inventory_reads(module: str, name: str, broken: Broken) -> None:
    site = broken.read(f"del module.{name}", module)
    assert name in told(site).message
    known = broken.as_it_is()
    assert list(site.hosts) == list(known.hosts)
    assert site.groups == known.groups
    for host, other in zip(site.hosts.values(), known.hosts.values(), strict=True):
        assert {**other.variables, **host.variables} == other.variables
        assert (host.connection, host.groups, host.address) == (other.connection, other.groups, other.address)
        assert (host.origins, host.resolutions) == ({}, {})
        assert host.variables["motd_text"] == ["{{ site_word }}"]
    assert site.hosts["node1"].variables["site_secret"].keys() == {"__ansible_vault"}
    assert site.leaves_templates
    assert not known.leaves_templates


@pytest.mark.parametrize("site", ["lrz-ai", "raven"])
def test_groups_in_groups_have_the_same_hosts(site: str, broken: Broken) -> None:
    """Below the first level Ansible itself has them in another order each time."""
    inventory = EXAMPLES / site / "inventory.ini"
    known = read_site(inventory)
    plain = broken.read_at(inventory, "del module.Templar")
    assert plain.leaves_templates
    assert plain.hosts.keys() == known.hosts.keys()
    assert {name: {*hosts} for name, hosts in plain.groups.items()} == {
        name: {*hosts} for name, hosts in known.groups.items()
    }


@pytest.mark.parametrize(("module", "name"), OF_RESOLUTION)
def test_without_what_resolving_takes_templates_are_left_to_the_run(
    module: str, name: str, broken: Broken
) -> None:
    site = broken.read(f"del module.{name}", module)
    assert name in told(site).message
    assert "templates" in told(site).message
    known = broken.as_it_is()
    assert {host.name: host.origins for host in site.hosts.values()} == {
        host.name: host.origins for host in known.hosts.values()
    }
    assert site.hosts["node1"].resolutions == {}
    assert known.hosts["node1"].resolutions["motd_text"].value == ["hello"]
    assert site.leaves_templates


@pytest.mark.parametrize("name", ["_get_lock", "_release_lock", "_write_password_file"])
def test_no_lookup_makes_a_file_whatever_the_lookup_calls_its_functions(
    name: str, broken: Broken, tmp_path: Path
) -> None:
    renamed = f"""\
import types
text = open(module.__file__).read().replace({name!r}, {name!r} + 's')
exec(compile(text, module.__file__, 'exec'), vars(module))
del module.{name}
module.LookupModule.run.__globals__['{name}s']
def get(name, *arguments, class_only=False, get=lookup_loader.get, **options):
    if name.endswith('password'):
        return module.LookupModule if class_only else module.LookupModule()
    return get(name, *arguments, class_only=class_only, **options)
lookup_loader.get = get
"""
    made = tmp_path / "made"
    site = broken.read(
        renamed,
        "ansible.plugins.lookup.password",
        f"motd_text: [\"{{{{ lookup('password', '{made}') }}}}\"]\n",
    )
    told(site)
    assert not made.exists()


def test_where_ansible_trusts_texts_otherwise_nothing_is_taken_for_known(broken: Broken) -> None:
    site = broken.read(
        "module.TrustedAsTemplate.tag = lambda self, value: value", "ansible._internal._datatag._tags"
    )
    told(site)
    assert site.hosts["node1"].resolutions == {}


def test_what_ansible_inventory_cannot_read_either_is_invalid(broken: Broken) -> None:
    with pytest.raises(DeployError) as caught:
        broken.read("del module.Templar", variables="motd_text: [\n")
    (finding,) = caught.value.findings
    assert finding.reference == "inventory-invalid"
    assert "YAML parsing failed" in str(finding)


def test_where_templates_are_left_every_phase_runs(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, INVENTORY))
    none = WiredVariables({}, {})
    assert fingerprints(site, {}, none, {}) == fingerprints(site, {}, none, {})
    left = replace(site, leaves_templates=True)
    first, second = (fingerprints(left, {}, none, {}) for _ in range(2))
    assert all(first[host][phase] != second[host][phase] for host in first for phase in first[host])
