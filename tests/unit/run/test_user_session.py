"""The conversation with a login node; a script takes ssh's place."""

import sys
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.run.cancellation import Cancellation
from deploy.run.ssh import Login
from deploy.run.user_session import Session
from deploy.site.inventory import Host

COMMANDS = [{"id": "one", "user": "alice", "run": "true", "expect": {}}]


def session(tmp_path: Path, script: str) -> Session:
    """A host behind an ssh that reads the program and then does as the script says."""
    ssh = tmp_path / "ssh"
    log = tmp_path / "asked"
    ssh.write_text(
        f"#!{sys.executable}\nimport sys, time\nopen({str(log)!r}, 'a').write(sys.stdin.read())\n{script}"
    )
    ssh.chmod(0o755)
    connection = {"ansible_ssh_executable": str(ssh)}
    return Session(Host("login1", {}, frozenset(), connection=connection), Login())


def test_answers_are_handed_on(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []
    script = "print()\nprint('motd')\nprint('deploy:{\"id\": \"one\"}', flush=True)\n"
    session(tmp_path, script).type_commands(COMMANDS, answers.append, Cancellation())
    assert answers == [{"id": "one"}]
    asked = (tmp_path / "asked").read_text()
    assert asked.count("main('try'") == 1
    assert "main('leave'" not in asked


@pytest.mark.parametrize(
    ("script", "why", "exit_code"),
    [
        (
            "sys.stderr.write('login1: Permission denied (publickey).'); sys.exit(255)",
            "Permission denied",
            ExitCode.UNREACHABLE,
        ),
        (
            'print(\'deploy:{"fault": "sinfo: no such command"}\')',
            "sinfo: no such command",
            ExitCode.FAILED,
        ),
        ("sys.exit(3)", "exit code 3", ExitCode.FAILED),
    ],
)
def test_what_is_in_the_way_is_told(tmp_path: Path, script: str, why: str, exit_code: ExitCode) -> None:
    with pytest.raises(DeployError, match=rf"login1: .*{why}.*") as caught:
        session(tmp_path, script).type_commands(COMMANDS, lambda _: None, Cancellation())
    assert caught.value.findings[0].reference == "commands-not-typed"
    assert caught.value.exit_code is exit_code
    assert "main('leave'" in (tmp_path / "asked").read_text()


def test_who_wants_to_stop_is_heard_and_nothing_is_left_there(tmp_path: Path) -> None:
    cancellation = Cancellation()
    log = str(tmp_path / "asked")
    script = (
        'print(\'deploy:{"id": "one"}\', flush=True)\n'
        f"time.sleep(0 if \"main('leave'\" in open({log!r}).read() else 60)\n"
    )
    session(tmp_path, script).type_commands(COMMANDS, lambda _: cancellation.ask(), cancellation)
    assert "main('leave'" in (tmp_path / "asked").read_text()


def test_a_host_that_only_ansible_reaches() -> None:
    host = Host("login1", {}, frozenset(), connection={"ansible_become_password": "x"})
    with pytest.raises(DeployError, match="by plain ssh only, and ansible_become_password is given"):
        Session(host, Login()).type_commands(COMMANDS, lambda _: None, Cancellation())
