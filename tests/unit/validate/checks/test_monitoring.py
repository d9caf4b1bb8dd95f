"""What the monitoring says, judged: good, bad, and when there is nothing to judge."""

import pytest

from deploy.validate.answers import MONITORING
from deploy.validate.programs.monitoring import ask
from deploy.validate.result import Outcome
from deploy.validate.thresholds import Thresholds
from tests.unit.validate.clusters import ADDRESSES, GROUPS, Change, Cluster, by_outcome, expect_fault, reply
from tests.unit.validate.programs.test_monitoring import daemon, prometheus

CHECKS = ("prometheus", "targets", "alerts", "alertmanager", "grafana")
GONE = reply(None, why="Connection refused")
REFUSED = reply(401, why="HTTP status 401")


def _all_of_prometheus(answer: dict[str, object]) -> Change:
    def change(cluster: Cluster) -> None:
        said = cluster.watched["prometheus"]
        said |= dict.fromkeys(("ready", "runtime", "targets", "alerts"), answer)

    return change


def _says(daemon: str, what: str, answer: dict[str, object]) -> Change:
    def change(cluster: Cluster) -> None:
        cluster.watched[daemon][what] = answer

    return change


def _down(cluster: Cluster) -> None:
    for target in cluster.watched["prometheus"]["targets"]["data"]:
        if target["instance"] == "node2" or target["job"] == "mysqld":
            target |= {"health": "down", "error": "connection refused"}


def _forgotten(cluster: Cluster) -> None:
    said = cluster.watched["prometheus"]["targets"]
    said["data"] = [target for target in said["data"] if target["instance"] != "node1"]


def _nobody(cluster: Cluster) -> None:
    cluster.watched["prometheus"]["targets"]["data"] = []


def alert(name: str, instance: str = "node1", severity: str = "critical") -> dict[str, str]:
    since = "2026-11-22T04:50:42.790269085Z"
    return {"name": name, "instance": instance, "severity": severity, "since": since, "summary": "it is so"}


def _firing(*alerts: dict[str, str]) -> Change:
    return _says("prometheus", "alerts", reply(data=list(alerts)))


def _shut(cluster: Cluster) -> None:
    cluster.watched["doors"]["login1"] = "Connection refused"
    cluster.watched["pages"] |= {"Grafana": reply(502, why="HTTP status 502"), "Prometheus": GONE}


def _admins_refused(cluster: Cluster) -> None:
    cluster.admins["node2"] = {"admins": {"admin": "", "chief": "Permission denied"}}


