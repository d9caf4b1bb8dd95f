"""A controller that is lost with its disk comes back from a backup, with its queue and its accounting."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from deploy.errors import ExitCode
from deploy.lab.state import container_name
from deploy.run.archive import made_by, members
from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, Result, booted, run, wait_until

pytestmark = pytest.mark.more
_WEEKS = 30 * 86400
# By itself sacct has no job that ended before midnight.
_ROWS = (
    *("sacct", "--allusers", "--starttime", "now-1days", "--noheader", "--parsable2"),
    *("--format", "JobID,User,Account,State,Start,End"),
)
_LEVEL = ("sacctmgr", "-nP", "show", "user", "bob", "format=adminlevel")
_SHARES = ("sshare", "--all", "--noheader", "--parsable2", "--format", "Account,User,RawShares")


@dataclass(frozen=True)
class Key:
    """What decrypts, and what may be known to everybody."""

    file: Path
    recipient: str


@dataclass(frozen=True)
class Kept:
    """A backup, the accounting of then, and jobs: on a node then, waiting then, submitted afterwards.

    ``ended`` waits in the backup, is an array, and ended afterwards.
    """

    archive: Path
    rows: tuple[str, ...]
    shares: str
    running: str
    waiting: str
    ended: str
    later: str


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    return make_key(tmp_path_factory.mktemp("key") / "backup.key")


def make_key(file: Path) -> Key:
    run("age-keygen", "--output", str(file))
    return Key(file, run("age-keygen", "-y", str(file)).stdout.strip())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, key: Key) -> Iterator[Cluster]:
    with booted("backup", tmp_path_factory, "--nodes", "2", "--gpus", "0") as made:
        with (made.directory / "group_vars" / "all.yml").open("a") as file:
            file.write(f"\nbackup_recipients: [{key.recipient}]\n")
        give_bob(made, "operator")
        made.deploy()
        yield made


def give_bob(lab: Cluster, level: str) -> None:
    """Declares what he may do with the accounting; nothing by an empty level."""
    variables = lab.directory / "group_vars" / "all.yml"
    site = yaml.safe_load(variables.read_text())
    (bob,) = (user for user in site["slurm_accounts_users"] if user["name"] == "bob")
    bob.pop("admin_level", None)
    if level:
        bob["admin_level"] = level
    variables.write_text(yaml.safe_dump(site))


def backup(lab: Cluster, *options: str) -> Result:
    return run(*DEPLOY, "backup", str(lab.inventory), *options)


def restore(lab: Cluster, archive: Path, key: Key, *options: str, expect: int = 0) -> Result:
    command = (*DEPLOY, "restore", str(lab.inventory), str(archive), "--identity", str(key.file))
    return run(*command, *options, expect=expect, seconds=900)


@pytest.fixture(scope="module")
def kept(lab: Cluster) -> Kept:
    """A backup, and a job that was submitted after it and runs."""
    ended = submit(lab, "--nodes 1", "true")
    wait_for_job(lab, ended, "COMPLETED")
    running = submit(lab, "--nodes 1", UNTIL_TOLD)
    waiting = submit(lab, "--hold", "echo restored > waited")
    array = submit(lab, "--hold --array 0", "echo once more >> ended")
    wait_for_job(lab, running, "RUNNING")
    # slurmctld writes its state every few seconds.
    lab.on("ctl1", "touch", "/run/they-are-there")
    lab.on("ctl1", "scontrol", "update", f"jobid={array}", "comment=to be written")
    written = ("find", "/var/spool/slurmctld/job_state", "-newer", "/run/they-are-there")
    wait_until("the jobs are in slurmctld's state", lambda: bool(lab.on("ctl1", *written)), 60)
    said = json.loads(backup(lab, "--json").stdout)
    assert int(running) in said["manifest"]["queue"]["running"]
    assert said["manifest"]["queue"]["waiting"] == [int(waiting), int(array)]
    assert said["manifest"]["queue"]["arrays"] == [int(array)]
    rows = tuple(row for row in lab.on("ctl1", *_ROWS).splitlines() if row.startswith(f"{ended}|"))
    shares = lab.on("ctl1", *_SHARES)
    assert lab.on("ctl1", *_LEVEL).strip() == "Operator"
    lab.on("ctl1", "scontrol", "release", array)
    wait_for_job(lab, array, "COMPLETED")
    later = submit(lab, "--nodes 1", "sleep 3000")
    wait_for_job(lab, later, "RUNNING")
    return Kept(Path(said["file"]), rows, shares, running, waiting, array, later)


def test_nobody_reads_a_backup_without_the_key(lab: Cluster, kept: Kept, key: Key, tmp_path: Path) -> None:
    secret = re.search(r"munge_key: (\S+)", (lab.directory / "secrets.yml").read_text())
    assert secret
    assert secret[1].encode() not in kept.archive.read_bytes()
    assert kept.archive.stat().st_mode & 0o777 == 0o600
    inside = dict(members(kept.archive, (key.file,)))
    assert secret[1].encode() in inside["site/secrets.yml"]
    other = make_key(tmp_path / "other.key")
    said = restore(lab, kept.archive, other, "--check", expect=ExitCode.BAD_INPUT).stderr
    assert "backup-unreadable" in said


def test_a_backup_goes_to_another_machine(
    lab: Cluster, key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By sftp, with a key and a host key that a user has in the settings of his own ssh."""
    settings, place = tmp_path / "ssh_config", lab.directory / ".lab"
    settings.write_text(f"IdentityFile {place}/id_ed25519\nUserKnownHostsFile {place}/known_hosts\n")
    sftp = tmp_path / "sftp"
    sftp.write_text(f'#!/bin/sh\nexec /usr/bin/sftp -F {settings} "$@"\n')
    sftp.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (address,) = re.findall(r"^login1 ansible_host=(\S+)", lab.inventory.read_text(), re.MULTILINE)
    vault = f"admin@{address}"
    nowhere = run(*DEPLOY, "backup", str(lab.inventory), "--to", f"{vault}:a/b", expect=ExitCode.FAILED)
    assert "backup-not-made" in nowhere.stderr
    said = json.loads(backup(lab, "--to", f"{vault}:kept", "--json").stdout)["file"]
    (listed,) = json.loads(backup(lab, "--to", f"{vault}:kept", "--list", "--json").stdout)
    assert listed["file"] == said
    shape = f"stat --format '%a %s' ~admin/{said.partition(':')[2]}"
    assert lab.on("login1", "sh", "-c", shape).split() == ["600", str(listed["bytes"])]
    run("sftp", "-q", said, str(tmp_path / "back.age"))
    assert "site/secrets.yml" in dict(members(tmp_path / "back.age", (key.file,)))


