from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy.plan.build import build_plan
from deploy.plan.catalog import PHASES
from deploy.plan.fingerprint import fingerprints
from deploy.plan.wiring import wired_variables
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

SECRETS = {"munge_key": "k" * 48, "slurmdbd_database_password": "p"}


def found(
    place: Path,
    text: str = "",
    *,
    inventory: str = INVENTORY,
    secrets: Mapping[str, str] = SECRETS,
) -> dict[str, dict[str, str]]:
    place.mkdir(exist_ok=True)
    site = read_site(write_site(place, inventory, {"group_vars/all.yml": text} if text else {}))
    return fingerprints(site, wired_variables(site, {}), secrets)


def differing(one: dict[str, dict[str, str]], other: dict[str, dict[str, str]]) -> dict[str, set[str]]:
    hosts = {name: {p for p in one[name] if one[name][p] != other[name].get(p)} for name in one}
    return {name: phases for name, phases in hosts.items() if phases}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    return found(tmp_path_factory.mktemp("plain") / "site")


def test_every_phase_of_every_host_has_one(plain: dict[str, dict[str, str]], tmp_path: Path) -> None:
    plan = build_plan(read_site(write_site(tmp_path)))
    expected = {(step.phase.name, host) for step in plan.steps for host in step.hosts}
    assert {(phase, host) for host, phases in plain.items() for phase in phases} == expected


def test_the_same_site_has_the_same_elsewhere(plain: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert found(tmp_path / "other") == plain


def test_a_variable_concerns_the_phases_of_its_role(plain: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert differing(plain, found(tmp_path / "site", "slurmctld_slurmd_timeout: 31")) == {
        "ctl1": {"controller"}
    }
    assert differing(plain, found(tmp_path / "site", "nobody_reads_this: 31")) == {}


def test_a_secret_concerns_the_phases_of_its_role(plain: dict[str, dict[str, str]], tmp_path: Path) -> None:
    other = found(tmp_path / "site", secrets={**SECRETS, "munge_key": "other"})
    assert differing(plain, other) == {host: {"packages"} for host in plain}


def test_what_a_template_mentions_counts_to_the_end(tmp_path: Path) -> None:
    text = "time_sync_options: '{{ mine }}'\nmine: '{{ yours }}'\nyours: YOURS\nother: OTHER\n"
    one, two, three = (
        found(tmp_path / name, text.replace("YOURS", yours).replace("OTHER", other))
        for name, yours, other in (("1", "1", "1"), ("2", "2", "1"), ("3", "1", "2"))
    )
    assert differing(one, two) == {host: {"base"} for host in one}
    assert differing(one, three) == {}


def test_a_template_that_can_mean_anything_depends_on_everything(tmp_path: Path) -> None:
    text = "time_sync_options: \"{{ lookup('vars', 'mi' + 'ne') }}\"\nmine: VALUE\n"
    one, two = (found(tmp_path / value, text.replace("VALUE", value)) for value in ("a", "b"))
    assert differing(one, two) == {host: {"base"} for host in one}


def test_a_new_node_concerns_few_phases_of_others(plain: dict[str, dict[str, str]], tmp_path: Path) -> None:
    inventory = INVENTORY.replace("node[1:2]", "node[1:3]").replace(
        "node2 ansible_host=10.0.0.12", "node2 ansible_host=10.0.0.12\nnode3 ansible_host=10.0.0.13"
    )
    other = found(tmp_path / "site", inventory=inventory)
    assert differing(plain, other) == {
        "ctl1": {"names", "controller", "targets"},
        "login1": {"names", "user_logins"},
        "node1": {"names"},
        "node2": {"names"},
    }


def test_a_verified_phase_is_not_in_the_plan(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    done = {"node1": {phase.name for phase in PHASES}, "ctl1": {"base"}}
    plan = build_plan(site, converged=done)
    assert "node1" not in plan.hosts
    hosts = {step.phase.name: step.hosts for step in plan.steps}
    assert hosts["base"] == ("login1", "node2")
    assert hosts["controller"] == ("ctl1",)
