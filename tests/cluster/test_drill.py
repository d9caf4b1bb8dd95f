"""The last backup of a cluster is restored into a lab, while the cluster itself is not even there."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import ExitCode
from deploy.in_memory import place_for_secrets
from deploy.lab.state import container_name
from deploy.run.archive import made_by, members
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Result, booted, run, wait_until
from tests.cluster.test_backup import Key, make_key
from tests.planted import holders

pytestmark = [pytest.mark.one_release, pytest.mark.more]

NAME = f"test-drill-lab-{os.getpid()}"
_RAN = "touch /home/alice/ran"


@dataclass(frozen=True)
class Site:
    """What is left of a cluster: its files, its backup, and what decrypts that."""

    inventory: Path
    archive: Path
    key: Key
    running: str
    waiting: tuple[str, ...]

    @property
    def secret(self) -> str:
        found = re.search(r"munge_key: (\S+)", (self.inventory.parent / "secrets.yml").read_text())
        assert found
        return found[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With a job that ran when the backup was made, and jobs that waited; all machines are gone."""
    place = tmp_path_factory.mktemp("drilled")
    key = make_key(place / "backup.key")
    with booted("drilled", tmp_path_factory, "--nodes", "1", "--gpus", "0") as made:
        with (made.directory / "group_vars" / "all.yml").open("a") as file:
            file.write(f"\nbackup_recipients: [{key.recipient}]\n")
        made.deploy()
        ended = submit(made, "--nodes 1", "true")
        wait_for_job(made, ended, "COMPLETED")
        running = submit(made, "--exclusive", UNTIL_TOLD)
        wait_for_job(made, running, "RUNNING")
        waiting = (submit(made, "--exclusive", _RAN), submit(made, "--hold", _RAN))
        made.on("ctl1", "touch", "/run/they-are-there")
        made.on("ctl1", "scontrol", "update", f"jobid={waiting[1]}", "comment=to be written")
        written = ("find", "/var/spool/slurmctld/job_state", "-newer", "/run/they-are-there")
        wait_until("the jobs are in slurmctld's state", lambda: bool(made.on("ctl1", *written)), 60)
        run(*DEPLOY, "backup", str(made.inventory))
        copy = shutil.copytree(
            made.directory, place / "site", ignore=shutil.ignore_patterns(".lab", ".deploy")
        )
    (archive,) = (copy / "backups").iterdir()
    yield Site(copy / "inventory.ini", archive, key, running, waiting)
    if NAME in run("podman", "network", "ls", "--format", "{{.Name}}").stdout:
        run(*DEPLOY, "lab", "down", "--name", NAME, "--delete-dir")


def drill(site: Site, *options: str, key: Key | None = None, expect: int = 0) -> Result:
    command = (*DEPLOY, "drill", str(site.inventory), "--identity", str((key or site.key).file))
    return run(*command, "--name", NAME, *options, expect=expect, seconds=1200)


def is_there(kind: str) -> bool:
    form = "{{.Names}}" if kind == "ps" else "{{.Name}}"
    words = ("ps", "--all") if kind == "ps" else (kind, "ls")
    return NAME in run("podman", *words, "--format", form).stdout


def is_gone() -> bool:
    return not any(map(is_there, ("ps", "volume", "network")))


def test_what_cannot_be_restored_makes_no_lab(site: Site, tmp_path: Path) -> None:
    cut_off = tmp_path / site.archive.name
    cut_off.write_bytes(site.archive.read_bytes()[:-100])
    bad = ExitCode.BAD_INPUT
    assert "backup-unreadable" in drill(site, "--from", str(tmp_path), expect=bad).stderr
    assert "backup-unreadable" in drill(site, key=make_key(tmp_path / "other.key"), expect=bad).stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "drill-without-backup" in drill(site, "--from", str(empty), expect=bad).stderr
    assert is_gone()
    assert not (site.inventory.parent / "drills").exists()


