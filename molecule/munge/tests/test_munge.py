"""Hosts with the same key believe each other, and nobody else."""

from collections.abc import Iterator

import pytest

from molecule.conftest import On

BOTH_WAYS = [("bookworm", "trixie"), ("trixie", "bookworm")]
FOREIGN_KEY, FOREIGN_SOCKET = "/run/munge/foreign.key", "/run/munge/foreign.socket"


@pytest.mark.parametrize(("source", "target"), BOTH_WAYS)
def test_each_host_believes_the_other(on: On, source: str, target: str) -> None:
    credential = on(source, "munge", "--string", "hello").stdout
    answer = on(target, "unmunge", data=credential).stdout
    assert "Success (0)" in answer
    assert answer.endswith("hello")


@pytest.fixture
def foreign_daemon(on: On) -> Iterator[str]:
    as_munge = ["runuser", "--user", "munge", "--"]
    files = [f"--{name}-file=/run/munge/foreign.{name}" for name in ("pid", "log", "seed")]
    on("trixie", *as_munge, "mungekey", "--create", "--force", f"--keyfile={FOREIGN_KEY}")
    on(
        "trixie",
        *as_munge,
        "munged",
        "--force",
        f"--key-file={FOREIGN_KEY}",
        f"--socket={FOREIGN_SOCKET}",
        *files,
    )
    yield FOREIGN_SOCKET
    on("trixie", "munged", "--stop", f"--socket={FOREIGN_SOCKET}")


@pytest.mark.parametrize("target", ["bookworm", "trixie"])
def test_credential_of_a_foreign_key_is_rejected(on: On, foreign_daemon: str, target: str) -> None:
    credential = on("trixie", "munge", f"--socket={foreign_daemon}", "--string", "hello").stdout
    assert credential.startswith("MUNGE:")
    answer = on(target, "unmunge", data=credential, check=False)
    assert answer.returncode != 0
    assert "Invalid credential" in answer.stdout + answer.stderr


def test_key_is_munges_alone(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format", "%U %G %a", "/etc/munge/munge.key").stdout == "munge munge 400\n"


def test_daemon_starts_at_boot(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "munge.service").stdout == "enabled\n"
