"""A drill on machines that answer as they are told: what is asked, in which order, what is refused."""

from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from deploy.engine.options import Options
from deploy.engine.restore import Deploys
from deploy.errors import DeployError, ExitCode
from deploy.lab import apart
from deploy.lab import drill as module
from deploy.lab.drill import Drill, associations, half_life, in_shape
from deploy.lab.state import Lab, LabHost
from deploy.run.archive import Archive
from deploy.site.inventory import Host, Site
from deploy.site.secrets import _vault, read_secrets

MANIFEST: dict[str, Any] = {
    "made_at": 0,
    "database": {"name": "slurm_acct_db", "tables": 3, "jobs": 5, "associations": 5},
    "queue": {"running": [], "waiting": [3], "next_job_id": 4},
}
CONFIG = "NEXT_JOB_ID = 4\nPriorityDecayHalfLife   = 7-00:00:00\nPriorityUsageResetPeriod = NONE\n"
TABLES = "c_job_table\nc_assoc_table\nuser_table\n"


def host(name: str, *groups: str, address: str = "") -> Host:
    return Host(name, {}, frozenset(groups), connection={"ansible_host": address} if address else {})


def site_of(*hosts: Host) -> Site:
    groups = {name for each in hosts for name in each.groups}
    members = {name: tuple(each.name for each in hosts if name in each.groups) for name in groups}
    return Site(Path("/sites/mine/inventory.ini"), {each.name: each for each in hosts}, members)


SITE = site_of(
    host("ctl1", "slurm-master", address="192.0.2.1"),
    host("ctl2", "slurm-master", address="192.0.2.2"),
    host("db1", "slurm-database", address="192.0.2.3"),
    *(host(f"n{number}", "slurm-node", address=f"192.0.2.1{number}") for number in range(1, 5)),
)
LAB = Lab(
    "d",
    Path("/lab"),
    "trixie",
    0,
    IPv4Network("10.213.7.0/24"),
    tuple(LabHost(name, "10.213.7.2", "running", "") for name in ("ctl1", "n1")),
    "containers",
)


@dataclass
class Machines:
    """What they were asked, in turn."""

    jobs: list[str] = field(default_factory=lambda: ["3"])
    endless: bool = False
    routes: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def podman(self, *words: str, data: bytes = b"") -> str:  # noqa: ARG002
        self.asked.append(" ".join(words).removeprefix("exec "))
        command = " ".join(words)
        answers = {
            "information_schema": TABLES,
            "COUNT(*)": "5\n",
            "--states=all": "3|PENDING\n",
            "--states=PENDING": "\n".join(self.jobs),
            "scontrol show config": CONFIG,
            "sinfo": "n1|drained\nn2|idle\n",
            "sshare": "root|||0\n",
        }
        return next((said for part, said in answers.items() if part in command), "")

    def succeeds(self, *words: str) -> bool:
        self.asked.append(" ".join(words).removeprefix("exec "))
        if "scancel" in words and not self.endless:
            self.jobs = []
        return words[-1] in self.routes if "route" in words else True


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines()
    for place in (module, apart):
        monkeypatch.setattr(place, "podman", made.podman)
        monkeypatch.setattr(place, "succeeds", made.succeeds)
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    return made


def drill(site: Site) -> Drill:
    return Drill(LAB, site, Archive(Path("c.age"), (), MANIFEST, {}), lambda _: None)


ONE = site_of(host("ctl1", "slurm-master"), host("n1", "slurm-node"))


SECRETS = """\
# made
munge_key: a
slurm_rest_certificate_key: |
  BEGIN

  END
"sssd_bind_password": b
alertmanager_receivers:
- name: people
  slack_configs:
  - api_url: https://chat.site.example/x
prometheus_scrape_configs: [
{job_name: outside},
]
site_word: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  3132
slurm_rest_key: "c
d"
"""
GIVEN = """\
munge_key: a
site_word: !vault |
  $ANSIBLE_VAULT;1.1;AES256
  3132
slurm_rest_key: "c d"
"""


@pytest.mark.parametrize("is_vaulted", [False, True], ids=["in the clear", "vaulted"])
def test_a_lab_gets_no_secret_of_what_it_has_not(tmp_path: Path, *, is_vaulted: bool) -> None:
    password = tmp_path / "vault-password"
    password.write_text("correct horse")
    path = tmp_path / "secrets.yml"
    text = _vault("encrypt", path, password, SECRETS) if is_vaulted else SECRETS
    drill(Site(tmp_path / "inventory.yml", ONE.hosts, ONE.groups)).give_secrets(text, password)
    assert path.read_text().startswith("$ANSIBLE_VAULT;") == is_vaulted
    assert (_vault("view", path, password) if is_vaulted else path.read_text()) == GIVEN
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_backup_in_a_vault_is_refused_without_its_password(tmp_path: Path) -> None:
    site = Site(tmp_path / "inventory.yml", ONE.hosts, ONE.groups)
    with pytest.raises(DeployError, match="vault-password-needed"):
        drill(site).give_secrets("$ANSIBLE_VAULT;1.1;AES256\n3132\n", None)