def test_a_backup_is_tried_without_changing_anything(lab: Cluster, kept: Kept, key: Key) -> None:
    before = lab.starts("ctl1")
    said = restore(lab, kept.archive, key, "--check").stderr
    assert "the database can be loaded" in said
    assert f"job {kept.later}" in said
    assert lab.starts("ctl1") == before
    assert lab.on("ctl1", "find", "/var/lib/deploy", "-name", "backup-*") == ""


@pytest.mark.parametrize("harm", ["truncated", "altered", "old"])
def test_a_backup_that_is_not_as_it_was_is_refused(
    lab: Cluster, kept: Kept, key: Key, tmp_path: Path, harm: str
) -> None:
    content, harmed = kept.archive.read_bytes(), tmp_path / kept.archive.name
    reference = "backup-unreadable"
    if harm == "truncated":
        harmed.write_bytes(content[:-100])
    elif harm == "altered":
        harmed.write_bytes(content[:-100] + bytes([content[-100] ^ 1]) + content[-99:])
    else:
        reference = "backup-old"
        age_by(_WEEKS, kept.archive, harmed, key)
    said = restore(lab, harmed, key, "--yes", expect=ExitCode.BAD_INPUT).stderr
    assert reference in said
    assert ("30 days" in said) == (harm == "old")
    assert job_state(lab, kept.later) == "RUNNING"


def age_by(seconds: int, archive: Path, older: Path, key: Key) -> None:
    """The same backup, made so long before."""
    made = made_by()
    with made.encrypted(older, [key.recipient]) as out:
        again = made.Members(out)
        for name, content in members(archive, (key.file,)):
            if name == made.MANIFEST:
                manifest = json.loads(content)
            else:
                again.add(name, content)
        again.end({**manifest, "made_at": manifest["made_at"] - seconds})


def test_a_controller_that_was_lost_comes_back(lab: Cluster, kept: Kept, key: Key) -> None:
    subprocess.run(
        ["podman", "rm", "--force", "--volumes", "--time", "0", container_name(lab.name, "ctl1")],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    lab.up()
    (lab.directory / "secrets.yml").unlink()
    give_bob(lab, "")
    said = restore(lab, kept.archive, key, expect=ExitCode.CHANGES_PENDING).stderr
    assert f"not in the backup by their ids: job {kept.later} (node" in said
    assert f"tasks of the job arrays {kept.ended}, which waited then, start once more" in said
    assert f"on no node that answers now: 2 jobs ([{kept.waiting}-{kept.ended}])" in said
    assert not (lab.directory / "secrets.yml").exists()

    done = restore(lab, kept.archive, key, "--yes", "--output", "plain")
    assert "jobs of the backup that run on nodes, and go on: 1" in done.stderr
    assert "passed: 0 failed" in done.stdout
    rows = lab.on("ctl1", *_ROWS).splitlines()
    assert {*kept.rows} <= {*rows}
    assert lab.on("ctl1", *_SHARES) == kept.shares
    # He was an operator in the backup.
    assert lab.on("ctl1", *_LEVEL).strip() == "None"


def test_jobs_of_the_backup_go_on_and_are_accounted(lab: Cluster, kept: Kept) -> None:
    assert job_state(lab, kept.running) == "RUNNING"
    lab.as_user("touch stop")
    wait_for_job(lab, kept.running, "COMPLETED")
    lab.on("ctl1", "scontrol", "release", kept.waiting)
    wait_for_job(lab, kept.waiting, "COMPLETED")
    assert "restored" in lab.as_user("cat waited")
    lab.on("ctl1", "scontrol", "release", kept.ended)
    wait_for_job(lab, kept.ended, "COMPLETED")
    assert lab.as_user("cat ended").splitlines() == ["once more"] * 2


def test_no_job_gets_the_id_of_one_that_a_node_ran(lab: Cluster, kept: Kept) -> None:
    wait_until("the job is off the node", lambda: not steps_of(lab, kept.later), 120)
    assert int(submit(lab, "--nodes 1", "true")) > int(kept.later)
    assert kept.later not in [row.split("|")[0] for row in lab.on("ctl1", *_ROWS).splitlines()]


def steps_of(lab: Cluster, job: str) -> str:
    return "".join(
        lab.on(node, "pgrep", "--full", rf"slurmstepd: \[{job}\.", expect=None) for node in ("node1", "node2")
    )


def test_a_restored_controller_is_backed_up_again(lab: Cluster) -> None:
    backup(lab)
    assert len(backup(lab, "--list").stdout.splitlines()) == 2
