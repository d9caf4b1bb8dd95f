"""A cluster that is watched: all targets answer, a new node does at once, a fault is told and taken back.

Every panel of every dashboard has data while jobs run, and the pages of Prometheus show what they should.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest
import yaml
from playwright.sync_api import expect

from tests.cluster.browser import browser_page, visit
from tests.cluster.dashboard_queries import Unanswered, ask, broken_rules, data, unanswered
from tests.cluster.faults import WATCHED
from tests.cluster.jobs import wait_for_job
from tests.cluster.lab_cluster import Cluster, booted, wait_until
from tests.cluster.search import in_files, in_journal
from tests.cluster.validated import expect_found, validated
from tests.planted import holders

pytestmark = pytest.mark.more

WEBHOOK = Path(__file__).parents[2] / "molecule/shared/webhook.py"
NOTES = "/srv/told"
SETTINGS = """
prometheus_scrape_interval: 2s
prometheus_evaluation_interval: 2s
prometheus_rules:
  - name: of the test
    rules:
      - alert: SlurmdStopped
        expr: node_systemd_unit_state{{name="slurmd.service", state="active"}} == 0
        labels: {{severity: critical}}
        annotations: {{summary: !unsafe "slurmd does not run on {{{{ $labels.instance }}}}"}}
alertmanager_group_wait: 1s
alertmanager_group_interval: 1s
alertmanager_receivers:
  - name: test
    webhook_configs:
      - url: http://{webhook}:9999/
"""
PLANTED = f"pl4nted{token_hex(16)}"
_LOGIN = {"basic_auth": {"username": "x", "password": PLANTED}}
WITH_PASSWORDS = {
    "alertmanager_global": {
        "smtp_smarthost": "mail.example:25",
        "smtp_from": "a@b.example",
        "smtp_auth_password": PLANTED,
    },
    "blackbox_exporter_modules": {"planted": {"prober": "http", "http": _LOGIN}},
    "prometheus_scrape_configs": [{"job_name": "planted", "static_configs": [], **_LOGIN}],
}
OFTEN = "slurm_metrics_interval: 10\nslurm_metrics_slow_interval: 20\n"
# What simulated hardware does not tell; tests/integration/test_dashboards.py has it from recordings.
REAL_HARDWARE = frozenset(
    {
        "a GPU",
        "a GPU and dcgm-exporter",
        "GPUs with NVLink",
        "an NVIDIA driver",
        "an InfiniBand card",
        "sensors",
        "NFS mounts",
    }
)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one node, whose alerts go to its login node."""
    with booted("watched", tmp_path_factory, "--nodes", "1", "--gpus", "2", "--monitoring") as made:
        program = WEBHOOK.read_text()
        run = ("systemd-run", "--unit=webhook", "python3", "-c", program, "0.0.0.0", "9999", NOTES)  # noqa: S104
        made.on("login1", *run)
        variables = made.directory / "group_vars/slurm-metric.yml"
        settings = SETTINGS.format(webhook=address(made, "login1")) + yaml.safe_dump(WITH_PASSWORDS)
        variables.write_text(variables.read_text() + settings)
        variables.chmod(0o600)  # receivers may have tokens in them
        with (made.directory / "group_vars/slurm-master.yml").open("a") as variables_of_slurm:
            variables_of_slurm.write(OFTEN)
        made.deploy("--diff", "-vvv")
        yield made


@pytest.fixture(scope="module")
def busy(watched: Cluster) -> Iterator[Cluster]:
    """Jobs of two users have ended, run and wait; node2 is drained, and its slurmd does not run."""
    node2 = ("nodename=node2", "state=drain", "reason=test")
    watched.on("ctl1", "scontrol", "update", *node2)
    watched.on("node2", "systemctl", "stop", "slurmd")
    ended, running, waiting = (
        watched.as_user(f"sbatch --parsable --time=10 --output=/dev/null {options}", user=user).strip()
        for user, options in (
            ("bob", "--wrap=true"),
            ("alice", "--gpus=1 --wrap='sleep 600'"),
            ("bob", "--gpus=2 --wrap=true"),
        )
    )
    wait_for_job(watched, ended, "COMPLETED")
    wait_for_job(watched, running, "RUNNING")
    yield watched
    watched.on("ctl1", "scancel", running, waiting)
    watched.on("node2", "systemctl", "start", "slurmd")


