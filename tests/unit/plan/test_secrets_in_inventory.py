"""The generated inventory is kept in the journal and may be published: no secret is in it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory, write_discovery
from deploy.site.inventory import Site, read_site
from deploy.site.schema import options
from deploy.site.values import faults
from deploy.site.wording import is_computed
from tests.planted import leaves, secret_options
from tests.unit.site.sites import INVENTORY, write_site

_PLANTED = "pl4nted-in-the-inventory"
_ENCRYPTED = {"__ansible_vault": "a hash of the text in the vault"}
_GROUPS = "[slurm-cache]\nlogin1\n[slurm-log]\nctl1\n[slurm-nfs]\nctl1\n[slurm-container]\nnode1\n"


_SECRETS = secret_options()
_OTHERS = [name for name, option in options().items() if not (option.secret or is_computed(option.spec))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return read_site(write_site(tmp_path_factory.mktemp("site"), _GROUPS + INVENTORY))


def _texts(site: Site, place: Path, **variables: object) -> str:
    """Both generated inventories of a site whose hosts all have these variables."""
    hosts = {
        name: replace(host, variables={**host.variables, **variables}) for name, host in site.hosts.items()
    }
    with_them = replace(site, hosts=hosts)
    plan = build_plan(with_them)
    write_discovery(place / "discover.json", with_them, plan, {}, with_them.nodes)
    return json.dumps(generated_inventory(with_them, plan, {})) + (place / "discover.json").read_text()


@pytest.mark.parametrize("name", _SECRETS)
@pytest.mark.parametrize("secret", [_PLANTED, _ENCRYPTED], ids=["plain", "encrypted"])
def test_no_secret_is_in_the_generated_inventory(
    site: Site, tmp_path: Path, name: str, secret: object
) -> None:
    values = list(leaves(options()[name].spec, secret))
    assert values
    for value in values:
        text = _texts(site, tmp_path, **{name: value})
        assert _PLANTED not in text
        assert "__ansible_vault" not in text


def test_what_is_no_secret_and_encrypted_by_itself_is_refused() -> None:
    """Deploy sees a hash of it, which it would take for the value."""
    assert [name for name in _OTHERS if not faults(name, _ENCRYPTED)] == []
    assert [name for name in _SECRETS if faults(name, _ENCRYPTED)] == []
    assert faults("users_accounts", [{"name": _ENCRYPTED}])
    users = [{"name": "web", "password": _ENCRYPTED, "privileges": "web.*:ALL"}]
    assert not faults("mariadb_users", users)
