import os
import subprocess
from pathlib import Path
from typing import ClassVar

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/mounts_current.py")
Mount = module.Mount

HOME = Mount("10.0.0.1:/home", "/home", "nfs")


def test_a_line_of_others_for_the_same_place_is_found() -> None:
    text = "/dev/sda3 /home ext4 defaults 0 2\n/dev/sda1 / ext4 defaults 0 1\n"
    found = module.others_lines(text, "nfs_client", [HOME])
    assert [(number, mount.source) for number, mount in found] == [(1, "/dev/sda3")]
    own = module.with_block("/dev/sda1 / ext4 defaults 0 1\n", "nfs_client", [HOME])
    assert module.others_lines(own, "nfs_client", [HOME]) == []


def process(proc: Path, number: int, name: str, **places: str) -> None:
    here = proc / str(number)
    (here / "fd").mkdir(parents=True)
    (here / "comm").write_text(f"{name}\n")
    (here / "maps").write_text(places.pop("maps", ""))
    for place, target in places.items():
        link = here / "fd" / place.removeprefix("fd") if place.startswith("fd") else here / place
        link.symlink_to(target)


def test_whoever_works_reads_or_runs_there_is_a_user(tmp_path: Path) -> None:
    process(tmp_path, 1, "systemd", cwd="/", root="/")
    process(tmp_path, 20, "bash", cwd="/home/alice", root="/")
    process(tmp_path, 21, "tail", cwd="/", fd3="/home/alice/log")
    process(tmp_path, 22, "a.out", cwd="/", exe="/home/alice/a.out")
    process(tmp_path, 23, "python3", cwd="/", maps="7f00-7f01 r-xp 00000000 08:01 12 /home/alice/lib.so\n")
    process(tmp_path, 24, "other", cwd="/homes/bob", exe="/usr/bin/other")
    users = module.users_of("/home", tmp_path)
    assert sorted(users) == ["a.out (22)", "bash (20)", "python3 (23)", "tail (21)"]


def test_this_process_uses_where_it_is() -> None:
    assert any(f"({os.getpid()})" in user for user in module.users_of(str(Path.cwd())))


def test_names_that_would_be_hidden(tmp_path: Path) -> None:
    local, other = tmp_path / "local", tmp_path / "other"
    for path in (local / "alice", local / "admin", local / "lost+found", other / "alice"):
        path.mkdir(parents=True)
    assert module.hidden(local, other) == ["admin"]
    assert module.hidden(tmp_path / "missing", other) == []


class Asking:
    """As much of a module as runs a command."""

    params: ClassVar = {"timeout": 0.2}

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def fail_json(self, *, msg: str) -> None:
        raise SystemExit(msg)


@pytest.mark.parametrize("command", [["sleep", "600"], ["sh", "-c", "sleep 600"]])
def test_a_server_that_does_not_answer_is_not_waited_for(command: list[str]) -> None:
    """Neither to be mounted nor to be unmounted."""
    mounts = object.__new__(module.Mounts)
    mounts.module = Asking()
    with pytest.raises(SystemExit, match=r"no answer within 0\.2 s"):
        mounts._must(command)


def test_what_waits_for_the_next_boot_is_recorded_as_it_shall_be(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = object.__new__(module.Mounts)
    mounts.wanted = [HOME, Mount("/dev/sdb1", "/scratch", "ext4", ("nosuid", "nodev"))]
    mounts.left_behind = ["/old"]
    there = [HOME, Mount("/dev/sdb1", "/scratch", "ext4", ("rw", "suid"))]
    monkeypatch.setattr(module, "mounted", lambda: there)
    awaited = {"type": "ext4", "source": "/dev/sdb1", "options": ["nodev", "nosuid"]}
    assert mounts.recorded() == {"/home": {}, "/scratch": awaited, "/old": None}