def address(cluster: Cluster, host: str) -> str:
    """The address that the inventory has."""
    found = re.search(rf"^{host} .*ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert found
    return found[1]


def page_of(cluster: Cluster, port: int) -> str:
    """What an admin opens in a browser."""
    return f"http://{address(cluster, 'ctl1')}:{port}"


def targets(cluster: Cluster) -> dict[tuple[str, str], str]:
    """Job and instance of every target -> whether it answers."""
    active = data(page_of(cluster, 9090), "targets", state="active")["activeTargets"]
    return {(target["labels"]["job"], target["labels"]["instance"]): target["health"] for target in active}


def start(cluster: Cluster) -> str:
    return cluster.on(
        "ctl1", "systemctl", "show", "--property=InactiveExitTimestampMonotonic,MainPID", "prometheus"
    )


def told(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Status, name and host of every alert that was delivered."""
    lines = cluster.on("login1", "cat", NOTES, expect=None).splitlines()
    messages = [json.loads(line.partition(" ")[2]) for line in lines]
    return [
        (alert["status"], alert["labels"]["alertname"], alert["labels"]["instance"])
        for message in messages
        for alert in message["alerts"]
    ]


def test_passwords_are_where_their_services_read_them_and_nowhere_else(watched: Cluster) -> None:
    site = watched.directory
    assert holders([site], [PLANTED]) == [site / "group_vars/slurm-metric.yml"]
    assert not in_journal(watched, "ctl1", [PLANTED])
    found = in_files(watched, "ctl1", [PLANTED])
    assert found.keys() == {
        f"/etc/prometheus/{name}.yml" for name in ("prometheus", "alertmanager", "blackbox")
    }
    assert {mode[-3:] for mode in found.values()} == {"---"}


def test_all_targets_answer(watched: Cluster) -> None:
    wait_until("all answer", lambda: set(targets(watched).values()) == {"up"}, 60)
    nodes = {instance for job, instance in targets(watched) if job == "node"}
    assert nodes == {"ctl1", "login1", "node1"}
    assert {"node", "prometheus", "alertmanager"} <= {job for job, _ in targets(watched)}


def test_a_rerun_changes_nothing(watched: Cluster) -> None:
    watched.deploy("--full")
    assert not any(host["changed"] for host in watched.report()["hosts"].values())


def test_a_new_node_is_asked_without_a_restart(watched: Cluster) -> None:
    before = start(watched)
    watched.up("--nodes", "2", "--write-inventory")
    watched.deploy("--limit", "node2")
    wait_until("node2 answers", lambda: targets(watched).get(("node", "node2")) == "up", 60)
    assert start(watched) == before


def test_a_stopped_daemon_is_told_and_taken_back(watched: Cluster) -> None:
    watched.on("node1", "systemctl", "stop", "slurmd")
    wait_until("it is told", lambda: ("firing", "SlurmdStopped", "node1") in told(watched), 60)
    watched.on("node1", "systemctl", "start", "slurmd")
    wait_until("it is taken back", lambda: ("resolved", "SlurmdStopped", "node1") in told(watched), 60)
    assert {(name, host) for _, name, host in told(watched)} == {("SlurmdStopped", "node1")}


def test_a_watched_cluster_passes(watched: Cluster) -> None:
    names = ("prometheus", "targets", "alerts", "alertmanager", "grafana", "portals")
    found = validated(watched, *(word for name in names for word in ("--only", name)), expect=0)
    outcomes = {name: check["outcome"] for name, check in found.items()}
    assert outcomes == {**dict.fromkeys(names, "passed"), "grafana": "not applicable"}


@pytest.mark.parametrize("group", WATCHED)
def test_every_fault_is_found_where_it_is(watched: Cluster, group: str) -> None:
    expect_found(watched, WATCHED[group])


def test_every_panel_of_every_dashboard_has_data(busy: Cluster) -> None:
    answers = ask(page_of(busy, 9090))
    silent: list[Unanswered] = []

    def all_have() -> bool:
        silent[:] = [one for one in unanswered(answers) if one.needs not in REAL_HARDWARE]
        return not silent

    try:
        wait_until("all have data", all_have, 60)
    except AssertionError:
        assert silent == []


def test_no_rule_fails(watched: Cluster) -> None:
    assert broken_rules(page_of(watched, 9090)) == {}


def test_the_page_of_prometheus_answers_a_query_and_lists_targets(watched: Cluster) -> None:
    """The page that the distribution's package has; it asks and draws by itself, in the browser."""
    with browser_page() as page:
        visit(page, page_of(watched, 9090))
        page.locator("textarea[name=expr]").fill('up{job="node"}')
        page.get_by_role("button", name="Execute").click()
        rows = page.locator(".console_table tbody tr", has_text="up{")
        hosts = {instance for job, instance in targets(watched) if job == "node"}
        expect(rows).to_have_count(len(hosts))
        for host in hosts:
            expect(rows.filter(has_text=f'instance="{host}"').locator("td").last).to_have_text("1")
        page.get_by_role("tab", name="Graph").click()
        expect(page.locator(".rickshaw_legend li")).to_have_count(len(hosts))
        expect(page.locator(".rickshaw_graph svg path.path[stroke]")).to_have_count(len(hosts))
        page.get_by_role("button", name="Status").click()
        page.get_by_role("link", name="Targets").click()
        shown = page.locator("tbody tr:visible")
        for job, instance in targets(watched):
            named = shown.filter(has_text=f'instance="{instance}"').filter(has_text=f'job="{job}"')
            expect(named.locator(".state").first).to_have_text("up", ignore_case=True)
        page.get_by_text("Unhealthy").click()
        expect(shown).to_have_count(0)


def test_pages_show_an_alert_while_it_fires(busy: Cluster) -> None:
    """Alertmanager's package has no page of its own, and says so; what fires is read from it as data."""
    wait_until("it is told", lambda: ("firing", "SlurmdStopped", "node2") in told(busy), 60)
    with browser_page() as page:
        visit(page, page_of(busy, 9090))
        page.get_by_role("link", name="Alerts").click()
        alert = page.locator("tr.alert_header.alert-danger", has_text="SlurmdStopped")
        expect(alert).to_contain_text("(1 active)")
        details = page.locator("tr.alert_header:has-text('SlurmdStopped') + tr")
        expect(details).to_be_hidden()
        alert.click()
        expect(details.locator("table tr", has_text='instance="node2"')).to_contain_text(
            "firing", ignore_case=True
        )
        visit(page, page_of(busy, 9093))
        expect(page).to_have_title("Alertmanager")
        expect(page.locator("body")).to_contain_text("amtool")
        visit(page, f"{page_of(busy, 9093)}/api/v2/alerts")
        told_here = json.loads(page.locator("pre").inner_text())
        assert ("SlurmdStopped", "node2", "active") in {
            (one["labels"]["alertname"], one["labels"]["instance"], one["status"]["state"])
            for one in told_here
        }
