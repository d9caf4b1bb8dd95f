"""Secrets that are replaced on the living cluster: the site has another one where a run goes through."""

from pathlib import Path

import pytest

from deploy.engine.cluster import deploy_cluster, plan_cluster
from deploy.engine.options import Options, Rotation
from deploy.engine.secrets import refuse_new_secrets_for_some, refuse_rotation_of_others
from deploy.errors import DeployError, ExitCode
from deploy.show.plain import PlainDisplay
from deploy.site.hardware import read_contract
from deploy.site.inventory import read_site
from deploy.site.secrets import fill_secrets, read_secrets, secret_names
from tests.unit.engine.machines import Machines, machines, run_on
from tests.unit.site.sites import write_site

__all__ = ["machines"]

_KEY = "k3Y_" * 12


def rotating(*names: str, check: bool = False, limit: str | None = None) -> Options:
    return Options(new_secrets=True, rotation=Rotation(names), check=check, limit=limit)


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """A site that has its secrets."""
    written = write_site(tmp_path)
    fill_secrets(read_site(written), None)
    return written


def kept(inventory: Path) -> dict[str, object]:
    return read_secrets(inventory.parent / "secrets.yml", None)


def test_a_run_gives_the_site_another_one_and_hosts_work_for_it(machines: Machines, inventory: Path) -> None:
    before = kept(inventory)
    machines.settle(inventory)
    machines.run(inventory, lambda: True, rotating("munge_key"))
    after = kept(inventory)
    assert [name for name in before if before[name] != after[name]] == ["munge_key"]
    assert machines.ran == ["plan", "cluster"]


def test_what_hosts_have_is_of_before_until_the_site_has_the_other(inventory: Path, tmp_path: Path) -> None:
    """Whoever works on a host has its records say what it got."""
    site = read_site(inventory)
    contract = read_contract(site)
    settled = run_on(site, place=tmp_path).records.expected(contract)
    options = rotating("munge_key")
    run = run_on(site, options, place=tmp_path)
    pending = run.records.expected(contract)
    differing = {phase for phase in settled["ctl1"] if settled["ctl1"][phase] != pending["ctl1"][phase]}
    assert differing == {"packages"}
    options.rotation.is_done = True
    assert run.records.expected(contract) == settled


@pytest.mark.parametrize("verb", ["check", "plan"])
def test_who_only_looks_leaves_the_site_its_own(machines: Machines, inventory: Path, verb: str) -> None:
    before = (inventory.parent / "secrets.yml").read_bytes()
    machines.settle(inventory)
    options = rotating("munge_key", check=verb == "check")
    if verb == "check":
        machines.run(inventory, lambda: True, options)
    else:
        plan_cluster(inventory, options, PlainDisplay(lambda _: None), lambda _: None)
    assert (inventory.parent / "secrets.yml").read_bytes() == before
    assert machines.ran == (["cluster"] if verb == "check" else ["plan"])


def test_hosts_that_are_left_out_would_be_of_no_cluster(inventory: Path, tmp_path: Path) -> None:
    run = run_on(read_site(inventory), rotating("munge_key", limit="node1"), place=tmp_path)
    with pytest.raises(DeployError, match="munge_key would be made anew for some hosts only") as refused:
        refuse_new_secrets_for_some(run)
    assert "--rotate munge_key   (without --limit)" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "files", "reference", "where"),
    [
        ("munge_kye", {}, "no-such-secret", "--rotate"),
        ("mariadb_cluster_key", {}, "no-such-secret", "--rotate"),
        ("munge_key", {"group_vars/all.yml": f"munge_key: {_KEY}\n"}, "secret-of-the-site", "all.yml:1"),
        ("munge_key", {"secrets.yml": 'munge_key: "{{ site_key }}"\n'}, "secret-of-the-site", "secrets.yml"),
    ],
)
def test_what_deploy_did_not_make_it_does_not_replace(
    tmp_path: Path, name: str, files: dict[str, str], reference: str, where: str
) -> None:
    run = run_on(read_site(write_site(tmp_path, files=files)), rotating(name), place=tmp_path)
    with pytest.raises(DeployError) as problem:
        refuse_rotation_of_others(run)
    (finding,) = problem.value.findings
    assert finding.reference == reference
    assert str(finding.where).endswith(where)
    assert _KEY not in str(problem.value)


def test_what_deploy_makes_it_replaces(inventory: Path, tmp_path: Path) -> None:
    refuse_rotation_of_others(run_on(read_site(inventory), rotating(*secret_names()), place=tmp_path))


@pytest.mark.parametrize("names", [("munge_kye",), ("munge_key", "users_accounts")])
def test_what_is_no_secret_is_refused_before_any_host_is_asked(
    machines: Machines, inventory: Path, names: tuple[str, ...]
) -> None:
    before = kept(inventory)
    with pytest.raises(DeployError) as refused:
        deploy_cluster(
            inventory, rotating(*names), PlainDisplay(lambda _: None), lambda: True, lambda _: None
        )
    assert refused.value.exit_code is ExitCode.BAD_INPUT
    assert [found.reference for found in refused.value.findings] == ["no-such-secret"]
    assert (kept(inventory), machines.ran, machines.looks) == (before, [], 0)


def test_what_is_to_be_typed_again_renews_what_is_not_yet_renewed() -> None:
    options = rotating("munge_key", "slurm_tokens_key")
    assert options.typed_secrets == " --rotate munge_key --rotate slurm_tokens_key"
    options.rotation.is_done = True
    assert options.typed_secrets == " --new-secrets"
    assert Options().typed_secrets == ""
