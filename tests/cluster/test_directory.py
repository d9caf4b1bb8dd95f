"""People of an LDAP directory: they log in, work, and go; Slurm does not need it at every moment."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster, booted, wait_until

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
dn: cn=people,dc=site,dc=example
objectClass: posixGroup
cn: people
gidNumber: 20010

dn: cn=research,dc=site,dc=example
objectClass: posixGroup
cn: research
gidNumber: 20000
memberUid: lena
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
        site["slurm_accounts_users"].append({"name": "lena", "accounts": ["research"]})
        site |= {
            "sssd_servers": [f"ldap://{_HOST}"],
            "sssd_search_base": "dc=site,dc=example",
            "sssd_bind_dn": "cn=reader,dc=site,dc=example",
            "sssd_ca": made.on(_HOST, "cat", "/srv/directory/ca.crt"),
            "sssd_allow_groups": ["research"],
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
    assert _as_lena(joined, "pwd; srun --account=research id -un").split() == ["/home/lena", "lena"]


def test_without_the_directory_work_goes_on(joined: Cluster) -> None:
    job = _as_lena(joined, "sbatch --parsable --wrap 'until test -e stop; do sleep 1; done'").strip()
    joined.on(_HOST, "systemctl", "stop", "directory")
    try:
        assert "lena" in joined.on("node1", "id", "lena")
        assert _as_lena(joined, f"squeue --noheader --format=%i --jobs={job}").strip() == job
        assert joined.on("node1", "getent", "passwd", "root")
        _as_lena(joined, "touch stop")
        ended = ("sacct", "-nXP", "--format=State", "--jobs", job)
        wait_until("her job ends", lambda: joined.on("ctl1", *ended).strip() == "COMPLETED", 120)
    finally:
        joined.on(_HOST, "systemctl", "start", "directory")


def test_who_left_the_group_does_not_come_in(joined: Cluster) -> None:
    _put(joined, "/root/password", _PASSWORD)
    _put(
        joined, "/root/change", "dn: cn=research,dc=site,dc=example\nchangetype: modify\ndelete: memberUid\n"
    )
    as_admin = f"-x -ZZ -H ldap://{_HOST} -D cn=root,dc=site,dc=example -y /root/password"

    def ask(command: str) -> str:
        return joined.on(
            _HOST, "env", "LDAPTLS_CACERT=/srv/directory/ca.crt", "sh", "-c", command, expect=None
        )

    wait_until("the directory answers", lambda: "cn=root" in ask(f"ldapwhoami {as_admin}"), 60)
    assert "cn=research" in ask(f"ldapmodify {as_admin} -f /root/change")

    def is_refused() -> bool:
        return "refused" in joined.on(_HOST, "sh", "-c", f"{_SSH} true || echo refused")

    wait_until("lena is refused", is_refused, 240)


_SSH = f"ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -i {_KEY} lena@{_HOST}"


def _as_lena(cluster: Cluster, script: str) -> str:
    """What a login with her key of the directory says."""
    return cluster.on(_HOST, *_SSH.split(), script)


def _put(cluster: Cluster, path: str, text: str) -> None:
    command = ["podman", "exec", "-i", container_name(cluster.name, _HOST), "sh", "-c", f"cat > {path}"]
    subprocess.run(command, input=text, text=True, check=True)
