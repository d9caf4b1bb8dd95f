"""The program that slurmd runs: what it takes for a fault, and what it does about it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.site.schema import default_of
from tests.unit.roles.loading import ROOT, load_health

PROGRAM = ROOT / "roles/node_health/files/usr/local/lib/node_health"


@pytest.fixture(scope="module")
def checks() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    return load_health("health_checks")


@pytest.fixture(scope="module")
def program() -> Any:  # noqa: ANN401
    return load_health("node_health")


@pytest.fixture(scope="module")
def slurm(program: Any) -> Any:  # noqa: ANN401
    return sys.modules[program.read_node.__module__]


def words(faults: Iterable[object]) -> list[str]:
    return [str(fault) for fault in faults]


def shown(state: str, reason: str = "") -> str:
    """`scontrol --oneliner show node`."""
    given = f" Reason={reason} [root@2026-11-21T10:00:00]" if reason else ""
    return f"NodeName=node1 Arch=x86_64 State={state} ThreadsPerCore=1 Comment=(null){given}\n"


@pytest.mark.parametrize(
    ("state", "reason", "faults", "action"),
    [
        ("IDLE", "", [], "NOTHING"),
        ("IDLE", "", ["/home is not mounted"], "DRAIN"),
        ("MIXED+CLOUD", "", ["/home is not mounted"], "DRAIN"),
        # Ours, and said already; ours, and something else by now.
        ("IDLE+DRAIN", "node_health: /home is not mounted", ["/home is not mounted"], "NOTHING"),
        ("IDLE+DRAIN", "node_health: /home is not mounted", ["munge is failed"], "DRAIN"),
        ("IDLE+DRAIN", "node_health: /home is not mounted", [], "RESUME"),
        ("DOWN*+DRAIN", "node_health: /home is not mounted", [], "RESUME"),
        # Somebody else's.
        ("IDLE+DRAIN", "new fan", [], "NOTHING"),
        ("IDLE+DRAIN", "new fan", ["/home is not mounted"], "NOTHING"),
        ("ALLOCATED+DRAIN", "see node_health: flaky", [], "NOTHING"),
        ("DOWN", "Not responding", ["/home is not mounted"], "NOTHING"),
        ("IDLE+REBOOT_REQUESTED", "kernel", ["/home is not mounted"], "NOTHING"),
        # A leftover: nobody holds the node back with it.
        ("IDLE", "new fan", ["/home is not mounted"], "DRAIN"),
        ("IDLE", "node_health: /home is not mounted", [], "NOTHING"),
    ],
)
def test_only_its_own_drains_are_taken_back(
    slurm: Any,  # noqa: ANN401
    state: str,
    reason: str,
    faults: list[str],
    action: str,
) -> None:
    assert slurm.decide(faults, slurm.parse_node(shown(state, reason))).name == action


def test_a_reason_is_one_line_of_bounded_length(slurm: Any) -> None:  # noqa: ANN401
    reason = slurm.reason_for(["a\nb", "x" * 1000])
    assert reason.startswith("node_health: a b; xxx")
    assert len(reason) == 400


def test_an_answer_without_a_state_is_an_error(slurm: Any) -> None:  # noqa: ANN401
    with pytest.raises(slurm.SlurmError):
        slurm.parse_node("Node node1 not found\n")


MOUNTS = """\
server:/home /home nfs4 rw,relatime,vers=4.2 0 0
systemd-1 /scratch autofs rw,relatime 0 0
/dev/sda1 /with\\040space ext4 ro,relatime 0 0
"""


@pytest.mark.parametrize(
    ("mount", "faults"),
    [
        ({"path": "/home"}, []),
        ({"path": "/home", "type": "nfs"}, []),
        ({"path": "/home", "type": "lustre"}, ["/home is nfs4, not lustre"]),
        ({"path": "/scratch"}, ["/scratch is not mounted"]),
        ({"path": "/elsewhere"}, ["/elsewhere is not mounted"]),
        ({"path": "/with space"}, ["/with space is read-only"]),
        ({"path": "/with space", "writable": False}, []),
    ],
)
def test_mounts(checks: Any, mount: dict[str, Any], faults: list[str]) -> None:  # noqa: ANN401
    assert words(checks.mount_faults([mount], checks.parse_mounts(MOUNTS))) == faults


def test_disks(checks: Any, tmp_path: Path) -> None:  # noqa: ANN401
    room, gone = {"path": str(tmp_path), "free_mb": 1}, {"path": str(tmp_path / "gone"), "free_mb": 1}
    much = {"path": str(tmp_path), "free_mb": 1 << 40}
    assert words(checks.disk_faults([room])) == []
    assert words(checks.disk_faults([gone])) == [f"{tmp_path}/gone: No such file or directory"]
    assert words(checks.disk_faults([much])) == [f"{tmp_path} is full: less than {1 << 40} MiB free"]


@pytest.mark.parametrize(
    ("properties", "faults"),
    [
        ("ActiveState=active\nSubState=running\nJob=0", []),
        ("ActiveState=activating\nSubState=start\nJob=5", []),
        ("ActiveState=inactive\nSubState=dead\nJob=7", []),
        ("ActiveState=inactive\nSubState=dead\nJob=0", ["munge is inactive"]),
        ("ActiveState=failed\nSubState=failed\nJob=0", ["munge is failed"]),
        (
            "ActiveState=activating\nSubState=auto-restart\nJob=0",
            ["munge is failed, and started again and again"],
        ),
        (
            "ActiveState=activating\nSubState=auto-restart-queued\nJob=9",
            ["munge is failed, and started again and again"],
        ),
    ],
)
def test_services(checks: Any, properties: str, faults: list[str]) -> None:  # noqa: ANN401
    assert words(checks.service_faults(["munge"], properties)) == faults


TRACKING = (
    "C0A80001,192.168.0.1,3,1790000000.1,{offset},0.000001,0.00002,1.0,0.0,0.1,0.01,0.001,64.0,{leap}\n"
)


@pytest.mark.parametrize(
    ("offset", "leap", "faults"),
    [
        ("0.2", "Normal", []),
        ("-3.5", "Normal", ["the clock is more than 1 s off"]),
        ("-3.5", "Not synchronised", []),
    ],
)
def test_clock(checks: Any, offset: str, leap: str, faults: list[str]) -> None:  # noqa: ANN401
    assert words(checks.clock_faults(TRACKING.format(offset=offset, leap=leap), 1)) == faults
    assert words(checks.clock_faults("", 1)) == []


FIELDS = [
    {"field": "ecc.errors.uncorrected.volatile.total", "healthy": ["0"]},
    {"field": "retired_pages.pending", "healthy": ["No"]},
]


@pytest.mark.parametrize(
    ("said", "faults"),
    [
        ("0, 0, No\n1, [N/A], [N/A]\n", []),
        ("0, 0, No\n", ["gpus: the contract says 2, nvidia-smi shows 1"]),
        (
            "0, 2, No\n1, 0, Yes\n",
            [f"GPU 0: {FIELDS[0]['field']} is 2", f"GPU 1: {FIELDS[1]['field']} is Yes"],
        ),
    ],
)
def test_what_the_driver_says(checks: Any, said: str, faults: list[str]) -> None:  # noqa: ANN401
    assert words(checks.gpu_faults(said, FIELDS, 2)) == faults


@pytest.mark.parametrize(
    ("answers", "count"),
    [
        ("0, No, No, No, None", 0),
        ("0, 0, 0, 0, None", 0),
        ("0, Yes, 1, Yes, None", 3),
        ("0, No, No, 1, GPU Reset", 2),
    ],
)
def test_the_usual_fields_are_right_in_words_and_in_numbers(checks: Any, answers: str, count: int) -> None:  # noqa: ANN401
    usual = default_of("node_health_gpu_fields")
    assert len(words(checks.gpu_faults(f"0, {answers}\n", usual, 1))) == count


# As nvidia-smi 580 refuses a field that it does not know, and with it the whole query.
REFUSES = """case $1 in {}) echo "Field \\"$(echo $1 | cut -d, -f2)\\" is not a valid field to query."
echo; exit 2;; esac
"""


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 0, 0, No; echo 1, 0, No", ([], 0)),
        (
            "echo 'Unable to determine the device handle for GPU0000:0A:00.0: GPU is lost.'; exit 15",
            (["nvidia-smi: Unable to determine the device handle for GPU0000:0A:00.0: GPU is lost."], 0),
        ),
        # A slip in the settings must not drain the whole cluster.
        ("echo 'Field \"typo\" is not a valid field to query.'; exit 2", ([], 1)),
        (REFUSES.format("*ecc*") + "echo 0, No; echo 1, Yes", (["GPU 1: retired_pages.pending is Yes"], 1)),
        (REFUSES.format("*.*") + "echo 0; echo 1", ([], 2)),
    ],
)
def test_nvidia_smi_is_asked_where_there_is_a_driver(
    checks: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    expected: tuple[list[str], int],
) -> None:
    (tmp_path / "driver/nvidia").mkdir(parents=True)
    (tmp_path / "driver/nvidia/version").touch()
    stand_in = tmp_path / "nvidia-smi"
    stand_in.write_text(f"#!/bin/sh\n{script}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(checks, "_PROC", tmp_path)
    own = checks.Checks({"contract": {"gpus": [{"type": "a100", "count": 2}]}, "gpu_fields": FIELDS})
    assert (words(own._gpu_faults()), len(own.remarks)) == expected
    tolerant = [{**field, "optional": True} for field in FIELDS]
    own = checks.Checks({"contract": {"gpus": [{"type": "a100", "count": 2}]}, "gpu_fields": tolerant})
    assert words(own._gpu_faults()) == expected[0]
    assert len(own.remarks) == ("typo" in script)


def test_infiniband(checks: Any, tmp_path: Path) -> None:  # noqa: ANN401
    for device, state, rate in (
        ("mlx5_0", "4: ACTIVE", "200 Gb/sec (4X HDR)"),
        ("mlx5_1", "1: DOWN", "10 Gb/sec"),
    ):
        port = tmp_path / "class/infiniband" / device / "ports/1"
        port.mkdir(parents=True)
        (port / "state").write_text(state + "\n")
        (port / "rate").write_text(rate + "\n")
    wanted = [
        {"device": "mlx5_0", "gbits": 200},
        {"device": "mlx5_0", "gbits": 400},
        {"device": "mlx5_1"},
        {"device": "mlx5_2", "port": 2},
    ]
    assert words(checks.infiniband_faults(wanted, tmp_path)) == [
        "mlx5_0 port 1 runs at 200 Gb/s, not 400",
        "mlx5_1 port 1 is DOWN",
        "mlx5_2 port 2 is missing",
    ]


def test_a_program_that_hangs_or_fails_is_a_fault(checks: Any) -> None:  # noqa: ANN401
    programs = [
        {"name": "hangs", "command": ["sleep", "60"], "seconds": 0.1},
        {"name": "fails", "command": ["sh", "-c", "echo first; echo last >&2; exit 3"]},
        {"name": "is silent", "command": ["false"]},
        {"name": "is missing", "command": ["/no/such/program"]},
        {"name": "is fine", "command": ["true"]},
    ]
    began = time.monotonic()
    assert words(checks.program_faults(programs)) == [
        "hangs: no answer within 0.1 s",
        "fails: last",
        "is silent: exit code 1",
        "is missing: No such file or directory",
    ]
    assert time.monotonic() - began < 50


def test_a_file_system_that_hangs_does_not_hang_the_check(
    checks: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in = tmp_path / "stat"
    stand_in.write_text('#!/bin/sh\ncase "$3" in /hung) exec sleep 60;; esac\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(checks, "_SECONDS_TO_ANSWER", 3)
    assert checks.unanswered(["/", "/hung", "/tmp"]) == ["/hung"]


class Clock:
    """Time that passes where somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


