import json
from pathlib import Path

from typer.testing import CliRunner

from deploy.cli.app import app
from tests.unit.site.sites import write_site

WRONG = {"group_vars/all.yml": "slurmctld_cluster_nam: x\nusers_accounts: 3\n"}


def test_a_wrong_site_is_told_to_programs_as_hosts_are(tmp_path: Path) -> None:
    inventory = write_site(tmp_path, files=WRONG)
    before = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    answer = CliRunner().invoke(app, ["check", str(inventory), "--json"])
    assert answer.exit_code == 2
    data = json.loads(answer.stdout)
    assert (data["exit_code"], data["hosts"]) == (2, {})
    assert {finding["reference"] for finding in data["findings"]} == {"unknown-variable", "invalid-value"}
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_no_inventory_is_told_to_programs_too(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["check", str(tmp_path / "none.ini"), "--json"])
    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["findings"][0]["reference"] == "inventory-not-found"
