"""What is asked of a node that is out of service."""

import json
from pathlib import Path

import pytest

from deploy.run import on_node


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "boot_id").write_text("b-1\n")
    # The name of a process may hold spaces and brackets.
    (tmp_path / "stat").write_text(f"1 (my (init) d) {' '.join(str(n) for n in range(3, 30))}\n")
    monkeypatch.setattr(on_node, "BOOT_ID", tmp_path / "boot_id")
    monkeypatch.setattr(on_node, "FIRST_PROCESS", tmp_path / "stat")
    monkeypatch.setattr(on_node, "HEALTH", tmp_path / "node_health")
    return tmp_path


def test_a_boot_is_known_by_the_kernel_and_the_first_process(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_node.main("boot", {})
    assert json.loads(capsys.readouterr().out.strip().removeprefix("deploy:")) == "b-1 22"
    (place / "boot_id").write_text("b-2\n")
    assert on_node.boot() == "b-2 22"


SLURMD, AS_DATA, IN_WORDS = ("is-active", "--quiet", "slurmd"), ("--show", "--json"), ("--show",)
USAGE = ("usage\n", False)
FULL = ["room", "/", "no room in /"]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({SLURMD: ("", True), AS_DATA: ("nothing is wrong\n", True)}, []),
        ({SLURMD: ("", True), AS_DATA: (json.dumps([FULL]), False)}, [FULL]),
        # The health check of an older version.
        (
            {SLURMD: ("", True), AS_DATA: USAGE, IN_WORDS: ("no room in /\nchrony\n", False)},
            [["health check", "", "no room in /"], ["health check", "", "chrony"]],
        ),
        ({SLURMD: ("", True), AS_DATA: USAGE, IN_WORDS: ("nothing is wrong\n", True)}, []),
        (
            {SLURMD: ("", True), AS_DATA: ("", False), IN_WORDS: ("", False)},
            [["health check", "", "its health check gives no answer"]],
        ),
        ({SLURMD: ("", False)}, [["service", "slurmd", "slurmd does not run"]]),
    ],
)
def test_faults_are_those_of_the_health_check(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: dict[tuple[str, ...], tuple[str, bool]],
    expected: list[object],
) -> None:
    (place / "node_health").touch()
    monkeypatch.setattr(on_node, "_run", lambda *command: answers[command[1:]])
    assert on_node.faults() == expected


def test_a_node_without_its_health_check_is_not_well(place: Path) -> None:
    words = f"{place}/node_health is not there: deploy cluster installs it"
    assert on_node.faults() == [["health check", "", words]]


@pytest.mark.parametrize(("answer", "expected"), [(("", True), ""), (("inhibited\n", False), "inhibited")])
def test_a_refused_reboot_says_why(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[str, bool], expected: str
) -> None:
    monkeypatch.setattr(on_node, "_run", lambda *_: answer)
    assert on_node.reboot() == expected