def test_a_backup_is_restored_where_it_reaches_nothing(site: Site, tmp_path: Path) -> None:
    said = drill(site, "--keep", "--json", "--report", str(tmp_path))
    report = json.loads(said.stdout)
    assert report["outcome"] == "passed"
    assert {row["what"]: row["verdict"] for row in report["compared"]}.items() >= {
        ("rows of jobs in the accounting", "same"),
        ("jobs on nodes", "same"),
        ("jobs that wait", "same"),
        ("associations that slurmctld knows", "same"),
        ("their shares", "same"),
        ("usage for fair share, in CPU seconds", "same"),
    }
    assert [row["backup"] for row in report["compared"] if row["what"] == "jobs that wait"] == ["2"]
    assert not [c for c in report["validation"]["checks"] if c["outcome"] == "failed"]
    text, data = (next(tmp_path.glob(f"*.{ending}")) for ending in ("txt", "json"))
    assert json.loads(data.read_text()) == report
    assert "drill of the cluster cluster: passed" in text.read_text()
    assert site.secret not in said.stdout + said.stderr + text.read_text()
    _is_apart(report)


def _is_apart(report: dict[str, Any]) -> None:
    """No machine has a route out, also after it booted again, and no job of the backup ran."""
    controller, login = (container_name(NAME, host) for host in ("ctl1", "login1"))
    run("podman", "restart", "--time", "0", login)
    route = ("ip", "route", "get", "198.51.100.1")
    wait_until(
        "there is no route", lambda: run("podman", "exec", login, *route, expect=None).returncode != 0, 60
    )
    assert report["lab"]["apart"] == {"machines": 3, "addresses_of_the_site": 3}
    rows = ("sacct", "--allusers", "-X", "-n", "-P", "--format=JobID,State", "--user=alice")
    states = run("podman", "exec", controller, *rows, "--starttime=2020-01-01").stdout.splitlines()
    assert {line.partition("|")[2].split()[0] for line in states} == {"COMPLETED", "CANCELLED"}
    run("podman", "exec", login, "test", "!", "-e", "/home/alice/ran")


def test_secrets_are_in_the_lab_alone_and_go_with_it(site: Site) -> None:
    (directory,) = Path(tempfile.gettempdir()).glob("deploy-rehearsal-*/secrets.yml")
    assert directory.read_text().count(site.secret) == 1
    assert directory.stat().st_mode & 0o777 == 0o600
    assert directory.parent.stat().st_mode & 0o777 == 0o700
    run(*DEPLOY, "lab", "down", "--name", NAME, "--delete-dir")
    _nothing_is_left(site)


def _nothing_is_left(site: Site) -> None:
    assert is_gone()
    left = [*place_for_secrets().glob("deploy-*"), *Path(tempfile.gettempdir()).glob("deploy-*")]
    assert holders([site.inventory.parent, *left], [site.secret]) == [site.inventory.parent / "secrets.yml"]


def test_what_is_otherwise_is_said_and_the_lab_taken_away(site: Site, tmp_path: Path) -> None:
    """Of a backup whose manifest has a share that the rest of it has not."""
    altered = tmp_path / site.archive.name
    with made_by().encrypted(altered, [site.key.recipient]) as out:
        again = made_by().Members(out)
        for name, content in members(site.archive, (site.key.file,)):
            if name != made_by().MANIFEST:
                again.add(name, content)
                continue
            manifest = json.loads(content)
        rows = manifest["fair_share"]["associations"]
        manifest["fair_share"]["associations"] = [
            [*row[:2], "77", row[3]] if row[1] == "alice" else row for row in rows
        ]
        again.end(manifest)
    said = drill(site, str(altered), expect=ExitCode.FAILED).stdout
    assert "drill of the cluster cluster: failed" in said
    assert "their shares" in said
    assert "other ones: research alice 77" in said
    assert len(list((site.inventory.parent / "drills").iterdir())) == 2
    _nothing_is_left(site)


def test_a_drill_that_is_killed_leaves_no_machine(site: Site) -> None:
    command = [*DEPLOY, "drill", str(site.inventory), "--identity", str(site.key.file), "--name", NAME]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as at_work:
        wait_until("machines are there", lambda: is_there("ps"), 120)
        at_work.terminate()
        assert at_work.wait(timeout=300) == ExitCode.INTERRUPTED
    _nothing_is_left(site)