NVIDIA_SMI = "nvidia-smi: no answer within 20 s"


@pytest.mark.parametrize(
    "case",
    [
        ([], {"own"}, 30, ["own: no answer within 30 s"], {"own", "nvidia-smi"}),
        ([], {"nvidia-smi", "own"}, 20, [NVIDIA_SMI, "own: no answer within 20 s"], {"own", "nvidia-smi"}),
        (["/data"], {"nvidia-smi"}, 5, ["/data does not answer", NVIDIA_SMI], {"nvidia-smi"}),
        # What is not asked for lack of time is no fault.
        (["/data"], {"nvidia-smi", "own"}, 30, ["/data does not answer", NVIDIA_SMI], {"own"}),
    ],
)
def test_slurm_is_told_of_what_hangs_before_slurmd_kills_the_check(
    program: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[list[str], set[str], int, list[str], set[str]],
) -> None:
    import health_checks  # type: ignore[import-not-found]  # noqa: PLC0415

    mounts, hangs, seconds, found, remarks = case
    clock = Clock()

    def answer(command: list[str], limit: float, **_: object) -> tuple[int, str]:
        if command[0] not in hangs:
            return 0, "0\n" if command[0] == "nvidia-smi" else ""
        clock.sleep(limit + 0.5)
        return 124, f"no answer within {limit:g} s"

    def unanswered(paths: list[str]) -> list[str]:
        clock.sleep(10.5 if paths else 0)
        return paths

    for module in (health_checks, program):
        monkeypatch.setattr(module, "time", clock)
    for name, stand_in in (("answer", answer), ("unanswered", unanswered), ("_PROC", tmp_path)):
        monkeypatch.setattr(health_checks, name, stand_in)
    for path in ("driver/nvidia/version", "self/mounts"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    monkeypatch.setattr(health_checks, "read_hardware", lambda _: {"cpus": 1, "gpus": [{"count": 1}]})
    monkeypatch.setattr(health_checks, "shortfalls", lambda *_: [])
    lists: dict[str, Any] = {name: [] for name in ("disks", "services", "gpu_fields", "infiniband")}
    own = {"name": "own", "command": ["own"], "seconds": seconds}
    looked = health_checks.Checks(
        {
            **lists,
            "mounts": [{"path": path} for path in mounts],
            "programs": [own],
            "clock_seconds": 0,
            "contract": {"gpus": [{"count": 1}]},
        },
        program._SECONDS_TO_LOOK,
    )
    assert sorted(words(program.find_faults(looked))) == sorted(found)
    # Two questions to Slurm take fifteen seconds at most, or are given up.
    assert clock.now - 1000 <= 60 - 15
    assert {remark.removeprefix("no time was left for ") for remark in looked.remarks} >= remarks


@pytest.mark.parametrize(
    ("second", "found", "late"),
    [
        # It has less than its seconds left, and needs them not.
        ((1, 0), ["second: exit code 1"], set()),
        ((0, 27), [], set()),
        # It failed by itself, as `timeout` does, when there was time.
        ((124, 1), ["second: exit code 124"], set()),
        ((0, 30), [], {"program"}),
    ],
)
def test_a_program_has_what_time_is_left(
    monkeypatch: pytest.MonkeyPatch, second: tuple[int, int], found: list[str], late: set[str]
) -> None:
    import health_checks  # noqa: PLC0415

    clock = Clock()
    takes = {"first": (0, 16), "second": second}

    def answer(command: list[str], limit: float) -> tuple[int, str]:
        code, seconds = takes[command[0]]
        if seconds <= limit:
            clock.sleep(seconds)
            return code, ""
        clock.sleep(limit + 0.5)
        return 124, f"no answer within {limit:g} s"

    monkeypatch.setattr(health_checks, "time", clock)
    monkeypatch.setattr(health_checks, "answer", answer)
    programs = [{"name": name, "command": [name], "seconds": 30} for name in ("first", "second")]
    looked = health_checks.Checks({"programs": programs}, 45.0)
    assert words(looked._program_faults()) == found
    assert looked.late == late
    assert looked.remarks == ["no time was left for second"] * len(late)
    assert clock.now - 1000 <= 45


def test_a_program_for_which_no_time_is_left_is_not_begun(checks: Any, tmp_path: Path) -> None:  # noqa: ANN401
    own = {"name": "own", "command": ["touch", str(tmp_path / "begun")]}
    looked = checks.Checks({"programs": [own]}, 0.0)
    assert not [*looked._program_faults()]
    assert looked.late == {"program"}
    assert not (tmp_path / "begun").exists()


SCONTROL = """\
#!/bin/sh
echo "$@" >> {calls}
case "$1" in --oneliner) echo 'NodeName=node1 State={state}';; esac
"""
ASK = "--oneliner show node node1"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """What scontrol was called with; the parameter is the state that it answers."""
    log, stand_in = tmp_path / "calls", tmp_path / "scontrol"
    stand_in.write_text(SCONTROL.format(calls=log, state=request.param))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return log


@pytest.mark.parametrize("calls", ["IDLE"], indirect=True)
def test_slurm_is_asked_as_long_as_something_is_wrong(program: Any, calls: Path, tmp_path: Path) -> None:  # noqa: ANN401
    for _ in range(2):
        program.settle("node1", ["x"], set(), tmp_path / "record")
    drain = "update NodeName=node1 State=DRAIN Reason=node_health: x"
    assert calls.read_text().splitlines() == [ASK, drain] * 2


REASON = "Reason=node_health: x [root@2026-11-21T10:00:00]"


@pytest.mark.parametrize(
    ("calls", "word"),
    [(f"IDLE+DRAIN {REASON}", "RESUME"), (f"DOWN*+DRAIN {REASON}", "UNDRAIN")],
    indirect=["calls"],
)
def test_slurm_is_told_once_that_all_is_well(program: Any, calls: Path, tmp_path: Path, word: str) -> None:  # noqa: ANN401
    for _ in range(2):
        program.settle("node1", [], set(), tmp_path / "record")
    assert calls.read_text().splitlines() == [ASK, f"update NodeName=node1 State={word}"]


@pytest.mark.parametrize("calls", [f"IDLE+DRAIN {REASON}"], indirect=True)
def test_a_node_of_which_something_is_not_known_is_not_resumed(
    program: Any,  # noqa: ANN401
    calls: Path,
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"
    assert program.settle("node1", [], {"program"}, record) == ""
    assert not calls.exists()
    assert not record.exists()
    program.settle("node1", ["y"], {"program"}, record)
    assert "update NodeName=node1 State=DRAIN Reason=node_health: y" in calls.read_text().splitlines()


HELD = "Reason=maintenance [root@2026-11-21T10:00:00]"


@pytest.mark.parametrize("calls", [f"IDLE+DRAIN {HELD}"], indirect=True)
def test_slurm_is_asked_again_while_somebody_else_holds_the_node(
    program: Any,  # noqa: ANN401
    calls: Path,
    tmp_path: Path,
) -> None:
    """When he lets go, its own drain of before may be in force again, and is then for it to end."""
    for _ in range(2):
        program.settle("node1", [], set(), tmp_path / "record")
    assert calls.read_text().splitlines() == [ASK] * 2


def test_the_program_runs_as_it_lies_on_a_node(tmp_path: Path) -> None:
    """Its files in one directory, by itself: nothing of Ansible or of this project is there."""
    role = yaml.safe_load((ROOT / "roles/node_health/vars/main.yml").read_text())
    for name in (Path(path).name for path in role["__node_health_own"]):
        (tmp_path / name).write_text((PROGRAM / name).read_text())
    for name in (Path(path).name for path in role["__node_health_of_all"]):
        text = (ROOT / "playbooks/module_utils" / name).read_text()
        (tmp_path / name).write_text(text.replace("from ansible.module_utils.", "from "))
    settings: dict[str, Any] = {"node": "node1", "contract": {"cpus": 1 << 20}, "clock_seconds": 0}
    lists = ("mounts", "disks", "services", "gpu_fields", "infiniband", "programs")
    settings |= {name: [] for name in lists}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    text = (tmp_path / "node_health.py").read_text()
    (tmp_path / "node_health.py").write_text(
        text.replace("/etc/node_health.json", f"{tmp_path}/settings.json")
    )
    command = [sys.executable, "-I", "-c", _RUN, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1, answer.stderr
    assert answer.stdout.startswith(f"cpus: the contract says {1 << 20}, the machine shows ")


_RUN = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv = ["node_health", "--show"]
runpy.run_path(sys.path[0] + "/node_health.py", run_name="__main__")
"""
