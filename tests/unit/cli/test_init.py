import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.app import app
from deploy.errors import DeployError, ExitCode
from deploy.site.checks import check_site
from deploy.site.inventory import read_site

RUNNER = CliRunner()
BIN = Path(sys.executable).parent


def init(*arguments: str) -> str:
    return RUNNER.invoke(app, ["init", *arguments], catch_exceptions=False).output


def refused(*arguments: str) -> DeployError:
    with pytest.raises(DeployError) as caught:
        init(*arguments)
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    return caught.value


def test_a_site_of_named_hosts_is_healthy(tmp_path: Path) -> None:
    site = tmp_path / "site"
    said = init(str(site), "--controller", "ctl1", "--nodes", "node[01-12],gpu1", "--login", "login[1-2]")
    assert f"deploy check {site}/inventory.ini" in said
    found = read_site(site / "inventory.ini")
    assert len(found.nodes) == 13
    assert {"node01", "node12", "gpu1"} <= {host.name for host in found.nodes}
    assert len(found.logins) == 2
    assert check_site(found) == []


def test_one_machine_may_be_everything(tmp_path: Path) -> None:
    site = tmp_path / "site"
    init(str(site), "--controller", "box", "--nodes", "box")
    assert list(read_site(site / "inventory.ini").hosts) == ["box"]


def test_it_says_every_file_it_makes(tmp_path: Path) -> None:
    site = tmp_path / "site"
    said = init(str(site))
    made = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    assert made == {
        line.split()[0] for line in said.splitlines() if line.startswith("  ") and "$EDITOR" not in line
    } - {"deploy"}


@pytest.mark.parametrize(
    ("arguments", "references"),
    [
        (["--nodes", "node["], ["invalid-option"]),
        (["--login", "login1,,login2["], ["invalid-option"]),
        (["--user", "two words"], ["invalid-option"]),
        (["--user", "admin\nansible_become=false"], ["invalid-option"]),
        (["--controller", "ctl1"], ["no-slurm-node"]),
        (["--nodes", "node1"], ["no-slurm-master"]),
        (["--controller", "ctl1", "--nodes", "n.example.com"], ["invalid-host-name"]),
        (["--controller", "ctl[1-2]", "--nodes", "node1"], ["invalid-host-name"]),
        (["--controller", "x\n[other]", "--nodes", "node1"], ["invalid-host-name"]),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    tmp_path: Path, arguments: list[str], references: list[str]
) -> None:
    problem = refused(str(tmp_path / "site"), *arguments)
    assert [finding.reference for finding in problem.findings] == references
    assert list(tmp_path.iterdir()) == []


def test_secrets_may_be_encrypted_from_the_start(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse battery staple\n")
    init(str(tmp_path / "site"), "--vault-password-file", str(password))
    secrets = tmp_path / "site" / "secrets.yml"
    assert secrets.read_text().startswith("$ANSIBLE_VAULT;")
    assert secrets.stat().st_mode & 0o777 == 0o600


def test_schema_prints_what_init_writes(tmp_path: Path) -> None:
    init(str(tmp_path / "site"))
    printed = RUNNER.invoke(app, ["schema"], catch_exceptions=False).output
    assert printed == (tmp_path / "site" / "group_vars.schema.json").read_text()
    assert "slurmctld_partitions" in json.loads(printed)["properties"]


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_it_says_how_a_team_shares_the_secrets(tmp_path: Path, is_encrypted: bool) -> None:  # noqa: FBT001
    """Step by step, and as typed: a colleague's copy without them is refused."""
    site, password = tmp_path / "site", tmp_path / "password"
    password.write_text("word\n")
    said = init(str(site), *(["--vault-password-file", str(password)] if is_encrypted else []))
    steps = [line.partition(". ")[2] for line in said.splitlines() if line[:1].isdigit()]
    typed = [step.replace("FILE", str(password)) for step in steps]
    assert f"deploy cluster {site}/inventory.ini --vault-password-file {password}" == typed.pop()
    for command in typed:
        subprocess.run(
            ["sh", "-c", command], check=True, env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
        )
    assert (site / "secrets.yml").read_text().startswith("$ANSIBLE_VAULT;")
    assert ".deploy/" in (site / ".gitignore").read_text().splitlines()
    assert "secrets.yml\n" not in (site / ".gitignore").read_text()