SINCE = "since 2026-11-22 04:50 UTC: it is so"
WRONG: dict[str, tuple[str, Change, dict[str, str], str]] = {
    "Prometheus is down": (
        "prometheus",
        _all_of_prometheus(GONE),
        {"ctl1": "Prometheus at http://10.0.0.1:9090: Connection refused"},
        "journalctl -u prometheus -e   (on ctl1)",
    ),
    "Prometheus starts": (
        "prometheus",
        _says("prometheus", "ready", reply(503, why="HTTP status 503")),
        {"ctl1": "Prometheus at http://10.0.0.1:9090: HTTP status 503"},
        "journalctl -u prometheus -e   (on ctl1)",
    ),
    "Prometheus wants a password": (
        "prometheus",
        _all_of_prometheus(REFUSED),
        {"ctl1": "Prometheus at http://10.0.0.1:9090 wants a password: HTTP status 401"},
        "prometheus_scrape_settings, job prometheus",
    ),
    "Prometheus did not take its configuration": (
        "prometheus",
        _says("prometheus", "runtime", reply(data={"taken": False})),
        {"ctl1": "Prometheus works with an earlier configuration: it did not take its last one"},
        "promtool check config /etc/prometheus/prometheus.yml   (on ctl1)",
    ),
    "targets are down": (
        "targets",
        _down,
        {
            "node2": "job node is down: connection refused",
            "ctl1": "job mysqld is down: connection refused",
        },
        "systemctl status",
    ),
    "a host is not asked": (
        "targets",
        _forgotten,
        {"node1": "job node is missing: Prometheus does not ask it"},
        "deploy cluster inventory.ini",
    ),
    "nobody is asked": (
        "targets",
        _nobody,
        {
            **dict.fromkeys(("node1", "node2"), "job node is missing: Prometheus does not ask it"),
            "login1": "job blackbox is missing: Prometheus does not ask it; "
            "job node is missing: Prometheus does not ask it",
            "ctl1": "; ".join(
                f"job {job} is missing: Prometheus does not ask it"
                for job in ("alertmanager", "blackbox", "mysqld", "node", "prometheus", "slurm")
            ),
        },
        "deploy cluster inventory.ini",
    ),
    "alerts fire": (
        "alerts",
        _firing(alert("HostDown"), alert("DiskFull", "node2"), alert("QueueStuck", "")),
        {"node1": f"HostDown {SINCE}", "node2": f"DiskFull {SINCE}", "ctl1": f"QueueStuck {SINCE}"},
        "validation.yml",
    ),
    "many alerts fire": (
        "alerts",
        _firing(*(alert(f"A{number}") for number in range(5))),
        {"node1": f"A0 {SINCE}; A1 {SINCE}; A2 {SINCE}; and 2 more"},
        "docs/alerts.md",
    ),
    "Alertmanager is down": (
        "alertmanager",
        _says("alertmanager", "ready", GONE),
        {"ctl1": "Alertmanager at http://10.0.0.1:9093: Connection refused"},
        "systemctl status prometheus-alertmanager",
    ),
    "Alertmanager wants a password": (
        "alertmanager",
        _says("alertmanager", "ready", REFUSED),
        {"ctl1": "Alertmanager at http://10.0.0.1:9093 wants a password: HTTP status 401"},
        "job alertmanager",
    ),
    "Grafana is down": (
        "grafana",
        _says("grafana", "health", GONE),
        {"ctl1": "Grafana at http://10.0.0.1:3000: Connection refused"},
        "journalctl -u grafana-server -e",
    ),
    "Grafana's database": (
        "grafana",
        _says("grafana", "health", reply(503, {"database": "failing"}, "HTTP status 503")),
        {"ctl1": "Grafana's own database is failing"},
        "grafana-server",
    ),
    "Grafana refuses its admin": (
        "grafana",
        _says("grafana", "source", REFUSED),
        {"ctl1": "Grafana does not let its admin in: HTTP status 401"},
        "deploy cluster inventory.ini --limit ctl1 --full",
    ),
    "Grafana does not reach Prometheus": (
        "grafana",
        _says("grafana", "source", reply(400, {"status": "ERROR", "message": "no host"}, "HTTP status 400")),
        {"ctl1": "Grafana does not reach Prometheus: no host"},
        "prometheus_web, grafana_prometheus_settings",
    ),
    "Grafana has no such source": (
        "grafana",
        _says("grafana", "source", reply(404, {"status": "", "message": ""}, "HTTP status 404")),
        {"ctl1": "Grafana does not reach Prometheus: HTTP status 404"},
        "prometheus_web, grafana_prometheus_settings",
    ),
    "Grafana's answer is none": (
        "grafana",
        _says("grafana", "source", reply(200, None, "its answer is not understood")),
        {"ctl1": "Grafana's source of data at http://10.0.0.1:3000: its answer is not understood"},
        "--full",
    ),
    "ways in are shut": (
        "portals",
        _shut,
        {
            "login1": "sshd: Connection refused",
            "ctl1": "Prometheus: Connection refused; Grafana: HTTP status 502",
        },
        "(on ",
    ),
    "an admin is refused": (
        "admin-logins",
        _admins_refused,
        {"node2": "chief would be refused: Permission denied"},
        "deploy cluster inventory.ini --limit node2 --full",
    ),
}


@pytest.mark.parametrize(("check", "change", "messages", "hint"), WRONG.values(), ids=WRONG)
def test_a_fault_is_found_where_it_is(
    check: str, change: Change, messages: dict[str, str], hint: str
) -> None:
    expect_fault(check, change, messages, hint)


