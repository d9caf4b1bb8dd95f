"""What a host says of the distribution's updates."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.run import updates
from tests.unit.silent_mirror import needs_apt, silent_mirror

_RUNNING = "6.1.0-42-amd64"
_SIMULATED = """Reading package lists...
NOTE: This is only a simulation!
Inst openssl [3.0.17-1~deb12u2] (3.0.18-1~deb12u1 Debian-Security:12/oldstable-security [amd64])
Inst linux-image-6.1.0-42-amd64 (6.1.159-1 Debian:12.13/oldstable [amd64])
Inst libc6 [2.36-9+deb12u10] (2.36-9+deb12u13 Debian:12.12/oldstable [amd64]) []
Conf openssl (3.0.18-1~deb12u1 Debian-Security:12/oldstable-security [amd64])
"""


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("proc", "boot", "place", "run"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(updates, "PROCESSES", tmp_path / "proc")
    monkeypatch.setattr(updates, "KERNELS", tmp_path / "boot")
    monkeypatch.setattr(updates, "PLACE", tmp_path / "place")
    monkeypatch.setattr(updates, "WANTED_REBOOT", tmp_path / "run/reboot-required")
    monkeypatch.setattr(updates, "_run", lambda *_: ("", True))
    return tmp_path


def process(host: Path, number: int, unit: str, mapped: str) -> None:
    place = host / f"proc/{number}"
    place.mkdir()
    (place / "maps").write_text(f"7f0-7f1 r-xp 00000000 fe:00 12 {mapped}\n")
    (place / "cgroup").write_text(f"12:pids:{unit}\n0::{unit}\n")


def test_what_waits_is_told_with_its_versions(host: Path) -> None:
    (host / "place/waiting").write_text(_SIMULATED.replace("Inst openssl", "Inst munge", 1))
    (host / "place/of_all").write_text(_SIMULATED.replace("Inst openssl", "Inst munge", 1) + _SIMULATED)
    said = updates.look()
    assert [(it["name"], it["old"], it["security"]) for it in said["updates"]] == [
        ("munge", "3.0.17-1~deb12u2", True),
        ("linux-image-6.1.0-42-amd64", "", False),
        ("libc6", "2.36-9+deb12u10", False),
    ]
    assert [it["name"] for it in said["held"]] == ["openssl"]


def test_without_lists_nothing_is_said_to_wait() -> None:
    said = updates.look()
    assert (said["updates"], said["held"]) == ([], [])


@pytest.mark.parametrize(
    ("unit", "mapped", "expected"),
    [
        ("/system.slice/chrony.service", "/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)", ["chrony.service"]),
        ("/system.slice/chrony.service", "/usr/lib/x86_64-linux-gnu/libc.so.6", []),
        ("/system.slice/chrony.service", "/memfd:pulse (deleted)", []),
        ("/system.slice/chrony.service", "/home/alice/usr/lib/x.so (deleted)", []),
        # Jobs and logins keep what they began with.
        ("/system.slice/slurmstepd.scope/job_7/step_0", "/usr/bin/bash (deleted)", []),
        ("/system.slice/node1_slurmstepd.scope/job_7/step_0", "/usr/bin/bash (deleted)", []),
        ("/system.slice/node1_slurmstepd.scope/system", "/usr/sbin/slurmstepd (deleted)", []),
        ("/user.slice/user-1000.slice/session-3.scope", "/usr/bin/bash (deleted)", []),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/x.service", "/usr/bin/x (deleted)", []),
        # What begins anew by itself, and what would do its work a second time.
        ("/system.slice/system-getty.slice/getty@tty1.service", "/usr/sbin/agetty (deleted)", []),
        ("/system.slice/rc-local.service", "/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)", []),
    ],
)
def test_a_service_with_a_replaced_file_is_stale(
    host: Path, unit: str, mapped: str, expected: list[str]
) -> None:
    process(host, 77, unit, mapped)
    assert updates.stale() == {"units": expected, "reboot": []}


@pytest.mark.parametrize(
    "unit", ["ifup@eno1.service", "networking.service", "NetworkManager.service", "docker.service"]
)
def test_the_ways_to_a_host_and_its_containers_ask_for_a_reboot(host: Path, unit: str) -> None:
    process(host, 60, f"/system.slice/{unit}", "/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)")
    assert updates.stale() == {"units": [], "reboot": [f"{unit} runs what was replaced"]}


def test_what_does_its_work_and_ends_is_not_cut_off(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        asked.append(command)
        return "Id=backup.service\nType=oneshot\n\nType=notify\nId=chrony.service\n", True

    monkeypatch.setattr(updates, "_run", run)
    for number, unit in ((60, "backup.service"), (61, "chrony.service")):
        process(host, number, f"/system.slice/{unit}", "/usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)")
    assert updates.stale()["units"] == ["chrony.service"]
    words = ("systemctl", "show", "--property=Id,Type", "--", "backup.service", "chrony.service")
    assert words in asked


def test_what_cannot_be_restarted_asks_for_a_reboot(host: Path) -> None:
    process(host, 1, "/init.scope", "/usr/lib/systemd/systemd (deleted)")
    process(host, 60, "/system.slice/dbus.service", "/usr/bin/dbus-daemon (deleted)")
    assert updates.stale() == {"units": ["init"], "reboot": ["dbus.service runs what was replaced"]}


def test_a_newer_kernel_and_packages_ask_for_a_reboot(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(*command: str) -> tuple[str, bool]:
        order = ["6.1.0-9-amd64", _RUNNING, "9.9.0-1-amd64"]
        return "", order.index(command[2]) > order.index(command[4])

    monkeypatch.setattr(updates, "_run", newer)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=_RUNNING))
    for name in ("6.1.0-9-amd64", "9.9.0-1-cloud-amd64", "9.9.0-1-rt-amd64"):
        (host / f"boot/vmlinuz-{name}").touch()
    assert updates.stale()["reboot"] == []
    (host / "boot/vmlinuz-9.9.0-1-amd64").touch()
    (host / "run/reboot-required").touch()
    (host / "run/reboot-required.pkgs").write_text("libc6\nlinux-base\nlibc6\n")
    assert updates.stale()["reboot"] == [
        f"kernel 9.9.0-1-amd64 is installed, {_RUNNING} runs",
        "asked for by libc6, linux-base",
    ]


@pytest.mark.parametrize(
    ("shown", "said", "expected"),
    [
        ("ActiveState=activating\nSubState=start\nResult=success\n", "", (True, "")),
        ("ActiveState=active\nSubState=running\nResult=success\n", "", (True, "")),
        ("ActiveState=active\nSubState=exited\nResult=success\n", "E: old", (False, "")),
        (
            "ActiveState=inactive\nSubState=dead\nResult=success\n",
            "",
            (False, "its installation was cut off: the unit is gone, as after a boot"),
        ),
        (
            "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=100\n",
            "Get:1 x\ndpkg: error processing package a\nE: Sub-process failed\nlast\n",
            (False, "dpkg: error processing package a; E: Sub-process failed"),
        ),
        (
            "ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus=100\n",
            "",
            (False, "apt-get ended with 100"),
        ),
    ],
)
def test_the_unit_says_how_far_it_is(
    host: Path, monkeypatch: pytest.MonkeyPatch, shown: str, said: str, expected: tuple[bool, str]
) -> None:
    (host / "place/said-install").write_text(said)
    monkeypatch.setattr(updates, "_run", lambda *_: (shown, True))
    assert updates.state("install") == dict(zip(("runs", "trouble"), expected, strict=True))


def test_a_second_start_finds_the_first_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        asked.append(command)
        return "ActiveState=active\nSubState=running\nResult=success\n", True

    monkeypatch.setattr(updates, "_run", run)
    assert updates.start("install", "^$")["runs"]
    assert {command[:2] for command in asked} == {("systemctl", "show")}


@pytest.mark.parametrize(("sub_state", "ends"), [("running", False), ("exited", True)])
def test_what_is_at_work_is_not_ended(monkeypatch: pytest.MonkeyPatch, sub_state: str, *, ends: bool) -> None:
    """It is another run's, which began when this one's had ended."""
    asked: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        asked.append(command)
        return f"ActiveState=active\nSubState={sub_state}\nResult=success\n", True

    monkeypatch.setattr(updates, "_run", run)
    updates.finish("refresh")
    assert (("systemctl", "stop", "deploy-update-refresh") in asked) == ends
    assert not any("install" in word for command in asked for word in command)


def test_lists_of_packages_that_a_boot_took_are_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "_run", lambda *_: ("ActiveState=inactive\n", True))
    assert updates.state("refresh") == {"runs": False, "trouble": ""}


def in_no_time(
    command: tuple[str, ...], place: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a command that sleeps, with the programs in ``place`` before others."""
    (place / "sleep").symlink_to("/bin/true")
    environment = {**os.environ, **environment, "PATH": f"{place}:{os.environ['PATH']}"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("failures", "code"), [(1, 0), (2, 100)])
