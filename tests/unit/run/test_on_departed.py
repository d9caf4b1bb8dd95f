"""What a host that left the cluster still holds, and how it is taken away."""

import hashlib
from pathlib import Path

import pytest

from deploy.run import on_departed
from deploy.site.secrets import OF_MEMBERS, OF_NO_HOST, secret_names
from tests.unit.host_checks.checks import part

_OF_MEMBERS = ("/etc/mysql/deploy-cluster.pem", "/var/lib/garb/member.pem")
_STAYS = {
    "grafana_admin_password": "an account of Grafana's on that host, which nobody else takes",
    "slurm_portal_key": "cookies and tokens of the portal on that host",
    "slurm_registry_key": "the certificate of the registry on that host",
    "slurm_registry_password": "an account of the registry on that host, as a hash",
    "slurm_rest_key": "the certificate of the REST API on that host",
    "ssh_server_authority_key": "the host's own certificate; of the authority it has the public key",
}
"""Secrets of which a host that left keeps what it has, and why it may."""
_KEY = hashlib.sha256(b"key").hexdigest()


class Machine:
    """A place with the files of a member, and a systemd that remembers."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stays, self.steps = set[str](), list[str]()
        self.runs, self.commands = {"slurmd", "munge"}, list[tuple[str, ...]]()
        self.key, self.records = place / "munge.key", place / "deploy"
        (self.records / "converged").mkdir(parents=True)
        (self.records / "pyxis").mkdir()
        self.key.write_bytes(b"key")
        monkeypatch.setattr(on_departed, "MUNGE_KEY", self.key)
        monkeypatch.setattr(on_departed, "SECRETS", {self.key: "the cluster's munge key"})
        monkeypatch.setattr(on_departed, "RECORDS", self.records)
        monkeypatch.setattr(on_departed, "steps", lambda: self.steps)
        monkeypatch.setattr(on_departed, "_run", self.run)

    def run(self, *command: str) -> tuple[str, bool]:
        self.commands.append(command)
        if command[1] == "disable":
            self.runs -= {command[-1]} - self.stays
        return "", command[1] == "is-active" and command[-1] in self.runs


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_member_holds_services_key_and_records(machine: Machine) -> None:
    assert on_departed.holds(_KEY) == [
        *("running slurmd", "running munge", "the cluster's munge key"),
        f"records in {machine.records}",
    ]
    assert on_departed.holds(None) == on_departed.holds(_KEY)


def test_a_member_of_another_cluster_is_left_alone(machine: Machine) -> None:
    machine.key.write_bytes(b"other")
    assert on_departed.holds(_KEY) == []
    assert on_departed.leave(_KEY) == {"jobs": [], "done": [], "holds": []}
    assert machine.runs == {"slurmd", "munge"}
    assert machine.key.exists()


def test_who_leaves_holds_nothing_afterwards(machine: Machine) -> None:
    before = on_departed.holds(_KEY)
    assert on_departed.leave(_KEY) == {"jobs": [], "done": before, "holds": []}
    assert not machine.key.exists()
    assert [path.name for path in machine.records.iterdir()] == ["pyxis"]
    stopped = [command[-1] for command in machine.commands if command[1] == "disable"]
    assert stopped.index("slurmd") < stopped.index("munge")
    assert on_departed.leave(_KEY) == {"jobs": [], "done": [], "holds": []}


def test_a_member_of_the_database_is_one_no_more_and_another_database_is_left(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = machine.key.with_name("member.pem")
    monkeypatch.setattr(on_departed, "SECRETS", {machine.key: "the key", member: "the key of members"})
    monkeypatch.setattr(on_departed, "_MEMBER_KEY", member)
    machine.runs.add("mariadb")
    assert "running mariadb" not in on_departed.holds(_KEY)
    member.touch()
    machine.stays.add("mariadb")
    assert on_departed.leave(_KEY)["holds"] == ["running mariadb"]
    member.touch()
    machine.key.write_bytes(b"key")
    machine.stays.clear()
    assert "running mariadb" in on_departed.leave(_KEY)["done"]
    assert machine.runs == set()


def test_nobody_leaves_while_jobs_run(machine: Machine) -> None:
    machine.steps = ["12.batch"]
    answer = on_departed.leave(_KEY)
    assert answer["jobs"] == ["12.batch"]
    assert answer["holds"]
    assert machine.key.exists()
    assert machine.runs == {"slurmd", "munge"}


def test_what_cannot_be_stopped_is_told(machine: Machine) -> None:
    machine.stays = {"munge"}
    assert on_departed.leave(_KEY)["holds"] == ["running munge"]


@pytest.mark.parametrize(
    ("said", "jobs"),
    [
        ("", []),
        (
            "7|RUNNING|alice|gpu|node1|\n",
            [
                {
                    "id": "7",
                    "state": "RUNNING",
                    "user": "alice",
                    "partition": "gpu",
                    "nodes": "node1",
                    "required": "",
                }
            ],
        ),
        (None, None),
    ],
)
def test_the_queue_of_a_cluster_by_its_own_configuration(
    monkeypatch: pytest.MonkeyPatch, said: str | None, jobs: list[dict[str, str]] | None
) -> None:
    def run(*command: str) -> tuple[str, bool]:
        assert command[:3] == ("env", "SLURM_CONF=/run/slurm/conf/slurm.conf", "timeout")
        assert command[-1] == "%i|%T|%u|%P|%N|%n"
        return (
            ("slurm_load_jobs error: Unable to contact slurm controller\n", False)
            if said is None
            else (said, True)
        )

    monkeypatch.setattr(on_departed, "_run", run)
    assert on_departed.queue("/run/slurm/conf/slurm.conf") == jobs


def test_every_secret_that_a_host_has_is_taken_from_it_unless_it_is_said_why_not() -> None:
    places = {name: [place.path] for name, place in part("known_secrets").PLACES.items()}
    places[OF_MEMBERS] = [*_OF_MEMBERS]
    taken = {path.as_posix() for path in on_departed.SECRETS}
    assert {name for name, paths in places.items() if not {*paths} <= taken} == {*_STAYS} - OF_NO_HOST
    assert {*places} | {*_STAYS} == {*secret_names(), OF_MEMBERS}
    assert taken == {path for name, paths in places.items() if name not in _STAYS for path in paths}
