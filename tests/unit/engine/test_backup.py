"""``deploy backup`` of hosts that answer as they are told: who is asked for what, and what comes of it."""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.engine import backup as module
from deploy.engine.backup import make_backup
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.run.archive import made_by
from deploy.run.archive_places import Local
from deploy.run.transfer import TransferError
from deploy.site.inventory import Host, read_site
from tests.unit.site.sites import write_site

ONE = "[slurm-master]\nctl1\n[slurm-node]\nnode1\n"
APART = "[slurm-master]\nctl1\nctl2\n[slurm-database]\ndb1\n[slurm-node]\nnode1\n"
RECIPIENTS = "backup_recipients: [age1n2jpdw3y8zs26u4e0ue44z79ky57mmcujlt9wj0rnwnvvqmuedcqhy790f]\n"
STATE = "slurmctld_state_save_location: /shared/state\n"


class Hosts:
    """What they were asked, in turn; ``alters`` one sends something else than it says."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.silent: set[str] = set()
        self.alters = ""

    @contextmanager
    def transfer(self, host: Host, _: object, text: str) -> Iterator[SimpleNamespace]:
        verb, parts = json.loads(text)
        self.asked.append((host.name, verb, parts))
        if host.name in self.silent:
            message = "no route to host"
            raise TransferError(message)
        yield SimpleNamespace(stdout=io.BytesIO(self._sent(host.name, parts) if verb == "parts" else b""))

    def _sent(self, name: str, parts: dict[str, str]) -> bytes:
        out = io.BytesIO()
        members = made_by().Members(out)
        said: dict[str, object] = {}
        if "state" in parts:
            members.add("state.tar.gz/00000", name.encode())
            said |= {"slurm": "slurm 24.11.5", "queue": {"running": [1], "waiting": [], "next_job_id": 2}}
        if "database" in parts:
            members.add("database.sql.gz/00000", name.encode())
            said |= {"database": {"name": parts["database"], "jobs": 1}}
        if name == self.alters:
            members.sums["database.sql.gz/00000"] = "0" * 64
        members.end(said)
        return out.getvalue()


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """With an age that encrypts nothing."""
    program = tmp_path / "bin" / "age"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec cat\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setitem(made_by().ENVIRONMENT, "PATH", path)
    made = Hosts()
    monkeypatch.setattr(module, "transfer", made.transfer)
    monkeypatch.setattr(module, "program", lambda _, *asked: json.dumps(asked))
    return made


def _inventory(tmp_path: Path, text: str) -> Path:
    return write_site(tmp_path, text, {"group_vars/all.yml": RECIPIENTS + STATE})


def test_one_host_that_has_all_is_asked_once(hosts: Hosts, tmp_path: Path) -> None:
    make_backup(_inventory(tmp_path, ONE), None, Options())
    parts = {"state": "/shared/state", "database": "slurm_acct_db"}
    assert hosts.asked == [("ctl1", "parts", parts)]


def test_the_state_comes_from_who_answers_and_then_the_database_from_its_host(
    hosts: Hosts, tmp_path: Path
) -> None:
    hosts.silent = {"ctl1"}
    made = make_backup(_inventory(tmp_path, APART), None, Options())
    assert [(name, verb) for name, verb, _ in hosts.asked] == [
        ("ctl1", "has_state"),
        ("ctl2", "has_state"),
        ("ctl2", "parts"),
        ("db1", "parts"),
    ]
    assert [parts for *_, parts in hosts.asked[-2:]] == [
        {"state": "/shared/state"},
        {"database": "slurm_acct_db"},
    ]
    with tarfile.open(made.kept.file) as tar:
        names = tar.getnames()
        manifest = json.loads(tar.extractfile("manifest.json").read())  # type: ignore[union-attr]
    assert [name for name in names if ".gz" in name] == ["state.tar.gz/00000", "database.sql.gz/00000"]
    assert {*manifest["members"]} == {*names} - {"manifest.json"}
    assert (manifest["slurm"], manifest["database"]["jobs"]) == ("slurm 24.11.5", 1)


@pytest.mark.parametrize(("silent", "where"), [({"ctl1", "ctl2"}, "ctl[1-2]"), ({"db1"}, "db1")])
def test_without_a_part_there_is_no_backup(
    hosts: Hosts, tmp_path: Path, silent: set[str], where: str
) -> None:
    hosts.silent = silent
    inventory = _inventory(tmp_path, APART)
    with pytest.raises(DeployError) as refused:
        make_backup(inventory, None, Options())
    (finding,) = refused.value.findings
    assert (finding.reference, finding.where) == ("backup-not-made", where)
    assert refused.value.exit_code is ExitCode.UNREACHABLE
    assert [*(inventory.parent / "backups").iterdir()] == []


def test_what_arrives_otherwise_than_it_was_sent_is_no_backup(hosts: Hosts, tmp_path: Path) -> None:
    hosts.alters = "db1"
    with pytest.raises(DeployError, match="not what arrived"):
        make_backup(_inventory(tmp_path, APART), None, Options())


@pytest.mark.usefixtures("hosts")
def test_a_backup_is_one_also_where_old_ones_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory = _inventory(tmp_path, ONE)
    kept = inventory.parent / "backups"
    kept.mkdir()
    for day in range(1, 29):
        (kept / f"cluster-202601{day:02}T000000Z.age").touch()

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Local, "remove", refuse)
        made = make_backup(inventory, None, Options())
    assert Path(made.kept.file).exists()
    assert made.removed == ()
    assert made.left.endswith("Operation not permitted")
    again = make_backup(inventory, None, Options())
    assert again.removed
    assert again.left == ""


def test_variables_that_a_link_leads_to_are_kept(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    inventory = _inventory(site, ONE)
    (common := tmp_path / "common").mkdir()
    (common / "names.yml").write_text("motd_title: of both\n")
    (common / "again").symlink_to(common)
    (site / "group_vars" / "slurm-master").symlink_to(common)
    kept = dict(module.site_files(read_site(inventory)))
    assert kept["group_vars/slurm-master/names.yml"] == b"motd_title: of both\n"
    assert not [name for name in kept if "/again/" in name]


def test_what_an_upload_that_was_cut_off_left_goes_after_a_day() -> None:
    names = [f".{cluster}-2026010{day}T000000Z.age.part" for cluster in ("c", "c-d") for day in (1, 2)]
    now = 1767225600.0 + 86400 + 60
    assert module.cut_off([*names, "c-20260101T000000Z.age", ".x.part"], "c", now) == [names[0]]