def test_lists_that_do_not_come_for_a_moment_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, code: int
) -> None:
    asked: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        asked.append(command)
        return "", True

    monkeypatch.setattr(updates, "_run", run)
    updates.start("refresh", "^$")
    (unit,) = (command for command in asked if command[0] == "systemd-run")
    apt = tmp_path / "apt-get"
    apt.write_text(
        "#!/bin/sh\ncase $* in *update*) echo x >> asked\n"
        f"[ $(wc -l < asked) -gt {failures} ] || exit 100;; esac\n"
    )
    apt.chmod(0o755)
    assert in_no_time(unit[unit.index("--") + 1 :], tmp_path, {}).returncode == code
    assert (tmp_path / "of_all").exists() is (code == 0)


@needs_apt
def test_lists_that_a_mirror_does_not_give_are_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt-get takes a mirror that is away for a warning, and goes by the lists of the day before."""
    asked: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        asked.append(command)
        return "ActiveState=active\nSubState=exited\nResult=success\n", True

    monkeypatch.setattr(updates, "_run", run)
    updates.start("refresh", "^$")
    (unit,) = (command for command in asked if command[0] == "systemd-run")
    ended = in_no_time(unit[unit.index("--") + 1 :], tmp_path, silent_mirror(tmp_path / "apt"))
    (tmp_path / "place/said-refresh").write_text(ended.stdout + ended.stderr)
    failed = f"ActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainStatus={ended.returncode}\n"
    monkeypatch.setattr(updates, "_run", lambda *_: (failed, True))
    assert ended.returncode != 0
    assert "127.0.0.1:9" in updates.state("refresh")["trouble"]
