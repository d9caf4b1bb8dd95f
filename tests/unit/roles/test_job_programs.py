"""What Slurm starts around jobs: the order of the programs, their limits, and what a failure comes to."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.site.job_programs import _OWN_SECONDS, SLURM_WAITS
from tests.unit.roles.loading import ROOT, load_module

FILES = ROOT / "roles/job_programs/files"
SHOWN = "JobId=7 JobName=x Requeue={} Restarts={} BatchFlag={} Reboot=0\n"


@pytest.fixture(scope="module")
def runner() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    return load_module("roles/job_programs/files/run.py")


class Node:
    """A node's settings in a directory, with a Slurm that notes what it is asked."""

    def __init__(self, runner: Any, place: Path, patch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
        self.runner, self.place = runner, place
        self.asked: list[str] = []
        self.shown = SHOWN.format(1, 0, 1)
        self.logged: list[str] = []
        patch.setattr(runner, "SETTINGS", place)
        patch.setattr(runner, "why_not_trusted", lambda _: "")
        patch.setattr(runner, "_slurm", self._slurm)
        patch.setattr(runner.syslog, "syslog", lambda _, words: self.logged.append(words))
        patch.setattr(runner.os, "chdir", lambda _: None)
        patch.setenv("SLURM_JOB_ID", "7")
        patch.setenv("SLURMD_NODENAME", "node1")

    def _slurm(self, _: Mapping[str, str], *command: str) -> str:
        self.asked.append(" ".join(command))
        return self.shown if "show" in command else ""

    def run(self, *programs: tuple[str, str, str], kind: str = "prolog", seconds: float = 20) -> int:
        """Programs as (name, script, what a failure means)."""
        entries = []
        for name, script, meaning in programs:
            path = self.place / name
            path.write_text(f"#!/bin/sh\necho {name} >> {self.place}/trace\n{script}\n")
            path.chmod(0o755)
            entries.append({"name": name, "command": [str(path)], "seconds": seconds, "on_failure": meaning})
        (self.place / f"{kind}.json").write_text(json.dumps(entries))
        return int(self.runner.main(kind))

    @property
    def ran(self) -> list[str]:
        return (self.place / "trace").read_text().split()


@pytest.fixture
def node(runner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:  # noqa: ANN401
    return Node(runner, tmp_path, monkeypatch)


def test_all_run_in_the_order_of_the_site(node: Node) -> None:
    assert node.run(("z", "", "drain"), ("b", "", "drain"), ("a", "", "drain")) == 0
    assert node.ran == ["z", "b", "a"]
    assert node.asked == node.logged == []


def test_without_settings_nothing_runs(node: Node) -> None:
    assert node.runner.main("epilog") == 0


def test_a_drain_names_the_program_and_ends_the_rest(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    assert node.run(("a", "echo one; echo two >&2; exit 4", "drain"), ("b", "", "drain")) == 1
    assert node.ran == ["a"]
    reason = "Prolog error : a: failed with exit code 4: one / two"
    assert node.asked == [f"scontrol update NodeName=node1 State=DRAIN Reason={reason}"]
    assert node.logged == ["a of job 7 failed with exit code 4: one / two (drain)"]
    assert capsys.readouterr().out == "a of job 7 failed with exit code 4: one / two\n"


def test_what_is_ignored_is_logged_and_the_rest_runs(node: Node) -> None:
    assert node.run(("a", "kill -9 $$", "ignore"), ("b", "", "drain")) == 0
    assert node.ran == ["a", "b"]
    assert node.logged == ["a of job 7 was ended by signal 9 (ignore)"]
    assert node.asked == []


@pytest.mark.parametrize(
    ("shown", "asked"),
    [
        (SHOWN.format(1, 0, 1), "scontrol requeue 7"),
        (SHOWN.format(1, 2, 1), "scontrol requeue 7"),
        (SHOWN.format(1, 3, 1), "scontrol requeuehold 7"),
        (SHOWN.format(0, 0, 1), "scancel 7"),
        (SHOWN.format(1, 0, 0), "scancel 7"),
    ],
)
def test_a_job_is_sent_back_while_it_can_be(node: Node, shown: str, asked: str) -> None:
    node.shown = shown
    assert node.run(("a", "exit 1", "requeue"), ("b", "", "drain")) == 0
    assert node.ran == ["a"]
    assert node.asked[1:] == [asked]


@pytest.mark.parametrize("meaning", ["requeue", "drain"])
def test_without_an_answer_of_slurm_the_node_is_drained(
    node: Node, monkeypatch: pytest.MonkeyPatch, meaning: str
) -> None:
    def silent(*_: object) -> str:
        message = "no answer"
        raise node.runner.SlurmError(message)

    monkeypatch.setattr(node.runner, "_slurm", silent)
    assert node.run(("a", "exit 1", meaning)) == 1
    assert node.logged[-1] == "Slurm could not be asked, the node is drained: no answer"


def test_a_program_that_hangs_ends_with_what_it_started(node: Node) -> None:
    began = time.monotonic()
    script = "sleep 300 & echo $! > child; echo so far; sleep 300"
    script = script.replace("child", str(node.place / "child"))
    assert node.run(("a", script, "drain"), seconds=1) == 1
    assert time.monotonic() - began < 60
    assert node.logged == ["a of job 7 took longer than 1 s: so far (drain)"]
    child = (node.place / "child").read_text().strip()
    state = Path(f"/proc/{child}/stat")
    deadline = time.monotonic() + 30
    while state.exists() and ") Z " not in state.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_runs_on_in_the_background_is_not_waited_for(node: Node) -> None:
    began = time.monotonic()
    assert node.run(("a", f"sleep 60 & echo $! > {node.place}/child", "drain")) == 0
    assert time.monotonic() - began < 30
    child = int((node.place / "child").read_text())
    os.kill(child, 9)


def test_long_output_is_cut_to_its_end(runner: Any) -> None:  # noqa: ANN401
    assert runner.last_lines(b"a\n\nb\nc\x1b[31m\nd\n") == "b / c?[31m / d"
    assert len(runner.last_lines(b"x" * 5000)) == 400


def test_a_program_that_prints_without_end_is_held_to_its_time(node: Node) -> None:
    assert node.run(("a", "yes", "ignore"), seconds=1) == 0
    assert node.logged == ["a of job 7 took longer than 1 s: y / y / y (ignore)"]


def test_a_program_that_was_taken_away_meanwhile_is_no_failure(node: Node) -> None:
    settings, program = node.place / "prolog.json", node.place / "b"
    assert node.run(("a", f"echo '[]' > {settings}; rm {program}", "drain"), ("b", "", "drain")) == 0
    assert node.ran == ["a"]


def test_a_program_that_is_missing_is_a_failure(node: Node) -> None:
    assert node.run(("a", f"rm {node.place}/b", "drain"), ("b", "", "drain")) == 1
    assert node.logged == ["b of job 7 does not start: No such file or directory (drain)"]


def test_nothing_that_users_set_reaches_a_program(runner: Any) -> None:  # noqa: ANN401
    given = {
        **dict.fromkeys(("SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES"), "7"),
        **dict.fromkeys(("SPANK_X", "LD_PRELOAD", "PATH", "PYTHONPATH", "BASH_ENV"), "/tmp"),
    }
    found = runner.environment_of_programs(given)
    assert sorted(found) == [
        *("CUDA_VISIBLE_DEVICES", "HOME", "LC_ALL", "PATH"),
        *("SLURMD_NODENAME", "SLURM_JOB_ID"),
    ]
    assert "/tmp" not in found["PATH"]


def test_only_what_is_roots_alone_is_trusted(runner: Any, tmp_path: Path) -> None:  # noqa: ANN401
    assert runner.why_not_trusted(Path("/usr/bin/env")) == ""
    program = tmp_path / "program"
    program.write_text("")
    # Below /tmp, where everybody writes, whoever owns the file.
    assert "others than root can change /" in runner.why_not_trusted(program)
    assert "is not there" in runner.why_not_trusted(tmp_path / "none")


def test_a_link_is_trusted_where_nobody_else_can_lead_it_elsewhere(runner: Any, tmp_path: Path) -> None:  # noqa: ANN401
    link, farther, through = tmp_path / "link", tmp_path / "farther", tmp_path / "bin"
    link.symlink_to("/usr/bin/env")
    farther.symlink_to("link")
    through.symlink_to("/usr/bin")
    for path in (link, farther, through / "env", through / "../bin/env"):
        assert "others than root can change /" in runner.why_not_trusted(path), path
    # Of Debian's own: /bin is a link, and so is awk, by way of /etc/alternatives.
    for name in ("/bin/env", "/usr/bin/awk", "/bin/../bin/awk"):
        assert runner.why_not_trusted(Path(name)) == ""
    link.unlink()
    link.symlink_to("farther")
    assert "is not there" in runner.why_not_trusted(link)


def gpu_files(place: Path, action: str, job: str, gpus: str = "") -> dict[str, str]:
    environment = {"SLURM_JOB_ID": job} | ({"SLURM_JOB_GPUS": gpus} if gpus else {})
    command = [sys.executable, str(FILES / "gpu_job_files.py"), action, str(place)]
    subprocess.run(command, env=environment, check=True)
    return {file.name: file.read_text() for file in sorted(place.iterdir())}


def test_each_gpu_has_a_file_with_its_jobs(tmp_path: Path) -> None:
    assert gpu_files(tmp_path, "add", "7", "0,2-3") == {"0": "7\n", "2": "7\n", "3": "7\n"}
    assert gpu_files(tmp_path, "add", "8", "3") == {"0": "7\n", "2": "7\n", "3": "7\n8\n"}
    # A job that was requeued begins anew.
    assert gpu_files(tmp_path, "add", "7", "0")["0"] == "7\n"
    assert gpu_files(tmp_path, "add", "9")["0"] == "7\n"
    assert gpu_files(tmp_path, "remove", "7") == {"0": "", "2": "", "3": "8\n"}


@pytest.fixture(scope="module")
def clean_up() -> Any:  # noqa: ANN401
    return load_module("roles/job_programs/files/clean_up.py")


@pytest.fixture
def cleaned(clean_up: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[object]]:  # noqa: ANN401
    """What is done about a user's leftovers, of which there is one process."""

    def play(uid: int = 2001, *, jobs: bool = False, kept: bool = False, began: int = 1) -> list[object]:
        done: list[object] = []
        found = [clean_up.Process(4711, began)]
        monkeypatch.setenv("SLURM_JOB_UID", str(uid))
        monkeypatch.setattr(clean_up, "is_kept", lambda *_: kept)
        monkeypatch.setattr(clean_up, "has_other_jobs", lambda _: jobs)
        monkeypatch.setattr(clean_up, "leftovers", lambda _: iter(found))
        monkeypatch.setattr(clean_up, "remove_files", lambda *_: done.append("files"))

        def end(_: int, processes: list[object], number: object) -> None:
            done.append((processes, int(number)))  # type: ignore[call-overload]
            found.clear()

        monkeypatch.setattr(clean_up, "end", end)
        monkeypatch.setattr(clean_up, "_files", lambda *_: iter(["/tmp/x"]))
        assert clean_up.main(["/tmp"]) == 0
        return done

    return play


def test_leftovers_go_with_the_last_job(cleaned: Callable[..., list[object]]) -> None:
    assert cleaned() == [([(4711, 1)], 15), "files"]


def test_nothing_goes_while_another_job_runs_there(cleaned: Callable[..., list[object]]) -> None:
    assert cleaned(jobs=True) == []


@pytest.mark.parametrize("uid", [0, 999, 65534])
def test_nothing_of_the_system_goes(cleaned: Callable[..., list[object]], uid: int) -> None:
    assert cleaned(uid) == []


def test_nothing_goes_of_who_may_log_in_without_a_job(cleaned: Callable[..., list[object]]) -> None:
    assert cleaned(kept=True) == []


def test_accounts_that_are_kept_go_by_name_and_by_group(clean_up: Any) -> None:  # noqa: ANN401
    assert clean_up.is_kept(0, ["root"], [])
    assert clean_up.is_kept(0, [], ["wheel", "root"])
    assert not clean_up.is_kept(0, ["alice"], ["wheel"])
    assert clean_up.is_kept(4_000_000, [], [])


def test_a_number_of_a_directory_service_is_a_users(cleaned: Callable[..., list[object]]) -> None:
    assert cleaned(1_000_000) == [([(4711, 1)], 15), "files"]


def test_what_began_after_slurm_was_asked_may_be_of_a_new_job(cleaned: Callable[..., list[object]]) -> None:
    assert cleaned(began=2**60) == ["files"]


@pytest.mark.parametrize(
    ("cgroup", "is_slurms"),
    [
        ("0::/system.slice/slurmstepd.scope/job_7/step_extern/user/task_special\n", True),
        ("0::/system.slice/node1_slurmstepd.scope/sAS9M8ETZKT000/step_batch/user/task_0\n", True),
        ("4:memory:/slurm/uid_2001/job_7/step_batch\n1:name=systemd:/\n", True),
        ("0::/system.slice/slurmd.service\n", True),
        ("0::/user.slice/user-2001.slice/user@2001.service/app.slice/x.service\n", False),
        ("0::/user.slice/user-2001.slice/user@2001.service/app.slice/slurmd.service\n", False),
        ("0::/user.slice/user-2001.slice/user@2001.service/app.slice/slurmstepd.scope\n", False),
        ("0::/user.slice/user-2001.slice/user@2001.service/app.slice/x.service/job_1\n", False),
        ("1:name=systemd:/user.slice/user-2001.slice/user@2001.service/job_1\n", False),
        ("4:memory:/slurm/uid_2001/job_7\n1:name=systemd:/user.slice/user-2001.slice/x.scope\n", True),
        ("0::/system.slice/run-r1.service\n", False),
    ],
)
def test_processes_of_jobs_are_known_by_their_cgroups(clean_up: Any, cgroup: str, is_slurms: bool) -> None:  # noqa: ANN401, FBT001
    assert bool(clean_up._OF_SLURM.search(cgroup)) is is_slurms


def test_a_process_is_found_by_its_user(clean_up: Any) -> None:  # noqa: ANN401
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            found = [it.pid for it in clean_up.leftovers(os.getuid())]
            assert process.pid in found
            assert process.pid not in [it.pid for it in clean_up.leftovers(54321)]
            (own,) = (it for it in clean_up.leftovers(os.getuid()) if it.pid == process.pid)
            assert own.began <= clean_up._ticks()
            clean_up.end(os.getuid(), [own._replace(began=own.began - 1)], 9)
            assert process.poll() is None
            clean_up.end(os.getuid(), [own], 9)
            assert process.wait(30) == -9
        finally:
            process.kill()


def test_the_seconds_of_deploys_own_programs_are_those_of_the_offline_check() -> None:
    text = yaml.safe_load((ROOT / "roles/job_programs/vars/main.yml").read_text())["__job_programs_own"]
    for kind, switches in _OWN_SECONDS.items():
        assert [int(part.split(",")[0]) for part in text[kind].split("'seconds': ")[1:]] == [
            *switches.values()
        ]
    slurmctld = yaml.safe_load((ROOT / "roles/slurmctld/vars/main.yml").read_text())["__slurmctld_parameters"]
    for parameter in ("PrologEpilogTimeout", "BatchStartTimeout"):
        assert str(SLURM_WAITS) in slurmctld[parameter]
