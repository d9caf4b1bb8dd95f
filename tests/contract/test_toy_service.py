"""A new service is a directory of its own and one line: all else follows from what its role declares."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.toy import python, with_toy
from tests.tracked import ROOT, tracked
from tests.unit.site.sites import INVENTORY, write_site

_LISTING = """
import json, sys
from pathlib import Path
from deploy.plan.build import build_plan
from deploy.plan.fingerprint import plays
from deploy.plan.probes import probes
from deploy.plan.questions import asked_hosts, write_questions
from deploy.plan.generated_inventory import generated_inventory
from deploy.content import content_root
from deploy.site.inventory import read_site
site = read_site(Path(sys.argv[1]))
write_questions(Path(sys.argv[2]), site, asked_hosts(site, None), {})
print(json.dumps({
    "generated": generated_inventory(site, build_plan(site), {})["all"]["children"],
    "questions": json.loads(Path(sys.argv[2]).read_text()),
    "play": plays(content_root())["phase_toy"],
    "probes": probes("toy"),
}))
"""
_WATCHING = f"{INVENTORY}\n[slurm-metric]\nlogin1\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_toy(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def derived(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What deploy makes of a site with the toy."""
    place = tmp_path_factory.mktemp("site")
    questions = str(place / "questions.json")
    said = python(project, "-c", _LISTING, str(write_site(place, _WATCHING)), questions)
    found: dict[str, Any] = json.loads(said)
    return found


def test_one_line_is_written_elsewhere(project: Path) -> None:
    changed = {
        str(path.relative_to(ROOT)): len(new) - len(old)
        for path in tracked()
        if (new := _lines(project / path.relative_to(ROOT))) != (old := _lines(path))
    }
    made = {
        name for name in changed if name.startswith(("docs/", "inventory/example/", "playbooks/cluster.yml"))
    }
    assert {name: changed[name] for name in changed.keys() - made} == {"deploy/plan/catalog.py": 1}


def test_it_has_its_turn_on_its_hosts(derived: dict[str, Any]) -> None:
    assert set(derived["generated"]["phase_toy"]["hosts"]) == {"login1"}
    assert "name: toy\n        rolespec_validate: false" in derived["play"]


def test_it_is_watched_and_walled(derived: dict[str, Any]) -> None:
    login = derived["generated"]["phase_check"]["hosts"]["login1"]
    assert login["toy_listen_address"] == "10.0.0.2"
    assert "9999" in login["firewall_guarded"][0]["ports"]
    assert "toy" in login["prometheus_jobs"]
    targets = derived["generated"]["phase_targets"]["vars"]["scrape_targets_jobs"]
    assert [target["targets"] for target in targets["toy"]] == [["10.0.0.2:9999"]]


def test_its_port_is_checked_before_it_comes(derived: dict[str, Any]) -> None:
    ports = derived["generated"]["phase_check"]["hosts"]["login1"]["host_check_host"]["ports"]
    assert [port["daemon"] for port in ports if port["setting"] == "toy_port"] == ["python3"]


def test_the_status_and_the_records_ask_for_it(derived: dict[str, Any]) -> None:
    assert "toy" in json.dumps(derived["questions"])
    assert [probe["name"] for probe in derived["probes"]] == ["what the toy serves"]


def test_it_is_documented(project: Path) -> None:
    assert "`toy_port`" in (project / "docs/variables.md").read_text(encoding="utf-8")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()