@pytest.mark.parametrize("text", ["", "# none\n", "sssd_bind_password: b\n"])
def test_a_backup_may_have_no_secret_for_a_lab(text: str, tmp_path: Path) -> None:
    drill(Site(tmp_path / "inventory.yml", ONE.hosts, ONE.groups)).give_secrets(text, None)
    assert read_secrets(tmp_path / "secrets.yml", None) == {}


def test_all_controllers_and_the_database_are_in_the_lab_and_share_the_state() -> None:
    what = in_shape(SITE, 1)
    assert [each.name for each in what.hosts] == ["ctl1", "ctl2", "db1", "n1"]
    assert what.left_out == ("n2", "n3", "n4")
    assert "/var/spool/slurmctld" in what.shared
    assert in_shape(ONE, 1).shared == ("/home",)


def test_nodes_are_stopped_before_and_rows_counted_before_slurm_starts(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed: list[Options] = []

    def put_back(*_: object, deploys: Deploys, **__: object) -> None:
        machines.asked.append("put back")
        deploys(Options())

    def deploys(options: Options) -> None:
        machines.asked.append("deploy")
        deployed.append(options)

    monkeypatch.setattr(module, "put_back", put_back)
    made = drill(ONE)
    made.restore(Options(), deploys)
    order = [line.split("--execute")[0] for line in machines.asked]
    assert order[:2] == ["deploy-d-n1 systemctl stop slurmd", "put back"]
    assert order[-1] == "deploy"
    assert len([line for line in order if "mariadb" in line]) == 3
    assert (deployed[0].limit, deployed[0].tags) == ("ctl1", "slurmdbd,slurmctld")
    made.compare()
    assert made.is_as_said
    assert {row.found for row in made.compared[:3]} == {"3", "5"}


def test_jobs_are_ended_and_nodes_put_back_into_service(machines: Machines) -> None:
    made = drill(ONE)
    made.clear()
    assert "deploy-d-ctl1 scancel --quiet 3" in machines.asked
    assert made.resumed == ("n1",)
    assert machines.asked[-1] == "deploy-d-ctl1 scontrol update nodename=n1 state=resume"


def test_nodes_do_not_come_while_a_job_would_run(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    machines.endless = True
    monkeypatch.setattr(module, "_SECONDS_TO_END", 0)
    with pytest.raises(DeployError, match="drill-jobs-left") as refusal:
        drill(ONE).clear()
    assert refusal.value.exit_code is ExitCode.FAILED


def test_a_slurm_that_does_not_answer_is_no_comparison(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS_TO_ANSWER", 0)
    monkeypatch.setattr(module, "succeeds", lambda *_: False)
    made = drill(ONE)
    with pytest.raises(DeployError, match="drill-no-slurm"):
        made.compare()
    assert not made.is_as_said
    assert machines.asked == []


def test_no_address_of_the_site_is_left_with_a_route(machines: Machines) -> None:
    assert drill(ONE).cut_off(SITE) == {"machines": 2, "addresses_of_the_site": 7}
    asked = {line.rpartition(" ")[2] for line in machines.asked if "route get" in line}
    assert asked == {*(f"192.0.2.{last}" for last in (1, 2, 3, 11, 12, 13, 14)), "198.51.100.1"}
    machines.routes = {"192.0.2.3"}
    with pytest.raises(DeployError, match=r"could still reach 192\.0\.2\.3 \[rehearsal-not-apart\]"):
        drill(ONE).cut_off(SITE)


def test_an_address_that_the_lab_has_too_is_refused(machines: Machines) -> None:
    site = site_of(host("ctl1", "slurm-master", address=str(LAB.network[9])))
    with pytest.raises(DeployError, match=rf"too: {LAB.network[9]} \[rehearsal-not-apart\]"):
        drill(ONE).cut_off(site)
    assert machines.asked == []


def test_the_state_of_several_controllers_is_where_their_first_deployment_can_mark_it(
    machines: Machines,
) -> None:
    drill(ONE).share_state()
    assert machines.asked == []
    drill(SITE).share_state()
    assert machines.asked == ["deploy-d-ctl1 chmod 0777 /var/spool/slurmctld"]


def test_secrets_are_their_owners_alone(tmp_path: Path) -> None:
    made = drill(Site(tmp_path / "inventory.yml", {}, {}))
    made.give_secrets(None, None)
    assert [*tmp_path.iterdir()] == []
    made.give_secrets("munge_key: x\n", None)
    assert (tmp_path / "secrets.yml").stat().st_mode & 0o777 == 0o600


def test_what_slurm_prints_is_read() -> None:
    assert associations(["root|||151", " research|alice|1|3", "no row"]) == (
        ("root", "", "", 151),
        ("research", "alice", "1", 3),
    )
    assert half_life(CONFIG) == 7 * 86400
    assert half_life("PriorityDecayHalfLife = 00:00:00") == 0
    assert half_life("PriorityType = priority/basic") == 0
    assert half_life(CONFIG.replace("NONE", "MONTHLY")) is None