def test_what_a_real_prometheus_said() -> None:
    with daemon(prometheus()) as place:
        said = ask({"prometheus": place, "doors": []})
    cluster = Cluster()
    cluster.watched["prometheus"] = said["prometheus"]
    assert by_outcome(cluster.results("prometheus"), Outcome.PASSED).keys() == {"ctl1"}
    found = by_outcome(cluster.results("targets"), Outcome.FAILED)
    assert found.keys() == {"node1"}
    assert found["node1"].startswith('job node is down: Get "http://10.213.5.11:9100/metrics": dial tcp')
    assert by_outcome(cluster.results("alerts"), Outcome.FAILED) == {
        "node2": "SlurmdStopped since 2026-11-22 04:50 UTC: slurmd does not run on node2"
    }


def test_what_does_not_answer_says_nothing_of_others() -> None:
    cluster = Cluster()
    _all_of_prometheus(GONE)(cluster)
    for name in ("targets", "alerts"):
        assert by_outcome(cluster.results(name), Outcome.NOT_MEASURED) == {
            "ctl1": "Prometheus at http://10.0.0.1:9090: Connection refused"
        }
    cluster = Cluster()
    cluster.watched["prometheus"]["runtime"] = reply(200, None, "its answer is not understood")
    assert by_outcome(cluster.results("prometheus"), Outcome.NOT_MEASURED).keys() == {"ctl1"}


def test_a_target_that_was_not_asked_yet_is_not_measured() -> None:
    cluster = Cluster()
    for target in cluster.watched["prometheus"]["targets"]["data"]:
        target["health"] = "unknown" if target["instance"] == "node2" else "up"
    assert by_outcome(cluster.results("targets"), Outcome.NOT_MEASURED) == {
        "node2": "Prometheus has not asked it yet: job node"
    }
    assert by_outcome(cluster.results("targets"), Outcome.PASSED).keys() == ADDRESSES.keys() - {"node2"}


def test_alerts_that_may_fire_and_notices_are_no_finding() -> None:
    cluster = Cluster(thresholds=Thresholds(alerts_that_may_fire=("HomeFull",)))
    _firing(alert("HomeFull"), alert("HostRestarted", severity="info"))(cluster)
    assert by_outcome(cluster.results("alerts"), Outcome.PASSED) == {
        "ctl1": "none fires; passed over: HomeFull, HostRestarted"
    }
    _firing(alert("HomeFull"), alert("DiskFull"))(cluster)
    assert by_outcome(cluster.results("alerts"), Outcome.FAILED) == {"node1": f"DiskFull {SINCE}"}


def test_a_cluster_that_nobody_watches() -> None:
    unwatched = Cluster(groups={**GROUPS, "slurm-metric": ()})
    unwatched.monitoring = {
        "prometheus": None,
        "alertmanager": None,
        "grafana": None,
        "pages": {},
        "doors": {},
    }
    for name in CHECKS:
        (result,) = unwatched.results(name)
        assert result.outcome is Outcome.NOT_APPLICABLE
        assert result.message == "the cluster is not watched: slurm-metric has no host"
    unwatched.watched["doors"] = {"login1": ""}
    assert by_outcome(unwatched.results("portals"), Outcome.PASSED) == {"login1": "answers"}


def test_a_site_without_grafana() -> None:
    cluster = Cluster()
    cluster.watched["grafana"] = None
    assert by_outcome(cluster.results("grafana"), Outcome.NOT_APPLICABLE) == {
        "": "the site has no Grafana (grafana_source: none)"
    }


@pytest.mark.parametrize("name", [*CHECKS, "portals"])
def test_a_host_that_could_not_be_asked(name: str) -> None:
    lost = Cluster(monitoring=None)
    lost.silent[MONITORING, "ctl1"] = "'site_word' is undefined"
    assert by_outcome(lost.results(name), Outcome.NOT_MEASURED) == {
        "ctl1": "its host could not be asked: 'site_word' is undefined"
    }


def test_gates_of_which_nothing_is_known() -> None:
    cluster = Cluster(admins={"node1": {"admins": {}}})
    assert by_outcome(cluster.results("admin-logins"), Outcome.NOT_MEASURED) == {
        "node1": "no account there belongs to an admin",
        "node2": "PAM could not be asked there",
    }
    open_ = Cluster(variables={"job_ssh_admits": "everyone"})
    assert by_outcome(open_.results("admin-logins"), Outcome.NOT_APPLICABLE) == {
        "": "no compute node is closed to logins"
    }
