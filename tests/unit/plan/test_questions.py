import json
from pathlib import Path
from typing import Any

import pytest

from deploy.content import roles
from deploy.plan.catalog import PHASES
from deploy.plan.declarations import service
from deploy.plan.questions import asked_hosts, services_by_host, write_questions
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import write_site

NUMBERS = "prometheus-node-exporter"
WATCHING = (
    "slurm_metrics",
    "prometheus-mysqld-exporter",
    "prometheus-blackbox-exporter",
    "prometheus-alertmanager",
    "prometheus",
    "grafana-server",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return read_site(write_site(tmp_path_factory.mktemp("site")))


def test_every_host_should_run_the_daemons_of_its_phases(site: Site) -> None:
    assert services_by_host(site, {}) == {
        "ctl1": ("chrony", "mariadb", "munge", "slurmdbd", "slurmctld", NUMBERS, *WATCHING),
        "login1": ("chrony", "munge", "sackd", NUMBERS),
        "node1": ("chrony", "munge", "slurmd", NUMBERS, "gpu_exporter"),
        "node2": ("chrony", "munge", "slurmd", NUMBERS, "gpu_exporter"),
    }


def test_every_role_that_runs_a_daemon_is_known_by_it() -> None:
    used = {role for phase in PHASES for role in phase.roles} - {
        "openmpi",  # that of slurmd
        *("deploy_metrics", "slurm_budgets", "slurm_groups"),  # timers
        "slurm_packages",  # those of the other roles, in an upgrade
        "network_mounts",  # ends as soon as all is mounted
    }
    assert {role for role in used if _runs_a_daemon(role)} == {role for role in used if service(role)}


def _runs_a_daemon(role: str) -> bool:
    files = [roles() / role / "tasks" / name for name in ("main.yml", "start.yml", "run.yml")]
    tasks = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
    return "service_current:" in tasks or "slurmctld_config:" in tasks


def test_controllers_are_asked_for_the_sake_of_others(site: Site) -> None:
    assert asked_hosts(site) == ("ctl1", "login1", "node1", "node2")
    assert asked_hosts(site, {"node2"}) == ("ctl1", "node2")


def test_what_each_host_is_asked(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "questions.json"
    write_questions(path, site, ["ctl1", "node1"], {})
    source = json.loads(path.read_text())
    hosts: dict[str, Any] = source["all"]["children"]["phase_status"]["hosts"]
    assert hosts["ctl1"] == {
        "ansible_become": False,
        "status_services": ["chrony", "mariadb", "munge", "slurmdbd", "slurmctld", NUMBERS, *WATCHING],
        "status_asks_slurm": True,
    }
    assert hosts["node1"]["status_asks_slurm"] is False
    assert hosts["node1"]["status_contract"]["gpus"] == [{"type": "a100", "count": 2}]
