"""Which backup a drill takes, and what of it goes into the lab."""

import hashlib
from pathlib import Path

import pytest

from deploy.engine.drill import about, last_backup, restorable
from deploy.errors import DeployError, ExitCode
from deploy.run.archive import Archive
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1\n[slurm-node]\nnode1\n"


def test_the_newest_backup_of_the_cluster(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, SITE)).resolved
    with pytest.raises(DeployError, match="drill-without-backup") as refusal:
        last_backup(site, None)
    assert refusal.value.exit_code is ExitCode.BAD_INPUT
    place = tmp_path / "elsewhere"
    place.mkdir()
    for name in ("cluster-20270102T020000Z.age", "cluster-20270101T020000Z.age", "zoo-20280101T020000Z.age"):
        (place / name).touch()
    assert last_backup(site, place) == place / "cluster-20270102T020000Z.age"


def test_what_names_machines_of_the_site_stays_outside(tmp_path: Path) -> None:
    path = tmp_path / "c.age"
    path.write_bytes(b"encrypted")
    manifest = {
        "made_at": 0,
        "made_by": "deploy backup",
        "deploy": "1",
        "database": {},
        "members": {"a": "", "b": ""},
    }
    small = {"site/secrets.yml": b"munge_key: x", "site/hardware.yml": b"{}", "records/hosts.json": b"{}"}
    archive = Archive(path, (), manifest, small)
    inside, secrets = restorable(archive)
    assert inside.small == {}
    assert secrets == "munge_key: x"
    assert restorable(inside)[1] is None
    told = about(archive)
    assert told["sha256"] == hashlib.sha256(b"encrypted").hexdigest()
    assert (told["verified_parts"], told["has_secrets"]) == (2, True)
    assert "munge" not in str(told)
