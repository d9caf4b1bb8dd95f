"""Alerts: each is explained, and watches something that exporters tell."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from deploy.engine.alerts import PARTS
from deploy.monitoring.alert import Alert
from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.queries import metrics_in
from deploy.monitoring.recording import GROUPS
from deploy.monitoring.rules_file import RUNBOOKS, rule_files
from deploy.monitoring.runbooks import runbooks
from tests.unit.monitoring.exporters import told

ALERTS = [alert for chapter in CHAPTERS for alert in chapter.alerts]
RECORDED = {rule.record: rule.expr for rules in GROUPS.values() for rule in rules}
LEAST = 30


def name_of(alert: Alert) -> str:
    return alert.name


def sources(names: set[str]) -> set[str]:
    """The exporters' metrics behind names, through the recording rules."""
    found = set()
    for name in names:
        # A rule that remembers names itself, too.
        found |= sources(metrics_in(RECORDED[name]) - {name}) if name in RECORDED else {name}
    return found


def test_there_are_as_many_as_a_cluster_needs() -> None:
    assert len(ALERTS) >= LEAST
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_it_watches_what_exporters_tell(alert: Alert) -> None:
    assert metrics_in(alert.expr)
    assert sources(metrics_in(alert.expr)) <= told()


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_it_is_tried_with_what_it_watches(alert: Alert) -> None:
    watched = sources(metrics_in(alert.expr))
    for series in (alert.sick, alert.well):
        assert {name.partition("{")[0] for name in series} <= watched


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_it_is_explained(alert: Alert) -> None:
    assert re.fullmatch(r"[A-Z][A-Za-z]+", alert.name)
    assert alert.means.endswith(".")
    assert alert.look.endswith(".")
    assert alert.commands
    assert f"\n### {alert.name}\n" in runbooks()


_OF_ROOT = frozenset(
    {
        *("dmesg", "du", "ethtool", "exportfs", "ibdiagnet", "ibstat", "ipmitool", "journalctl", "lspci"),
        *("mariadb", "mariadb-admin", "node_health", "promtool", "ras-mc-ctl", "smartctl", "tail"),
        *("scontrol update", "scontrol reboot", "scontrol reconfigure"),
        *("systemctl restart", "systemctl start"),
    }
)
"""What an admin's own account does not find, is refused, or, worse, is shown less by."""
_SUBJECTS_OF_NVIDIA_SMI = frozenset(
    {
        *("MEMORY", "UTILIZATION", "ECC", "TEMPERATURE", "POWER", "CLOCK", "COMPUTE", "PIDS", "PERFORMANCE"),
        *("SUPPORTED_CLOCKS", "PAGE_RETIREMENT", "ACCOUNTING", "ENCODER_STATS", "VOLTAGE", "FBC_STATS"),
        *("SUPPORTED_GPU_TARGET_TEMP", "ROW_REMAPPER", "GSP_FIRMWARE_VERSION", "POWER_SMOOTHING"),
        "POWER_PROFILES",
    }
)
"""By NVIDIA's documentation of nvidia-smi."""


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_its_commands_can_be_typed_by_an_admin(alert: Alert) -> None:
    for line in alert.commands:
        answer = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)
        assert (line, answer.stderr) == (line, "")
        words = shlex.split(line, comments=True)
        if words[0] == "ssh":
            words = words[2:]
        assert not _OF_ROOT & {words[0], " ".join(words[:2])}, line
        assert "sacct" not in words or "--allusers" in words, line
        for option in words:
            name, _, subjects = option.partition("=")
            if name == "--display":
                assert {*subjects.split(",")} <= _SUBJECTS_OF_NVIDIA_SMI, line


def test_recording_rules_record_what_exporters_tell() -> None:
    for name, expr in RECORDED.items():
        assert sources(metrics_in(expr)) <= told(), name


def test_texts_and_queries_come_through_yaml_as_they_are() -> None:
    rules = {
        rule.get("alert") or rule["record"]: rule
        for _, text in rule_files()
        for group in yaml.safe_load(text)["groups"]
        for rule in group["rules"]
    }
    for alert in ALERTS:
        assert rules[alert.name]["expr"] == alert.expr
        assert rules[alert.name]["annotations"]["summary"] == alert.summary
        assert rules[alert.name]["annotations"]["description"] == alert.means
        assert rules[alert.name].get("for", "0m") == f"{alert.minutes}m"
        assert rules[alert.name]["labels"].get("repair", "") == alert.repair
    for name, expr in RECORDED.items():
        assert rules[name]["expr"] == expr


def test_every_rule_leads_to_its_runbook() -> None:
    page = (Path(__file__).parents[3] / RUNBOOKS).read_text(encoding="utf-8")
    anchors = {title.lower() for title in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    count = 0
    for _, text in rule_files():
        for group in yaml.safe_load(text)["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    count += 1
                    page_name, _, anchor = rule["annotations"]["runbook_url"].partition("#")
                    assert page_name == "{{ $externalLabels.runbooks }}" + RUNBOOKS
                    assert anchor in anchors
                    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert count == len(ALERTS)


def test_what_repairs_take_is_known_to_them_and_names_its_part() -> None:
    taken = {alert.name: alert for alert in ALERTS if alert.repair}
    assert {"GpuXidOfItsOwn", "GpuMemoryErrors", "MemoryErrors", "FilesystemReadOnly"} <= taken.keys()
    assert not taken.keys() & {"GpuXid", "GpuHot", "NetworkMountStale", "SlurmNodeDown"}
    for alert in taken.values():
        kind, label = PARTS[alert.repair]
        assert kind
        assert alert.expect["instance"] == "node1"
        assert not label or label in alert.expect


@pytest.mark.parametrize(
    ("expr", "names"),
    [
        ('up{job="node"} == 0', {"up"}),
        ("sum by (a, b) (rate(x_total[5m])) / on (c) group_left () y > bool 0", {"x_total", "y"}),
        ('label_replace(m, "instance", "$1", "node", "(.+)") or vector(0)', {"m"}),
        ("topk(5, gpu:use:ratio) and time() - t_seconds < 600", {"gpu:use:ratio", "t_seconds"}),
    ],
)
def test_metrics_of_a_query(expr: str, names: set[str]) -> None:
    assert metrics_in(expr) == names
