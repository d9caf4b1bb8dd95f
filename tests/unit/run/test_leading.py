"""Which controller leads by Slurm's own answers, and how another one is made to."""

from pathlib import Path

import pytest

from deploy.run import leading

CONFIGURATION = """\
ClusterName=cluster
SlurmctldHost=ctl1(10.0.0.1)
slurmctldhost = ctl2(10.0.0.2)
StateSaveLocation=/shared/state
SlurmctldTimeout=30
"""
SDIAG = """\
sdiag output at Thu Nov 26 07:13:30 2026 (1795677210)
Data since      Thu Nov 26 07:13:01 2026 (1795677181)
"""
STANDS_BY = "slurm_get_statistics: Slurm backup controller in standby mode\n"
AWAY = "slurm_get_statistics: Unable to contact slurm controller (connect failure)\n"


class Slurm:
    """Two controllers, of which one is asked by the slurm.conf that names it alone."""

    def __init__(self, configuration: Path) -> None:
        self.configuration = configuration
        self.leader = "ctl1"
        self.off: set[str] = set()
        self.refuses = ""
        self.ran: list[tuple[str, ...]] = []
        self.heartbeat = " 1000 0\n"
        self.allowed = ""
        self.has_queue = self.has_database = self.may_write = True
        self.jobs = "7 RUNNING 0\n8_1 PENDING 2\n"

    def run(self, *command: str) -> tuple[str, bool]:
        match command:
            case ("env", configuration, "sdiag"):
                return self._sdiag(self._named(configuration))
            case ("env", configuration, "squeue", *_):
                return (self.jobs, True) if self._named(configuration) == self.leader else (STANDS_BY, False)
            case ("runuser", "--user=slurm", "--", *what):
                return self._as_slurm(what)
            case ("sacctmgr", *_):
                return ("cluster\n", True) if self.has_database else ("sacctmgr: error: refused\n", False)
        return self._does(command)

    def _as_slurm(self, command: list[str]) -> tuple[str, bool]:
        match command:
            case ["od", *_]:
                return self.heartbeat, bool(self.heartbeat)
            case ["cat", "/shared/state/deploy_configuration"]:
                return self.allowed or "cat: no such file\n", bool(self.allowed)
        can = {"/shared/state": self.may_write, "/shared/state/job_state": self.has_queue}
        return "", can[command[-1]]

    def _does(self, command: tuple[str, ...]) -> tuple[str, bool]:
        self.ran.append(command)
        if self.refuses:
            return f"\n{self.refuses}\n", False
        self.leader = {"scontrol": "ctl2", "systemctl": "ctl1"}.get(command[0], self.leader)
        return "", True

    @staticmethod
    def _named(configuration: str) -> str:
        text = Path(configuration.removeprefix("SLURM_CONF=")).read_text()
        assert "StateSaveLocation=/shared/state" in text
        (line,) = [line for line in text.splitlines() if "slurmctldhost" in line.lower()]
        return line.partition("=")[2].strip().partition("(")[0]

    def _sdiag(self, name: str) -> tuple[str, bool]:
        if name in self.off:
            return AWAY, False
        return (SDIAG, True) if name == self.leader else (STANDS_BY, False)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(tmp_path / "slurm.conf")
    made.configuration.write_text(CONFIGURATION)
    monkeypatch.setattr(leading, "CONFIGURATION", made.configuration)
    monkeypatch.setattr(leading, "OWN", tmp_path / "deploy_configuration")
    monkeypatch.setattr(leading, "_run", made.run)
    monkeypatch.setattr(leading, "_order", made.run)
    monkeypatch.setattr(leading, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr("deploy.run.leading.time.time", lambda: 1010.0)
    return made


def test_each_controller_is_asked_alone(slurm: Slurm) -> None:
    said = leading.stand()
    assert [*said] == ["ctl1", "ctl2"]
    assert said["ctl1"] == {"stands": "leads", "why": "", "since": "1795677181"}
    assert said["ctl2"] == {"stands": "stands by", "why": "", "since": ""}
    slurm.leader, slurm.off = "ctl2", {"ctl1"}
    said = leading.stand()
    assert said["ctl1"]["stands"] == "silent"
    assert said["ctl1"]["why"].endswith("(connect failure)")
    assert said["ctl2"]["stands"] == "leads"


def test_it_can_lead_with_the_state_of_the_one_that_does(slurm: Slurm) -> None:
    assert leading.ready("ctl1") == {"state": "", "configuration": "", "database": ""}
    slurm.has_database = False
    assert leading.ready("ctl1")["database"] == "sacctmgr: error: refused"


@pytest.mark.parametrize(
    ("heartbeat", "why"),
    [
        (" 1000 1\n", "was written by ctl2 10 s ago, and not just now by ctl1"),
        (" 900 0\n", "was written by ctl1 110 s ago"),
        (" 1000 9\n", "was written by number 9"),
        ("od: /shared/state/heartbeat: No such file\n", "has no heartbeat"),
        ("", "has no heartbeat"),
    ],
)
def test_a_state_that_the_leader_does_not_write_is_another_one(
    slurm: Slurm, heartbeat: str, why: str
) -> None:
    slurm.heartbeat = heartbeat
    assert why in leading.ready("ctl1")["state"]


def test_a_directory_without_a_queue_is_no_state(slurm: Slurm) -> None:
    slurm.has_queue = False
    assert "finds no queue in /shared/state; a slurmctld that was" in leading.ready("ctl1")["state"]


def test_a_directory_in_which_slurm_may_not_write_is_no_state(slurm: Slurm) -> None:
    slurm.may_write = False
    assert leading.ready("ctl1")["state"] == "the user slurm cannot write in /shared/state"


@pytest.mark.parametrize(
    ("own", "allowed", "is_ready"),
    [
        ("old\n", "new\n", False),
        ("new\n", "new\n", True),
        ("old\n", "new\nold\n", True),
        ("", "new\n", True),
        ("old\n", "", True),
        ("old\n", "\n", True),
    ],
)
def test_who_was_away_when_the_configuration_changed_is_not_to_lead(
    slurm: Slurm, own: str, allowed: str, *, is_ready: bool
) -> None:
    if own:
        leading.OWN.write_text(own)
    slurm.allowed = allowed
    assert (leading.ready("ctl1")["configuration"] == "") is is_ready


def test_another_controller_is_told_to_take_over(slurm: Slurm) -> None:
    said = leading.take("ctl2", "ctl1", 5)
    assert slurm.ran == [("scontrol", "takeover", "1")]
    assert said == {"leads": True, "last": 1010.0, "first": 1010.0, "trouble": ""}


def test_the_first_controller_takes_the_lead_when_it_starts(slurm: Slurm) -> None:
    slurm.leader, slurm.off = "ctl2", set()
    assert leading.take("ctl1", "ctl2", 5)["leads"] is True
    assert slurm.ran == [("systemctl", "restart", "slurmctld")]


def test_what_is_refused_is_not_waited_for(slurm: Slurm) -> None:
    slurm.refuses = "slurm_takeover error: Access denied"
    said = leading.take("ctl2", "ctl1", 3600)
    assert (said["leads"], said["trouble"]) == (False, "slurm_takeover error: Access denied")


def test_what_is_stopped_starts_again_by_itself(slurm: Slurm) -> None:
    assert leading.halt() == {"at": 1010.0, "trouble": ""}
    former, timer, stop = slurm.ran
    assert former == ("systemctl", "stop", "deploy-stands-by.timer")
    assert timer[0] == "systemd-run"
    assert "--unit=deploy-stands-by" in timer
    assert timer[-3:] == ("systemctl", "start", "slurmctld")
    assert stop == ("systemctl", "stop", "slurmctld")
    slurm.ran.clear()
    slurm.refuses = "Failed to start transient timer unit"
    assert leading.halt()["trouble"] == "Failed to start transient timer unit"
    assert [command[0] for command in slurm.ran] == ["systemctl", "systemd-run"]


def test_what_was_started_is_not_started_once_more(slurm: Slurm) -> None:
    """Somebody may stop it on purpose just after."""
    assert leading.stand_by() == {"trouble": ""}
    start, timer = slurm.ran
    assert start == ("systemctl", "start", "slurmctld")
    assert timer == ("systemctl", "stop", "deploy-stands-by.timer")
    slurm.ran.clear()
    slurm.refuses = "Job for slurmctld.service failed"
    assert leading.stand_by()["trouble"] == "Job for slurmctld.service failed"
    assert slurm.ran == [start]


@pytest.mark.usefixtures("slurm")
def test_the_queue_is_that_of_one_controller() -> None:
    assert leading.queue("ctl1") == {"jobs": {"7": ["RUNNING", 0], "8_1": ["PENDING", 2]}}
    assert "standby mode" in leading.queue("ctl2")["trouble"]


def test_a_host_without_configuration_says_so(slurm: Slurm, capsys: pytest.CaptureFixture[str]) -> None:
    slurm.configuration.write_text("ClusterName=cluster\n")
    leading.main("stand", {})
    assert "names no controller" in capsys.readouterr().out
    slurm.configuration.unlink()
    leading.main("stand", {})
    assert "No such file or directory" in capsys.readouterr().out
