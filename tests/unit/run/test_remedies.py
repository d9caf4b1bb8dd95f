"""What is done on a node that is to be repaired."""

import json
from pathlib import Path

import pytest
import yaml

from deploy.run import remedies
from tests.unit.roles.loading import load_module

MOUNTS = """\
/dev/vda1 / ext4 rw 0 0
srv:/home /home nfs4 ro 0 0
systemd-1 /auto autofs rw 0 0
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What was run; what begins with `refuses` fails."""
    ran: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        ran.append(command)
        return ("first\nlast\n", False) if "refuses" in command else ("", True)

    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(remedies, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(remedies, "SETTINGS", tmp_path / "node_health.json")
    monkeypatch.setattr(remedies, "DMI", tmp_path)
    monkeypatch.setattr(remedies, "_run", run)
    return ran


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home", [("umount", "--force", "--lazy", "/home"), ("mount", "/home")]),
        ("/missing", [("mount", "/missing")]),
        ("/auto", [("mount", "/auto")]),
        ("/", []),
    ],
)
def test_only_what_a_server_has_is_mounted_anew(
    commands: list[tuple[str, ...]], path: str, expected: list[tuple[str, ...]]
) -> None:
    assert bool(remedies.remount(path)) == (not expected)
    assert commands == expected


@pytest.mark.parametrize(
    ("path", "said", "expected"),
    [
        ("/missing", "", [("mount", "/missing")]),
        ("/auto", "", [("mount", "/auto")]),
        ("/home", "not mounted: nfs4 is mounted there", []),
    ],
)
def test_what_is_missing_is_mounted_and_nothing_is_taken_away(
    commands: list[tuple[str, ...]], path: str, said: str, expected: list[tuple[str, ...]]
) -> None:
    assert remedies.mount(path) == said
    assert commands == expected


def test_a_remedy_that_fails_says_why(commands: list[tuple[str, ...]]) -> None:
    assert remedies.restart("munge") == ""
    assert remedies.restart("refuses") == "last"
    assert commands[0] == ("systemctl", "reset-failed", "munge")


def test_a_sites_own_remedy_is_what_the_node_was_told(commands: list[tuple[str, ...]]) -> None:
    programs = [
        {"name": "licence", "command": ["x"], "repair": ["renew", "now"]},
        {"name": "mute", "repair": None},
    ]
    remedies.SETTINGS.write_text(json.dumps({"programs": programs}))
    assert remedies.own("licence") == ""
    assert commands == [("renew", "now")]
    assert remedies.own("mute") == remedies.own("mute") == "node_health_programs says no repair for mute"


def test_what_a_job_left_is_named_by_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "steps", lambda: ["12.0", "12.batch"])
    assert remedies.leftovers() == "still run here: 12.0, 12.batch"
    monkeypatch.setattr(remedies, "steps", list)
    assert remedies.leftovers() == ""


def test_a_dossier_has_what_is_there(
    commands: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    (remedies.DMI / "product_serial").write_text("4711\n")
    remedies.main("dossier", {})
    said = json.loads(capsys.readouterr().out.strip().removeprefix("deploy:"))
    assert said == {"machine": "product_serial: 4711"}
    assert ("systemctl", "--failed", "--no-legend", "--plain") in commands


def test_an_accident_on_the_node_is_an_answer(
    commands: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands == []
    remedies.main("own", {"subject": "licence"})
    assert "FileNotFoundError" in capsys.readouterr().out


class Gpus:
    """The units of a node, and an nvidia-smi that resets no GPU which one of them holds."""

    def __init__(self, *active: str, others: bool = False, broken: str = "") -> None:
        self.active, self.others, self.broken = [*active], others, broken
        self.ran: list[str] = []

    def __call__(self, *command: str) -> tuple[str, bool]:
        verb, unit = command[1], command[-1]
        if command[0] == "nvidia-smi":
            held = self.others or {*remedies.GPU_HOLDERS} & {*self.active}
            self.ran.append(" ".join(command[1:]))
            return ("GPU 0: In use by another client\n", False) if held else ("", True)
        assert command[0] == "systemctl"
        if verb == "is-active":
            return "", unit in self.active
        self.ran.append(f"{verb} {unit}")
        if unit == self.broken:
            return f"Job for {unit} failed\n", False
        if verb == "stop":
            self.active.remove(unit)
        elif verb == "start":
            self.active.append(unit)
        return "", True


def installs(monkeypatch: pytest.MonkeyPatch, node: Gpus) -> None:
    for name in ("_run", "_run_long"):
        monkeypatch.setattr(remedies, name, node)


DCGM, PERSISTENCED, EXPORTER = "nvidia-dcgm.service", "nvidia-persistenced.service", "gpu_exporter.service"
STOPPED = [f"stop {EXPORTER}", f"stop {DCGM}", f"stop {PERSISTENCED}"]
STARTED = [f"start {PERSISTENCED}", f"start {DCGM}", f"start {EXPORTER}"]


@pytest.mark.parametrize(("subject", "words"), [("3", "--gpu-reset --id 3"), ("", "--gpu-reset")])
def test_a_gpu_is_reset_when_nothing_of_the_node_holds_it(
    monkeypatch: pytest.MonkeyPatch, subject: str, words: str
) -> None:
    node = Gpus(PERSISTENCED, DCGM, EXPORTER, "slurmd.service")
    installs(monkeypatch, node)
    assert remedies.reset_gpu(subject) == ""
    assert node.ran == [*STOPPED, words, *STARTED]


def test_what_held_a_gpu_runs_again_where_it_is_not_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Gpus(PERSISTENCED, DCGM, EXPORTER, "deploy-mig.service", others=True)
    installs(monkeypatch, node)
    assert remedies.reset_gpu("3") == "GPU 0: In use by another client"
    assert node.ran == [*STOPPED, "--gpu-reset --id 3", *STARTED]


@pytest.mark.parametrize("unit", [DCGM, "deploy-mig.service"])
def test_what_does_not_come_back_is_named(monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    node = Gpus(PERSISTENCED, EXPORTER, DCGM, "deploy-mig.service")
    node.broken = unit
    installs(monkeypatch, node)
    assert remedies.reset_gpu("3") == f"Job for {unit} failed"
    assert [line for line in node.ran if line.startswith("start")][:1] == STARTED[:1]


def test_what_a_reset_takes_is_given_to_a_gpu_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Gpus(PERSISTENCED, "deploy-mig.service", "deploy-nvidia-cdi.service", "slurmd.service")
    installs(monkeypatch, node)
    assert remedies.reset_gpu("3") == ""
    after = node.ran[node.ran.index(f"start {PERSISTENCED}") + 1 :]
    assert after == [f"restart {name}.service" for name in ("deploy-mig", "deploy-nvidia-cdi", "slurmd")]
    node = Gpus("deploy-gpu-modes.service", "slurmd.service")
    installs(monkeypatch, node)
    assert remedies.reset_gpu("3") == ""
    assert node.ran == ["--gpu-reset --id 3", "restart deploy-gpu-modes.service"]


def test_who_holds_gpus_and_who_reads_instances_is_the_same_everywhere() -> None:
    program = load_module("roles/mig/files/deploy_mig.py")
    assert program.HOLDERS == remedies.GPU_HOLDERS
    role = yaml.safe_load(Path("roles/mig/vars/main.yml").read_text(encoding="utf-8"))
    assert tuple(role["__mig_readers"]) == remedies.INSTANCE_READERS
