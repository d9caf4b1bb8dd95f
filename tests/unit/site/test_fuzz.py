"""Whatever is in a site's files: findings, and never a traceback; and what passes can be planned."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from deploy.errors import DeployError, Severity
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.checks import site_findings
from deploy.site.hardware import read_contract
from deploy.site.inventory import read_site
from tests.unit.site.conftest import Answer
from tests.unit.site.guesses import files, inventories, one_variable, sound_variables
from tests.unit.site.sites import INVENTORY, write_site


def bounded(examples: int) -> settings:
    """The same examples on every run, and not many."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


@pytest.fixture(scope="module", autouse=True)
def quick(quick_answer: Answer) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deploy.site.reading._answer", quick_answer)
        yield


def judge(inventory: str, texts: Mapping[str, str]) -> None:
    """Reads, checks and, where nothing is wrong, plans a site."""
    with tempfile.TemporaryDirectory() as directory:
        path = write_site(Path(directory), inventory, texts)
        try:
            site = read_site(path)
            findings = site_findings(site)
        except DeployError as problem:
            findings = list(problem.findings)
            assert findings
        else:
            if all(finding.severity is Severity.WARNING for finding in findings):
                contract = read_contract(site)
                generated_inventory(site, build_plan(site, contract), contract)
        assert all(finding.message and finding.hint and finding.where for finding in findings)


@bounded(120)
@given(text=one_variable)
def test_one_variable(text: str) -> None:
    judge(INVENTORY, {"group_vars/all.yml": text})


@bounded(50)
@given(everywhere=sound_variables, more=sound_variables)
def test_variables_of_the_right_form(everywhere: str, more: str) -> None:
    judge(INVENTORY, {"group_vars/all.yml": everywhere, "group_vars/slurm-cluster.yml": more})


@bounded(50)
@given(inventory=inventories, texts=files)
def test_everything(inventory: str, texts: dict[str, str]) -> None:
    judge(inventory, texts)
