"""What runs on a login node, as far as it needs neither root nor Slurm."""

import os
import pwd
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.run import user_commands
from deploy.run.user_commands import Jobs, Typist, _plain, _unfit

COMMAND = {"id": "one", "user": "root", "run": "true", "expect": {}}
PARTITIONS = {
    "partitions": [
        {"partition": "a", "nodes": 2, "cpus": 2, "memory_mb": 1024},
        {"partition": "b", "nodes": 1, "cpus": 64, "memory_mb": 512000},
    ]
}


@pytest.fixture
def terminal() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    ours, theirs = os.openpty()
    environment = {"PATH": os.environ["PATH"], "PS1": "$ ", "TERM": "dumb"}
    with subprocess.Popen(
        ["setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"],
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        yield process, ours
        process.kill()
    os.close(ours)


def typist(seconds: float = 20) -> Typist:
    return Typist(COMMAND, "deploy-try-0", Jobs(), seconds)


def test_lines_are_typed_at_prompts_also_of_a_shell_in_a_shell(
    terminal: tuple[subprocess.Popen[bytes], int],
) -> None:
    lines = ["bash --norc", "echo inner $((1 + 1))", "exit", "sleep 1; echo outer", "exit 3"]
    code, output, trouble = typist()._listen(*terminal, lines)
    assert (code, trouble) == (3, "")
    text = _plain(output)
    assert text.index("\ninner 2\n") < text.index("\nouter\n")


def test_prompts_are_seen_after_more_output_than_is_kept(
    terminal: tuple[subprocess.Popen[bytes], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_commands, "_MOST_OUTPUT", 2000)
    lines = ["seq 100000 104000", "echo after", "exit 3"]
    code, output, trouble = typist()._listen(*terminal, lines)
    assert (code, trouble) == (3, "")
    assert len(output) <= 2000
    assert "\nafter\n" in _plain(output)


def test_a_home_that_does_not_answer_is_one_commands_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root looks at no home by itself: who does is the user, and not for ever."""

    def as_user(user: str, program: str, task: Any) -> str:  # noqa: ANN401
        raise subprocess.TimeoutExpired([program, user, str(task)], 60)

    def look(path: Any) -> str:  # noqa: ANN401
        pytest.fail(f"root followed links at {path}")

    monkeypatch.setattr(user_commands, "_as_user", as_user)
    monkeypatch.setattr(os.path, "realpath", look)
    monkeypatch.setattr(Path, "resolve", look)
    assert "gave no answer" in typist().run()["trouble"]
    said: list[Any] = []
    monkeypatch.setattr(user_commands, "say", said.append)
    user_commands.leave({"session": "deploy-try-0", "users": ["root", "no-such-account"]})
    assert said == [{"left": True}]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as others")
def test_the_place_is_where_the_home_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    entry = pwd.getpwnam("root")
    monkeypatch.setattr(pwd, "getpwnam", lambda _: type(entry)((*entry[:5], str(tmp_path / "home"), "")))
    assert user_commands.place_of("root", "deploy-try-0") == str(tmp_path / "real/deploy-try-0")


def test_a_question_is_answered(terminal: tuple[subprocess.Popen[bytes], int]) -> None:
    lines = ["read -p 'Really? [y/N] ' word; test $word = y && exit 7", "y"]
    assert typist()._listen(*terminal, lines)[0] == 7


def test_a_shell_that_nobody_leaves_is_ended(terminal: tuple[subprocess.Popen[bytes], int]) -> None:
    code, _, trouble = typist(1.5)._listen(*terminal, ["cat", "never typed"])
    assert code is None
    assert trouble == "it had not ended after 2 s, and showed no prompt for: never typed"


def test_what_is_said_last_is_heard_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and the process ends, just after deploy has looked for something to read."""
    with subprocess.Popen(["bash", "-c", "read; echo late"], stdin=-1, stdout=-1) as process:
        typing, source = process.stdin, process.stdout
        assert typing
        assert source
        looked = select.select

        def look(*asked: Any) -> tuple[list[Any], list[Any], list[Any]]:  # noqa: ANN401 - as select takes it
            found = looked(*asked)
            if not found[0] and not typing.closed:
                typing.close()
                process.wait()
            return found

        monkeypatch.setattr(select, "select", look)
        assert typist()._listen(process, source.fileno(), []) == (0, b"late\n", "")


def test_escapes_of_terminals_are_taken_away() -> None:
    assert _plain(b"\x1b[?2004h$ ls\r\n\x1b[01;34mdata\x1b[0m\r\n") == "$ ls\ndata\n"


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ({}, ""),
        ({"nodes": 2}, ""),
        ({"cpus": 64, "memory_mb": 64000}, ""),
        ({"nodes": 2, "cpus": 8}, "needs 2 nodes, 8 cpus"),
    ],
)
def test_a_cluster_that_is_too_small(needs: dict[str, int], said: str) -> None:
    assert _unfit({**COMMAND, "needs": needs}, PARTITIONS) == said


def test_jobs_belong_to_the_directory_they_were_submitted_from(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "7|RUNNING|/home/a/one\n8|COMPLETED|/home/a/one/logs\n9|RUNNING|/home/a/one-more\n"
    monkeypatch.setattr(user_commands, "_root", lambda *_: said)
    assert Jobs().of("/home/a/one") == {"7": "RUNNING", "8": "COMPLETED"}


def test_recorded_states_are_single_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "7|CANCELLED by 2001\n8|COMPLETED\n9|FAILED\n"
    asked: list[Any] = []

    def answer(*words: str) -> str:
        asked.append(words)
        return said

    monkeypatch.setattr(user_commands, "_root", answer)
    assert Jobs().recorded({"7": "", "8": ""}) == {"7": "CANCELLED", "8": "COMPLETED"}
    assert "--jobs=7,8" in asked[0]
