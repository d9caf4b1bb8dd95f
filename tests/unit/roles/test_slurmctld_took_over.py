"""What a slurmctld is asked for that took the lead over from another one."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.roles.loading import load_program

CONF = "SlurmctldHost=ctl1(10.0.0.1)\nSlurmctldHost=ctl2(10.0.0.2)\n"
SLURMCTLD = 4711
Answer = tuple[int, str]


@pytest.fixture(scope="module")
def loaded() -> ModuleType:
    return load_program("roles/slurmctld/files/usr/local/lib/slurmctld/took_over.py")


class Host:
    """The programs of a controller: what they answer, one after the other, and what they were told."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.main = SLURMCTLD
        self.told: list[str] = []
        self.asked: set[str] = set()
        self.noted: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def run(self, *command: str) -> Answer:
        if command[0] == "env":
            named = Path(command[1].removeprefix("SLURM_CONF=")).read_text()
            self.asked |= {line for line in named.splitlines() if "SlurmctldHost" in line}
            command = command[2:]
        program = command[0]
        if program == "systemctl":
            return 0, str(self.main)
        self.told.append(" ".join(command))
        answers = self.answers.get(program, [(0, "")])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        self.meanwhile()
        return answer


@pytest.fixture
def module(loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    (tmp_path / "slurm.conf").write_text(CONF)
    monkeypatch.setattr(loaded, "CONFIGURATION", tmp_path / "slurm.conf")
    monkeypatch.setattr(loaded, "IN_VAIN", tmp_path / "in_vain")
    monkeypatch.setattr(loaded, "_PAUSE_SECONDS", 0)
    monkeypatch.delenv("SLURMCTLD_RECONF", raising=False)
    return loaded


@pytest.fixture
def host(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(module, "run", made.run)
    monkeypatch.setattr(module.syslog, "syslog", lambda *words: made.noted.append(str(words[-1])))
    return made


@pytest.mark.parametrize(
    ("said", "is_asked"),
    [("slurm-wlm 24.11.5", False), ("slurm 25.11.7", False), ("slurm-wlm 26.05.5", True), ("?", False)],
)
def test_releases_that_send_by_themselves_are_not_asked(
    module: ModuleType, host: Host, said: str, *, is_asked: bool
) -> None:
    host.answers["slurmctld"] = [(0, said)]
    assert module.keeps_it_to_itself() is is_asked


def test_the_first_one_stands_by_never(module: ModuleType, host: Host) -> None:
    assert not module.took_over(SLURMCTLD, "ctl1")
    assert module.took_over(SLURMCTLD, "ctl2")
    assert host.told == []


def test_the_process_that_reads_the_configuration_anew_is_not_asked_again(
    module: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURMCTLD_RECONF", "1")
    host.main = SLURMCTLD - 1
    assert not module.took_over(SLURMCTLD, "ctl2")
    # Later it stood by, and took over once more.
    host.main = SLURMCTLD
    assert module.took_over(SLURMCTLD, "ctl2")


def test_no_other_controller_is_asked(module: ModuleType, host: Host) -> None:
    """The first one may hang: it takes the connection, and says nothing."""
    module.speak(SLURMCTLD, "ctl2")
    assert host.told == ["sdiag", "scontrol reconfigure"]
    assert host.asked == {"SlurmctldHost=ctl2(10.0.0.2)"}


def test_one_that_never_answers_is_named(
    module: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", -1)
    host.answers["sdiag"] = [(1, "Socket timed out")]
    module.speak(SLURMCTLD, "ctl2")
    assert "accounts for nothing, because it does not answer: Socket timed out" in host.noted[0]
    assert host.told == ["sdiag"]


def test_it_is_asked_once_it_answers(module: ModuleType, host: Host) -> None:
    host.answers["sdiag"] = [(1, "no answer"), (1, "no answer"), (0, "")]
    module.speak(SLURMCTLD, "ctl2")
    assert host.told == ["sdiag", "sdiag", "sdiag", "scontrol reconfigure"]
    assert "so that it accounts" in host.noted[0]
    assert module.took_over(SLURMCTLD, "ctl2")


def test_one_that_ended_meanwhile_is_not_waited_for(module: ModuleType, host: Host) -> None:
    host.answers["sdiag"] = [(1, "no answer")]
    host.main = 0
    module.speak(SLURMCTLD, "ctl2")
    assert host.told == ["sdiag"]
    assert host.noted == []


def test_one_that_does_not_take_its_configuration_is_asked_once(module: ModuleType, host: Host) -> None:
    host.answers["scontrol"] = [(1, "slurm_reconfigure error: Parse error")]
    module.speak(SLURMCTLD, "ctl2")
    (said,) = host.noted
    assert "does not read its configuration anew: slurm_reconfigure error: Parse error." in said
    assert not module.took_over(SLURMCTLD, "ctl2")
    # The next one is.
    assert module.took_over(SLURMCTLD + 1, "ctl2")


def test_an_answer_that_is_lost_is_no_refusal(module: ModuleType, host: Host) -> None:
    host.answers["scontrol"] = [(1, "Socket timed out")]

    def begins() -> None:
        host.main = SLURMCTLD + 1 if "scontrol reconfigure" in host.told else SLURMCTLD

    host.meanwhile = begins
    module.speak(SLURMCTLD, "ctl2")
    assert host.noted == []
    assert module.took_over(SLURMCTLD, "ctl2")
