"""The example sites after the guides of real clusters."""

from pathlib import Path

import pytest

from deploy.plan.build import build_plan
from deploy.site.checks import site_findings
from deploy.site.hardware import declared
from deploy.site.inventory import read_site
from deploy.site.secrets import fill_secrets, secrets_file
from tests.tracked import copy_tracked, tracked

SITES = Path(__file__).parents[3] / "inventory" / "sites"
NAMES = ("alex", "juwels-booster", "lrz-ai", "raven", "tcg-crest")
GPUS = {
    "alex": {"a0424": {"a40": 8}},
    "juwels-booster": {"jwb0001": {"a100": 4}},
    "lrz-ai": {
        "lrz-hgx-h100-001": {"h100": 4},
        "lrz-hgx-a100-001": {"a100": 4},
        "lrz-dgx-a100-001": {"a100": 8},
        "lrz-dgx-1-001": {"v100": 8},
        "lrz-dgx-1-002": {"p100": 8},
        "lrz-hpe-p100-001": {"p100": 4},
        "lrz-v100-001": {"v100": 2},
        "lrz-cpu-001": {},
    },
    "raven": {"ravg1001": {"a100": 4}, "ravg1101": {"a100": 4}},
}

pytestmark = pytest.mark.usefixtures("quick_reading")


@pytest.fixture(params=NAMES)
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The inventory of a copy of a site, in which secrets can be made."""
    return copy_tracked(f"inventory/sites/{request.param}", tmp_path / str(request.param)) / "inventory.ini"


def test_all_sites_are_tested() -> None:
    assert sorted(path.name for path in SITES.iterdir()) == sorted(NAMES)


def test_nothing_is_wrong_with_it(copy: Path) -> None:
    site = read_site(copy)
    assert fill_secrets(site, None)
    assert secrets_file(site).exists()
    assert [str(finding) for finding in site_findings(site)] == []


def test_a_whole_deployment_can_be_planned(copy: Path) -> None:
    site = read_site(copy)
    contract = {node.name: {"cpus": 2, "memory_mb": 900, "gpus": []} for node in site.nodes}
    planned = {step.phase.group for step in build_plan(site, contract).steps}
    assert planned >= {"phase_controller", "phase_compute"}


def test_it_holds_no_secret() -> None:
    names = {"secrets.yml", "hardware.yml", ".deploy"}
    assert [str(path) for path in tracked("inventory/sites") if names & {*path.parts}] == []


def test_it_fits_a_small_machine(copy: Path) -> None:
    """Declared CPUs or memory would refuse every machine of a rehearsal."""
    assert {key for node in read_site(copy).nodes for key in declared(node)} <= {"gpus"}


@pytest.mark.parametrize("name", GPUS)
def test_node_types_have_the_gpus_of_the_guide(name: str) -> None:
    site = read_site(SITES / name / "inventory.ini")
    for node, gpus in GPUS[name].items():
        assert {gpu["type"]: gpu["count"] for gpu in declared(site.hosts[node])["gpus"]} == gpus
