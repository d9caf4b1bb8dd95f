"""A timer is set, and what it runs leaves an archive that only the key opens, and metrics of it."""

import json

from molecule.conftest import Converge, On

METRICS = "/var/lib/prometheus/node-exporter/backup.prom"


def test_the_timer_waits(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-active", "deploy-backup.timer").stdout.strip() == "active"
    assert "2030-01-01" in on(machine, "systemctl", "list-timers", "--all", "deploy-backup.timer").stdout


def test_a_backup_is_whole_and_closed(on: On, machine: str) -> None:
    on(machine, "systemctl", "start", "deploy-backup.service")
    file = on(machine, "find", "/srv/backups", "-name", "lab-*.age").stdout.strip()
    assert on(machine, "stat", "--format=%U %a", file).stdout == "root 600\n"
    inside = f"age --decrypt --identity /root/backup.key {file} | tar --extract --to-stdout"
    manifest = json.loads(on(machine, "sh", "-c", f"{inside} manifest.json").stdout)
    assert manifest["cluster"] == "lab"
    assert manifest["made_by"] == "the timer"
    assert manifest["database"]["associations"] > 0
    dump = on(machine, "sh", "-c", f"{inside} database.sql.gz/00000 | gunzip").stdout
    assert "lab_assoc_table" in dump
    assert "laser" in dump
    assert on(machine, "find", "/var/lib/deploy", "-name", "backup-*").stdout == ""


def test_prometheus_is_told(on: On, machine: str) -> None:
    told = on(machine, "cat", METRICS).stdout
    assert "deploy_backup_count 1" in told
    assert "deploy_backup_alert_age_seconds 172800" in told


def test_a_backup_that_fails_leaves_nothing_and_is_told(on: On, machine: str) -> None:
    on(machine, "systemctl", "stop", "slurmdbd", "mariadb")
    assert on(machine, "systemctl", "start", "deploy-backup.service", check=False).returncode != 0
    assert "deploy_backup_count 1" in on(machine, "cat", METRICS).stdout
    assert len(on(machine, "ls", "-A", "/srv/backups").stdout.splitlines()) == 1
    on(machine, "systemctl", "start", "mariadb", "slurmdbd")


def test_below_a_mount_that_is_missing_there_is_no_backup(on: On, machine: str) -> None:
    unit = "/run/systemd/system/srv-backups.mount"
    text = "[Mount]\nWhat=/nothing\nWhere=/srv/backups\nType=ext4\n"
    before = on(machine, "ls", "-A", "/srv/backups").stdout
    on(machine, "sh", "-c", f"printf '{text}' > {unit} && systemctl daemon-reload")
    try:
        assert on(machine, "systemctl", "start", "deploy-backup.service", check=False).returncode != 0
        assert on(machine, "ls", "-A", "/srv/backups").stdout == before
    finally:
        on(machine, "sh", "-c", f"rm {unit} && systemctl daemon-reload")
    on(machine, "systemctl", "start", "deploy-backup.service")
    assert on(machine, "ls", "-A", "/srv/backups").stdout != before


def test_where_it_ends_nothing_is_told_any_more_and_backups_stay(
    on: On, machine: str, converge: Converge
) -> None:
    converge(only=machine, backup_schedule="")
    assert on(machine, "systemctl", "is-enabled", "deploy-backup.timer", check=False).returncode != 0
    assert on(machine, "test", "-e", METRICS, check=False).returncode != 0
    assert on(machine, "ls", "-A", "/srv/backups").stdout
