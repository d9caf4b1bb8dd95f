"""Options of the driver's kernel module take effect when it is loaded."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

nvidia_options = load_module("roles/nvidia_driver/library/nvidia_options.py")
FILE, REASON = "etc/modprobe.d/deploy-nvidia.conf", "run/deploy/reboot/nvidia_options"
TEXT = "# Made by deploy\nblacklist nouveau\noptions nouveau modeset=0\noptions nvidia NVreg_A=0 NVreg_B=1\n"


class Host:
    """An AnsibleModule on a host with a driver in its kernel, that was loaded with these options."""

    def __init__(self, root: Path, text: str) -> None:
        self.root, self.check_mode, self.has_initramfs = root, False, True
        self.ran: list[list[str]] = []
        (root / FILE).parent.mkdir(parents=True)
        if text:
            (root / FILE).write_text(text)
        (root / "proc/driver/nvidia").mkdir(parents=True)
        (root / "proc/driver/nvidia/version").write_text(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
        )

    def exit_json(self, **result: Any) -> None:  # noqa: ANN401
        self.result = result
        raise SystemExit

    def get_bin_path(self, name: str) -> str | None:
        return f"/usr/sbin/{name}" if self.has_initramfs else None

    def run_command(self, command: list[str], *, check_rc: bool) -> None:
        assert check_rc
        self.ran.append(command)

    def look(self, options: str = "", *, is_written: bool = False) -> dict[str, Any]:
        self.params = {"file": f"/{FILE}", "options": options, "is_written": is_written}
        with pytest.raises(SystemExit):
            nvidia_options.look(self, self.root)
        return self.result


@pytest.mark.parametrize(
    ("text", "options", "named"),
    [
        (TEXT, "NVreg_A=0 NVreg_B=1", ""),
        (TEXT, "NVreg_A=1 NVreg_B=1", "NVreg_A"),
        (TEXT, "", "NVreg_A, NVreg_B"),
        (TEXT, "NVreg_A=0 NVreg_B=1 NVreg_C=x=y", "NVreg_C"),
        ('options nvidia NVreg_C="x=1; y=2"\n', 'NVreg_C="x=1; y=2"', ""),
        ("options nouveau modeset=0\n", "", ""),
        ("", "NVreg_A=0", "NVreg_A"),
        ("", "", ""),
    ],
)
def test_what_changes_under_a_driver_that_runs_wants_a_reboot(
    tmp_path: Path, text: str, options: str, named: str
) -> None:
    host = Host(tmp_path, text)
    answer = host.look(options)
    assert answer["changed"] == answer["waits_for_reboot"] == bool(named)
    assert answer["deploy_impact"]["kind"] == ("reboot" if named else "none")
    if named:
        assert (tmp_path / REASON).read_text().endswith(f"({named})\n")
        assert answer["deploy_impact"]["reasons"] == [(tmp_path / REASON).read_text().strip()]


def test_a_reason_stays_until_the_boot_and_a_preview_leaves_none(tmp_path: Path) -> None:
    host = Host(tmp_path, TEXT)
    host.check_mode = True
    answer = host.look("NVreg_A=1")
    assert (answer["changed"], answer["deploy_impact"]["kind"]) == (True, "reboot")
    assert not (tmp_path / REASON).exists()
    host.check_mode = False
    host.look("NVreg_A=1")
    (tmp_path / FILE).write_text("options nvidia NVreg_A=1\n")
    again = host.look("NVreg_A=1")
    assert (again["changed"], again["waits_for_reboot"]) == (False, True)


@pytest.mark.parametrize("has_initramfs", [True, False])
def test_what_boots_first_has_them_before_the_reboot(tmp_path: Path, *, has_initramfs: bool) -> None:
    host = Host(tmp_path, "options nvidia NVreg_A=1\n")
    host.has_initramfs = has_initramfs
    host.look("NVreg_A=1", is_written=True)
    assert host.ran == [], "nothing waits for a reboot"
    host.look("NVreg_A=0")
    assert host.ran == [], "the file has them not yet"
    (tmp_path / FILE).write_text("options nvidia NVreg_A=0\n")
    host.look("NVreg_A=0", is_written=True)
    assert host.ran == ([["update-initramfs", "-u"]] if has_initramfs else [])


def test_where_no_driver_runs_the_next_load_has_them(tmp_path: Path) -> None:
    host = Host(tmp_path, TEXT)
    (tmp_path / "proc/driver/nvidia/version").unlink()
    assert host.look()["waits_for_reboot"] is False
    assert not (tmp_path / REASON).exists()
