"""People of an LDAP directory: they log in, work, and go; Slurm does not need it at every moment."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_SERVER = Path(__file__).parents[2] / "molecule/shared/ldap_server.sh"
_PASSWORD = "4c1d0f58e7a94c0a9b6f2d1e"  # noqa: S105 - of a directory that lives as long as this test
_HOST = "login1"
_KEY = "/root/.ssh/id_ed25519"
_PEOPLE = """\
dn: uid=lena,dc=site,dc=example
objectClass: account
objectClass: posixAccount
objectClass: ldapPublicKey
uid: lena
cn: Lena
uidNumber: 20001
gidNumber: 20010
homeDirectory: /elsewhere/lena
sshPublicKey: {key}

dn: uid=maya,dc=site,dc=example
objectClass: account
objectClass: posixAccount
uid: maya
cn: Maya
uidNumber: 20002
gidNumber: 20010
homeDirectory: /elsewhere/maya

dn: cn=people,dc=site,dc=example
objectClass: posixGroup
cn: people
gidNumber: 20010

dn: cn=research,dc=site,dc=example
objectClass: posixGroup
cn: research
gidNumber: 20000
memberUid: lena
memberUid: maya
"""
_NEW = """\
dn: uid=nora,dc=site,dc=example
changetype: add
objectClass: account
objectClass: posixAccount
objectClass: ldapPublicKey
uid: nora
cn: Nora
uidNumber: 20003
gidNumber: 20010
homeDirectory: /elsewhere/nora
sshPublicKey: {key}
dn: cn=research,dc=site,dc=example
changetype: modify
add: memberUid
memberUid: nora
"""


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose login node is also the directory."""
    with booted("directory", tmp_path_factory, "--nodes", "1", "--gpus", "0", release="trixie") as made:
        made.on(
            _HOST,
            "sh",
            "-c",
            "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq "
            "--yes --no-install-recommends slapd ldap-utils openssl",
            seconds=600,
        )
        made.on(_HOST, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", _KEY)
        key = made.on(_HOST, "cat", f"{_KEY}.pub")
        _put(made, "/root/people", _PEOPLE.format(key=key))
        _put(made, "/root/server", _SERVER.read_text())
        made.on(_HOST, "sh", "-c", f"sh /root/server {_HOST} {_PASSWORD} < /root/people")
        variables = made.directory / "group_vars/all.yml"
        site = yaml.safe_load(variables.read_text())
        site["slurm_accounts_accounts"] = [{"name": "research", "groups": ["research"]}]
        site |= {
            "slurm_groups_leaving": "cancel",
            "slurm_groups_seconds": 10,
            "sssd_servers": [f"ldap://{_HOST}"],
            "sssd_search_base": "dc=site,dc=example",
            "sssd_bind_dn": "cn=reader,dc=site,dc=example",
            "sssd_ca": made.on(_HOST, "cat", "/srv/directory/ca.crt"),
            "sssd_allow_groups": ["research"],
            "sssd_cache_seconds": 60,
        }
        variables.write_text(yaml.safe_dump(site))
        secrets = made.directory / "secrets.yml"
        secrets.touch(mode=0o600)
        secrets.write_text(f"sssd_bind_password: {_PASSWORD}\n")
        assert _PASSWORD not in made.deploy().stdout
        yield made


def test_somebody_of_the_directory_works_here(joined: Cluster) -> None:
    def has_home() -> bool:
        return "lena 700" in joined.on("ctl1", "stat", "--format=%U %a", "/home/lena", expect=None)

    wait_until("the host with the homes made lena's", has_home, 240)
    wait_until("lena may charge the group's account", lambda: "lena|" in _members(joined), 120)
    assert _as_lena(joined, "pwd; srun --account=research id -un").split() == ["/home/lena", "lena"]


def test_without_the_directory_work_goes_on(joined: Cluster) -> None:
    job = _as_lena(joined, "sbatch --parsable --wrap 'until test -e stop; do sleep 1; done'").strip()
    joined.on(_HOST, "systemctl", "stop", "directory")
    try:
        assert "lena" in joined.on("node1", "id", "lena")
        assert _as_lena(joined, f"squeue --noheader --format=%i --jobs={job}").strip() == job
        assert joined.on("node1", "getent", "passwd", "root")
        assert "leaves" not in joined.on("ctl1", "sync-accounts")
        assert {"lena|", "maya|"} <= _members(joined)
        _as_lena(joined, "touch stop")
        ended = ("sacct", "-nXP", "--format=State", "--jobs", job)
        wait_until("her job ends", lambda: joined.on("ctl1", *ended).strip() == "COMPLETED", 120)
    finally:
        joined.on(_HOST, "systemctl", "start", "directory")


def test_somebody_new_needs_no_run_of_deploy(joined: Cluster) -> None:
    key = joined.on(_HOST, "cat", f"{_KEY}.pub").strip()
    _change_directory(joined, _NEW.format(key=f"{key}\n"))

    def works() -> bool:
        done = joined.on(_HOST, *_ssh("nora"), "srun --account=research id -un", expect=None)
        return done.split() == ["nora"]

    wait_until("nora works in the account of her group", works, 300)
    assert joined.on(_HOST, *_ssh("nora"), "pwd; stat --format='%U %a' .").split() == [
        "/home/nora",
        "nora",
        "700",
    ]
    said = run(*DEPLOY, "users", str(joined.inventory), "--only", "nora").stdout
    assert "nora  (directory, uid 20003, Nora)" in said
    assert "account   research (default; QOS normal; by a group of the account)" in said
    assert "login     login1: group research" in said
    assert "key       ssh-ed25519  SHA256:" in said
    # Whom groups brought is no drift, and no reason to work.
    assert "nora" not in joined.plan()


def test_who_left_the_group_does_not_come_in_and_her_jobs_end(joined: Cluster) -> None:
    job = _as_lena(joined, "sbatch --parsable --account=research --wrap 'sleep 900'").strip()
    _change_directory(
        joined,
        "dn: cn=research,dc=site,dc=example\nchangetype: modify\ndelete: memberUid\nmemberUid: lena\n",
    )
    wait_until("lena is refused", lambda: _is_refused(joined, "lena"), 240)
    ended = ("sacct", "-nXP", "--format=State", "--jobs", job)
    wait_until("her job is cancelled", lambda: "CANCELLED" in joined.on("ctl1", *ended), 300)
    # She is a member still, so that what she used is known, and submits nothing more.
    assert {"lena|0", "maya|", "nora|"} <= _members(joined)


def test_whom_the_directory_has_no_more_does_not_come_in_and_her_jobs_end(joined: Cluster) -> None:
    """Nobody knows her name any more, but her group still has it."""
    job = joined.on(_HOST, *_ssh("nora"), "sbatch --parsable --account=research --wrap 'sleep 900'").strip()
    _change_directory(joined, "dn: uid=nora,dc=site,dc=example\nchangetype: delete\n")
    is_known = ("sh", "-c", "id nora || echo unknown")
    wait_until("nora is unknown", lambda: "unknown" in joined.on("ctl1", *is_known, expect=None), 300)
    wait_until("nora is refused", lambda: _is_refused(joined, "nora"), 240)
    ended = ("sacct", "-nXP", "--format=State", "--jobs", job)
    wait_until("her job is cancelled", lambda: "CANCELLED" in joined.on("ctl1", *ended), 300)
    assert {"maya|", "nora|0"} <= _members(joined)


def _is_refused(cluster: Cluster, user: str) -> bool:
    return "refused" in cluster.on(_HOST, "sh", "-c", f"{' '.join(_ssh(user))} true || echo refused")


def _ssh(user: str) -> list[str]:
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", "LogLevel=ERROR")
    return ["ssh", *(word for option in options for word in ("-o", option)), "-i", _KEY, f"{user}@{_HOST}"]


def _members(cluster: Cluster) -> set[str]:
    """Who is in the account, with the most jobs that he may have submitted."""
    columns = "format=user,maxsubmitjobs"
    shown = cluster.on("ctl1", "sacctmgr", "-nP", "show", "associations", "wopl", "account=research", columns)
    return set(shown.split())


def _change_directory(cluster: Cluster, ldif: str) -> None:
    _put(cluster, "/root/password", _PASSWORD)
    _put(cluster, "/root/change", ldif)
    as_admin = f"-x -ZZ -H ldap://{_HOST} -D cn=root,dc=site,dc=example -y /root/password"

    def ask(command: str, expect: int | None = 0) -> str:
        return cluster.on(
            _HOST, "env", "LDAPTLS_CACERT=/srv/directory/ca.crt", "sh", "-c", command, expect=expect
        )

    wait_until("the directory answers", lambda: "cn=root" in ask(f"ldapwhoami {as_admin}", None), 60)
    ask(f"ldapmodify {as_admin} -f /root/change")


def _as_lena(cluster: Cluster, script: str) -> str:
    """What a login with her key of the directory says."""
    return cluster.on(_HOST, *_ssh("lena"), script)


def _put(cluster: Cluster, path: str, text: str) -> None:
    command = ["podman", "exec", "-i", container_name(cluster.name, _HOST), "sh", "-c", f"cat > {path}"]
    subprocess.run(command, input=text, text=True, check=True)
