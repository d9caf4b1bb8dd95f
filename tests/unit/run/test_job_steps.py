"""The steps of jobs that run on a host, and no more than those."""

from pathlib import Path

import pytest

from deploy.run import job_steps

ROOT, ALICE = "0\t0\t0\t0", "2001\t2001\t2001\t2001"
SLURMSTEPD = "/usr/sbin/slurmstepd"


def run(proc: Path, pid: int, title: str, uids: str = ROOT, program: str = SLURMSTEPD) -> None:
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "cmdline").write_bytes(title.encode() + b"\0")
    (proc / str(pid) / "status").write_text(f"Name:\tslurmstepd\nUid:\t{uids}\nGid:\t0\t0\t0\t0\n")
    (proc / str(pid) / "exe").symlink_to(program)


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(job_steps, "PROCESSES", tmp_path)
    return tmp_path


def test_each_step_has_a_process_that_says_whose_it_is(proc: Path) -> None:
    run(proc, 17, "slurmstepd: [12.batch]")
    run(proc, 18, "slurmstepd: [12.0]")
    run(proc, 19, "slurmstepd infinity")
    run(proc, 20, "slurmd", program="/usr/sbin/slurmd")
    run(proc, 21, "")
    (proc / "22").mkdir()
    assert job_steps.steps() == ["12.0", "12.batch"]


@pytest.mark.parametrize(
    ("uids", "program"),
    [
        (ALICE, "/usr/bin/sleep"),
        (ALICE, SLURMSTEPD),
        ("2001\t0\t0\t0", "/usr/bin/passwd"),
        ("0\t0\t0\t0", "/usr/bin/sudo"),
    ],
    ids=["exec -a", "slurmstepd itself", "a program that becomes root", "sudo that asks for a password"],
)
def test_what_a_user_calls_so_is_none(proc: Path, uids: str, program: str) -> None:
    run(proc, 17, "slurmstepd: [99999999999.0]", uids, program)
    assert job_steps.steps() == []


@pytest.mark.parametrize(
    ("uids", "program"),
    [
        (ROOT, f"{SLURMSTEPD}-wlm"),
        (ROOT, f"{SLURMSTEPD}-wlm (deleted)"),
        ("0\t2001\t0\t2001", SLURMSTEPD),
    ],
    ids=["Debian's", "updated meanwhile", "opening a file as its user"],
)
def test_a_step_is_one_whatever_becomes_of_its_program(proc: Path, uids: str, program: str) -> None:
    run(proc, 17, "slurmstepd: [12.0]", uids, program)
    assert job_steps.steps() == ["12.0"]
