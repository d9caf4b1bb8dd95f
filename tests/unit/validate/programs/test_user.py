"""The program that runs a validation's jobs, with stand-ins for Slurm's commands on its PATH."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deploy.validate.programs import user
from tests.unit.validate.clusters import MARKER, NONCE, USER

PROGRAMS = Path(user.__file__).parent
STUBS = {
    "srun": """\
given=
node=node1
while [ $# -gt 0 ]; do
  case "$1" in
    --nodelist=*) node=${1#*=} ;;
    --*) ;;
    *) break ;;
  esac
  given="$given $1"
  shift
done
echo "srun$given" >> "$STUB_LOG"
[ -e "$STUB_PLACE/srun-hangs" ] && exec sleep 600
[ -e "$STUB_PLACE/srun-fails" ] && { echo "srun: error: no" >&2; exit 1; }
printf 'srun: job 7 has been allocated resources '
SLURMD_NODENAME=$node SLURM_JOB_ID=7 exec "$@"
""",
    "sbatch": 'cat > /dev/null\necho "sbatch $*" >> "$STUB_LOG"\necho "41;cluster"\n',
    "scancel": 'echo "scancel $*" >> "$STUB_LOG"\n',
    "sinfo": """\
[ -e "$STUB_PLACE/sinfo-fails" ] && { echo "sinfo: no controller" >&2; exit 1; }
case "$*" in *format=%c*) [ -e "$STUB_PLACE/one-cpu" ] && echo 1 || echo 2 ;; *) echo batch ;; esac
""",
    "squeue": 'case "$*" in *format=%T*) echo RUNNING ;; esac\n',
    "sacct": 'echo "7|x|u|a|p|q|COMPLETED|0:0|node1|cpu=1|1|s|e"\n',
    "ssh": 'cp "$HOME/.ssh/authorized_keys" "$STUB_PLACE/seen"\necho 0::/job_41/\n',
    "ssh-keygen": 'while [ "$1" != -f ]; do shift; done\necho "ssh-ed25519 AAAA $STUB_MARKER" > "$2.pub"\n',
}


class Login:
    """A login node: a home, and Slurm's commands."""

    def __init__(self, place: Path) -> None:
        self.place, self.home, self.log = place, place / "home", place / "log"
        self.bin, self.tmp = place / "bin", place / "tmp"
        for directory in (self.home, self.bin, self.tmp):
            directory.mkdir()
        self.log.touch()
        for name, text in STUBS.items():
            program = self.bin / name
            program.write_text(f"#!/bin/sh\n{text}")
            program.chmod(0o755)
        self.plan: dict[str, Any] = {
            "partition": USER,
            "marker": MARKER,
            "nonce": NONCE,
            "kinds": ["probes"],
            "limit_seconds": 120,
            "nodes": ["node1"],
            "gpus": {},
            "ssh_nodes": [],
            "container_nodes": [],
            "has_mpi": False,
            "probe": self._probe(),
            "ranks": "",
            "image": "",
        }

    def _probe(self) -> str:
        """One of no work, on a node with a /tmp of its own."""
        text = (PROGRAMS / "probe.py").read_text(encoding="utf-8")
        return text.replace("1_500_000", "15").replace('"/tmp"', repr(str(self.tmp)))

    def start(self, *, path: str | None = None) -> subprocess.Popen[str]:
        """Starts the program as playbooks/library/host_program.py does."""
        text = (PROGRAMS / "user.py").read_text(encoding="utf-8")
        call = f"validate(json.loads({json.dumps(self.plan)!r}))"
        return subprocess.Popen(
            [sys.executable, "-I", "-c", f"{text}\n\nimport json\nprint(json.dumps({call}))\n"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "HOME": str(self.home),
                "PATH": path or f"{self.bin}:{os.environ['PATH']}",
                "STUB_LOG": str(self.log),
                "STUB_PLACE": str(self.place),
                "STUB_MARKER": MARKER,
            },
        )

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Waits for its end while its standard input stays open: exit code and output."""
        assert process.stdin
        assert process.stdout
        assert process.stderr
        out, err = process.stdout.read(), process.stderr.read()
        code = process.wait(30)
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
        return code, out, err

    def answer(self) -> dict[str, Any]:
        """What a validation says."""
        code, out, err = self.finish(self.start())
        assert code == 0, err
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        return answer

    def did(self) -> list[str]:
        """Which commands ran, by name."""
        return [line.split()[0] for line in self.log.read_text().splitlines()]

    def jobs(self) -> list[str]:
        """The commands that started jobs, by name."""
        return [name for name in self.did() if name in {"srun", "sbatch"}]

    def wait_for(self, command: str) -> None:
        """Until a command was started."""
        for _ in range(300):
            if command in self.did():
                return
            time.sleep(0.1)
        raise TimeoutError(command)

    @property
    def is_clean(self) -> bool:
        """Whether jobs were cancelled last, and nothing is left."""
        return self.did()[-1] == "scancel" and not list(self.home.glob(".deploy-validate-*"))


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return Login(tmp_path)


def test_jobs_run_and_nothing_is_left(login: Login) -> None:
    login.plan["kinds"] = ["probes", "array", "together", "memory"]
    (login.home / ".deploy-validate-killed").mkdir()
    answer = login.answer()
    (probe,) = answer["probes"]["node1"]["answers"]
    assert (probe["node"], probe["job"], probe["shared"]) == ("node1", "7", {"nonce": NONCE})
    assert answer["probes"]["node1"]["said"] == "srun: job 7 has been allocated resources"
    assert answer["shared"] == {"node1": NONCE}
    assert answer["array"] == "41"
    assert answer["accounting"][0]["State"] == "COMPLETED"
    assert login.did()[0] == "scancel"
    assert login.is_clean
    assert not [*login.home.iterdir()]
    assert [*login.tmp.iterdir()] == [login.tmp / MARKER]


def test_jobs_carry_the_name_and_the_partition(login: Login) -> None:
    login.answer()
    (line,) = [line for line in login.log.read_text().splitlines() if line.startswith("srun")]
    for option in (f"--partition={USER}", f"--account={USER}", f"--job-name={MARKER}", "--immediate=20"):
        assert option in line.split()


def test_the_job_that_stays_runs_beside_the_others(login: Login) -> None:
    (login.place / "srun-hangs").touch()
    login.plan["kinds"] = ["probes", "limit"]
    process = login.start()
    login.wait_for("srun")
    login.wait_for("sbatch")
    assert process.stdin
    process.stdin.close()
    assert login.finish(process)[0] == 0


def test_it_takes_no_nodes_only_cpu(login: Login) -> None:
    (login.place / "one-cpu").touch()
    login.plan["kinds"] = ["probes", "limit"]
    assert login.answer()["limit"]["job"] == "41"
    assert login.jobs() == ["srun", "sbatch"]


def test_a_fault_of_the_program_leaves_nothing_either(login: Login) -> None:
    (login.place / "srun-fails").touch()
    login.plan["kinds"] = ["probes", "limit"]
    del login.plan["gpus"]
    began = time.monotonic()
    code, _, err = login.finish(login.start())
    assert code == 1
    assert err.splitlines()[-1] == "KeyError: 'gpus'"
    assert login.is_clean
    assert time.monotonic() - began < 50, "it waited for the job that stays"


def test_it_ends_with_whoever_started_it(login: Login) -> None:
    (login.place / "srun-hangs").touch()
    process = login.start()
    login.wait_for("srun")
    assert process.stdin
    process.stdin.close()
    assert login.finish(process)[0] == 0
    assert login.is_clean


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it(login: Login, number: signal.Signals) -> None:
    (login.place / "srun-hangs").touch()
    process = login.start()
    login.wait_for("srun")
    process.send_signal(number)
    assert login.finish(process)[0] == 0
    assert login.is_clean


def test_a_second_validation_leaves_the_first_alone(login: Login) -> None:
    (login.place / "srun-hangs").touch()
    first = login.start()
    login.wait_for("srun")
    before = login.log.read_text()
    code, _, err = login.finish(login.start())
    assert (code, err.strip()) == (1, "another validation is at work on this host")
    assert login.log.read_text() == before
    assert (login.home / f".{MARKER}").is_dir()
    first.terminate()
    login.finish(first)


def test_without_a_controller_no_job_is_tried(login: Login) -> None:
    (login.place / "sinfo-fails").touch()
    code, _, err = login.finish(login.start())
    assert (code, err.strip()) == (1, "sinfo: no controller")
    assert "srun" not in login.did()
    assert login.is_clean


def test_without_slurm_it_says_so(login: Login) -> None:
    code, _, err = login.finish(login.start(path="/nowhere"))
    assert (code, err.strip()) == (1, "sinfo: No such file or directory")
    assert not [*login.home.iterdir()]


def test_the_users_own_keys_stay(login: Login) -> None:
    ssh = login.home / ".ssh"
    ssh.mkdir(mode=0o700)
    keys = ssh / "authorized_keys"
    keys.write_text("ssh-ed25519 OWN ann@desk\nssh-ed25519 OLD deploy-validate-dead\n")
    keys.chmod(0o640)
    login.plan |= {"kinds": ["probes", "ssh"], "ssh_nodes": ["node1"]}
    answer = login.answer()
    assert answer["ssh"]["node1"]["within"]["said"] == "0::/job_41/"
    assert (login.place / "seen").read_text() == f"ssh-ed25519 OWN ann@desk\nssh-ed25519 AAAA {MARKER}\n"
    assert keys.read_text() == "ssh-ed25519 OWN ann@desk\n"
    assert keys.stat().st_mode & 0o777 == 0o640
    assert login.is_clean


def test_a_node_that_is_still_clearing_up_is_asked_again(login: Login) -> None:
    lines = (
        'n=$(cat "$STUB_PLACE/logins" 2>/dev/null || echo 0); echo $((n + 1)) > "$STUB_PLACE/logins"',
        'case "$n" in 0) echo no active jobs; exit 255 ;; 1) echo Connection closed; exit 255 ;; esac',
        "echo 0::/job_41/",
    )
    (login.bin / "ssh").write_text("\n".join(("#!/bin/sh", *lines, "")))
    login.plan |= {"kinds": ["probes", "ssh"], "ssh_nodes": ["node1"]}
    answer = login.answer()["ssh"]["node1"]
    assert answer["without"]["code"] == 255
    assert answer["within"]["said"] == "0::/job_41/"
    assert (login.place / "logins").read_text() == "3\n"


def test_it_comes_back_when_its_cancelled_jobs_have_left_the_nodes(login: Login) -> None:
    lines = ('echo squeue >> "$STUB_LOG"', '[ "$(grep -c squeue "$STUB_LOG")" -lt 3 ] && echo 41', "true")
    (login.bin / "squeue").write_text("\n".join(("#!/bin/sh", *lines, "")))
    login.answer()
    assert login.did()[-4:] == ["scancel", "squeue", "squeue", "squeue"]


def test_a_user_without_keys_has_none_afterwards(login: Login) -> None:
    login.plan |= {"kinds": ["probes", "ssh"], "ssh_nodes": ["node1"]}
    login.answer()
    assert not [*login.home.iterdir()]


@pytest.fixture
def validation() -> user.Validation:
    return user.Validation({"marker": MARKER, "nonce": NONCE, "partition": USER})


def test_a_program_that_does_not_end_is_ended(validation: user.Validation) -> None:
    done = validation.run(["sleep", "60"], seconds=0.2)
    assert done["code"] is None
    assert done["seconds"] < 50


def test_a_program_that_starts_after_the_end_is_ended(validation: user.Validation) -> None:
    validation.stop()
    assert validation.run(["sleep", "60"], seconds=30)["code"] == -signal.SIGTERM
    assert validation.each(["node1"], lambda node: node) == {}


def test_a_program_that_is_not_there_takes_the_other_answers_from_nobody(validation: user.Validation) -> None:
    done = validation.run(["no-such-program", "x"], seconds=30)
    assert (done["code"], done["said"]) == (127, "no-such-program: No such file or directory")


def test_a_program_gets_its_input(validation: user.Validation) -> None:
    assert validation.run(["cat"], seconds=30, text="one\ntwo\n")["said"] == "one\ntwo"


@pytest.mark.parametrize(
    ("out", "said", "answers"),
    [
        ('words\ndeploy-probe:{"a": 1}\nmore\n', "words\nmore", [{"a": 1}]),
        ('srun: x deploy-probe:{"a": 1}srun: y\n', "srun: x srun: y", [{"a": 1}]),
        ('deploy-probe:{"a": 1}\ndeploy-probe:{"a": 2}\n', "", [{"a": 1}, {"a": 2}]),
        ('deploy-probe:{"a": \n', 'deploy-probe:{"a":', []),
        ("\n", "", []),
    ],
)
def test_answers_among_other_words(out: str, said: str, answers: list[dict[str, int]]) -> None:
    assert user.answers_in(out) == (said, answers)
