"""What the kernel does for users, asked on this host."""

import errno
import getpass
import os
import pwd
from pathlib import Path

import pytest

from deploy.validate.programs import system


def test_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vmlinuz-6.1.0-9-amd64", "vmlinuz-6.1.0-10-amd64", "initrd.img-6.1.0-10-amd64"):
        (tmp_path / name).touch()
    release = tmp_path / "os-release"
    release.write_text('NAME="Debian GNU/Linux"\nID=debian\n\nVERSION_ID="13"\n')
    monkeypatch.setattr(system, "_KERNELS", f"{tmp_path}/vmlinuz-*")
    monkeypatch.setattr(system, "_OS_RELEASE", str(release))
    assert system.kernel() == {
        "system": "debian 13",
        "running": os.uname().release,
        "installed": ["6.1.0-10-amd64", "6.1.0-9-amd64"],
    }
    monkeypatch.setattr(system, "_OS_RELEASE", "/nowhere")
    assert system.kernel()["system"] == ""


@pytest.mark.parametrize(
    ("mounts", "version"),
    [
        ("cgroup2 {} cgroup2 rw 0 0\n", 2),
        ("tmpfs {0} tmpfs ro 0 0\ncgroup2 {0}/unified cgroup2 rw 0 0\n", 1),
        ("tmpfs {0} tmpfs ro 0 0\ncgroup2 {0} cgroup2 rw 0 0\n", 2),
        ("", 1),
    ],
)
def test_control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, version: int) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "mounts").write_text(mounts.format(tmp_path))
    (tmp_path / "line").write_text(
        "cgroup_disable=memory SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 root=/dev/sda systemd.x_cgroup_y=0\n"
    )
    monkeypatch.setattr(system, "_CONTROL_GROUPS", str(tmp_path))
    monkeypatch.setattr(system, "_MOUNTS", str(tmp_path / "mounts"))
    monkeypatch.setattr(system, "_KERNEL_LINE", str(tmp_path / "line"))
    monkeypatch.setattr(system, "_PLUGINS", f"{tmp_path}/*/slurm*/cgroup_v[0-9].so")
    for name in ("slurm-wlm/cgroup_v1.so", "slurm-wlm/cgroup_v2.so", "slurm/cgroup_v1.so", "slurm/cgroup.so"):
        (tmp_path / "triplet" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "triplet" / name).touch()
    assert system.control_groups() == {
        "version": version,
        "controllers": ["cpu", "memory"],
        "words": ["cgroup_disable=memory", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1", "systemd.x_cgroup_y=0"],
        "known": [1, 2],
    }


@pytest.mark.parametrize(
    ("flags", "number", "expected"),
    [
        (0b1111, 0, {"user": "enforced", "group": "enforced"}),
        (0b0101, 0, {"user": "accounting", "group": "accounting"}),
        (0b1100, 0, {"user": "off", "group": "enforced"}),
        (0b110001, 0, {"user": "accounting", "group": "off"}),
        (0, errno.ENOSYS, {"user": "off", "group": "off"}),
        (0, errno.EPERM, {"why": "/dev/loop0: Operation not permitted"}),
    ],
)
def test_quotas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int, number: int, expected: dict[str, str]
) -> None:
    asked: list[str] = []

    def answer(device: str) -> tuple[int, int]:
        asked.append(device)
        return flags, number

    (tmp_path / "mounts").write_text(
        "/dev/sda /my\\040home ext4 rw 0 0\n/dev/loop0 /my\\040home ext4 rw 0 0\n"
    )
    monkeypatch.setattr(system, "_MOUNTS", str(tmp_path / "mounts"))
    monkeypatch.setattr(system, "quota_flags", answer)
    assert system.quotas("/my home") == expected
    assert asked == ["/dev/loop0"]
    assert system.quotas("/other") == {"why": "no file system is mounted there"}


def test_the_kernel_is_asked_for_quotas() -> None:
    assert system.quota_flags("/dev/null") == (0, errno.ENOTBLK)


def test_a_unit_that_nobody_knows_is_not_active() -> None:
    assert system.is_active("nobody-has-this.service") is False


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of whoever runs the tests."""
    me = pwd.getpwnam(getpass.getuser())
    entry = type(me)((*me[:5], str(tmp_path / "home"), me.pw_shell))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)
    return tmp_path / "home"


def test_whether_root_sees_into_a_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.seen_by_root("me") is None
    home.mkdir(mode=0o750)
    assert system.seen_by_root("me") == {"home": str(home), "mode": 0o750, "seen": True}
    refused = system._LOOK_INTO.replace("os.listdir(sys.argv[1])", "raise PermissionError")
    monkeypatch.setattr(system, "_LOOK_INTO", refused)
    assert system.seen_by_root("me") == {"home": str(home), "mode": 0o750, "seen": False}
    assert system.seen_by_root(None) is None


def test_a_home_that_does_not_answer_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    monkeypatch.setattr(system, "_SECONDS", 1)
    monkeypatch.setattr(system, "_LOOK_INTO", "import time; time.sleep(600)")
    assert system.seen_by_root("me") is None


def test_exports_whose_root_is_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = "rw,sync,wdelay,hide,{0},no_all_squash,anonuid=65534,sec=sys,rw,secure,{0},no_all_squash"
    table = tmp_path / "etab"
    table.write_text(
        f"/home\t10.0.0.1({usual.format('root_squash')})\n"
        f"/home\t10.0.0.2({usual.format('no_root_squash')})\n"
        f"/my\\040data\t*({usual.format('no_root_squash')})\n"
        "/all\t*(rw,no_root_squash,all_squash)\n"
    )
    monkeypatch.setattr(system, "_EXPORTS", str(table))
    assert system.open_exports() == {"/home": ["10.0.0.2"], "/my data": ["*"]}
    monkeypatch.setattr(system, "_EXPORTS", "/nowhere")
    assert system.open_exports() == {}


def test_everything_at_once() -> None:
    told = system.look({"user": None, "quotas": [], "serves_quotas": False, "exports": False})
    assert told["kernel"]["running"] == os.uname().release
    assert (told["quotas"], told["serves_quotas"], told["root_sees"], told["open_exports"]) == (
        {},
        None,
        None,
        {},
    )
