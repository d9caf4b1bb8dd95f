from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy.content import content_root
from deploy.plan import fingerprint
from deploy.plan.build import build_plan
from deploy.plan.catalog import PHASES
from deploy.plan.fingerprint import fingerprints, plays
from deploy.plan.generated_inventory import wired_variables
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
    return fingerprints(site, {}, wired_variables(site.resolved, {}), secrets)


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


def test_every_phase_has_a_play_that_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found_plays = plays(content_root())
    assert all(phase.group in found_plays for phase in PHASES)
    before = found(tmp_path / "site")
    other = {**found_plays, "phase_firewall": "other", "phase_software": "other"}
    monkeypatch.setattr(fingerprint, "plays", lambda _: other)
    fingerprint._of_files.cache_clear()
    assert differing(before, found(tmp_path / "site")) == {host: {"software"} for host in before}
    fingerprint._of_files.cache_clear()


def test_another_version_of_what_converges_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = found(tmp_path / "site")
    monkeypatch.setattr(fingerprint, "_versions", lambda: ("another", "one"))
    assert differing(before, found(tmp_path / "site")) == {host: {*before[host]} for host in before}


def test_a_node_without_gpus_has_no_phase_of_gpus(tmp_path: Path) -> None:
    gpus = {"node1": "[]", "node2": "[{type: a100, count: 1}]"}
    files = {
        f"host_vars/{name}.yml": f"slurmd_hardware: {{cpus: 2, memory_mb: 900, gpus: {has}}}"
        for name, has in gpus.items()
    }
    site = read_site(write_site(tmp_path, f"{INVENTORY}\n[slurm-metric]\nctl1\n", files))
    prints = fingerprints(site, {}, wired_variables(site, {}), SECRETS)
    steps = build_plan(site, {}).steps
    assert {(s.phase.name, host) for s in steps for host in s.hosts} == {
        (phase, host) for host, phases in prints.items() for phase in phases
    }
    assert [name for name in gpus if "gpu_exporter" in prints[name]] == ["node2"]


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


def test_what_is_looked_up_counts(tmp_path: Path) -> None:
    text = (
        "time_sync_options: '{{ site_found }}'\n"
        "site_found: \"{{ lookup('file', inventory_dir ~ '/found') }}\"\n"
    )

    def with_content(content: str) -> dict[str, dict[str, str]]:
        place = tmp_path / "site"
        place.mkdir(exist_ok=True)
        (place / "found").write_text(content)
        return found(place, text)

    one, same, other = with_content("one"), with_content("one"), with_content("other")
    assert differing(one, same) == {}
    assert differing(one, other) == {host: {"base"} for host in one}


def test_a_secret_that_is_looked_up_counts(tmp_path: Path) -> None:
    text = "munge_key: \"{{ lookup('file', inventory_dir ~ '/key') }}\"\n"

    def with_key(key: str) -> dict[str, dict[str, str]]:
        place = tmp_path / "site"
        place.mkdir(exist_ok=True)
        (place / "key").write_text(key)
        (place / "secrets.yml").write_text(text)
        return found(place, secrets={"munge_key": text})

    assert differing(with_key("k" * 48), with_key("l" * 48)) == {
        host: {"packages"} for host in ("ctl1", "login1", "node1", "node2")
    }


def test_what_other_phases_are_told_of_a_value_is_what_was_looked_up(tmp_path: Path) -> None:
    text = "slurmctld_cluster_name: \"{{ lookup('file', inventory_dir ~ '/name') }}\"\n"

    def with_name(name: str) -> dict[str, dict[str, str]]:
        place = tmp_path / "site"
        place.mkdir(exist_ok=True)
        (place / "name").write_text(name)
        return found(place, text)

    one, same, other = with_name("one"), with_name("one"), with_name("other")
    assert differing(one, same) == {}
    changed = differing(one, other)
    assert "controller" in changed["ctl1"]
    assert "message" in changed["login1"]


def test_what_only_a_host_can_look_up_is_never_as_recorded(tmp_path: Path) -> None:
    text = "time_sync_options: \"{{ lookup('env', 'SITE_' ~ ansible_facts['distribution']) }}\"\n"
    one, two = (found(tmp_path / "site", text) for _ in range(2))
    assert differing(one, two) == {host: {"base"} for host in one}


def test_a_new_node_concerns_few_phases_of_others(plain: dict[str, dict[str, str]], tmp_path: Path) -> None:
    inventory = INVENTORY.replace("node[1:2]", "node[1:3]").replace(
        "node2 ansible_host=10.0.0.12", "node2 ansible_host=10.0.0.12\nnode3 ansible_host=10.0.0.13"
    )
    other = found(tmp_path / "site", inventory=inventory)
    assert differing(plain, other) == {
        "ctl1": {"names", "controller", "targets"},
        "login1": {"names", "message"},
        "node1": {"names", "ssh_hosts"},
        "node2": {"names", "ssh_hosts"},
    }


def test_a_verified_phase_is_not_in_the_plan(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    done = {"node1": {phase.name for phase in PHASES}, "ctl1": {"base"}}
    plan = build_plan(site, converged=done)
    assert "node1" not in plan.hosts
    hosts = {step.phase.name: step.hosts for step in plan.steps}
    assert hosts["base"] == ("login1", "node2")
    assert hosts["controller"] == ("ctl1",)
