import os
import shutil
from pathlib import Path

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.lab.image import image_name, start_command
from deploy.lab.machine import (
    Machine,
    choose_runtime,
    inspect_machine,
    is_cgroup_v1,
    require_room,
    require_tools,
)


@pytest.mark.parametrize(
    ("cgroup_v1", "has_crun", "runtime"),
    [(True, True, "runc"), (True, False, "runc"), (False, True, "crun"), (False, False, "runc")],
)
def test_runtime_follows_the_cgroup_layout(*, cgroup_v1: bool, has_crun: bool, runtime: str) -> None:
    assert choose_runtime(cgroup_v1=cgroup_v1, has_crun=has_crun) == runtime


def test_cgroup_layouts(tmp_path: Path) -> None:
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified/cgroup.controllers").touch()
    assert is_cgroup_v1(tmp_path)  # hybrid: the controllers are in the old hierarchies
    assert not is_cgroup_v1(tmp_path / "unified")


def test_start_command_forces_cgroup_v1_only_where_it_is() -> None:
    old = Machine(cgroup_v1=True, runtime="runc", open_files=1, processes=1)
    new = Machine(cgroup_v1=False, runtime="crun", open_files=1, processes=1)
    assert start_command(new) == ["/sbin/init", "systemd.mask=getty@tty1.service"]
    assert start_command(old)[2:] == [
        "systemd.unified_cgroup_hierarchy=0",
        "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",
    ]


def test_missing_tools_are_named_with_the_line_that_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "podman" else f"/bin/{name}")
    with pytest.raises(DeployError) as caught:
        require_tools(("podman", "ssh"))
    finding = caught.value.findings[0]
    assert finding.message == "not installed on this machine: podman"
    assert finding.hint.startswith("apt-get install --no-install-recommends podman ")
    assert caught.value.exit_code == ExitCode.BAD_INPUT


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(DeployError, match=r"only root may.*lab-needs-root.*\n.*sudo"):
        inspect_machine()


def test_room_is_counted_before_machines_hang(tmp_path: Path) -> None:
    setting = tmp_path / "max_user_instances"
    setting.write_text("128\n")
    require_room(18, setting)
    with pytest.raises(DeployError) as caught:
        require_room(19, setting)
    assert caught.value.findings[0].hint == "sysctl -w fs.inotify.max_user_instances=1024"
    with pytest.raises(DeployError, match="max_user_instances=2048"):
        require_room(200, setting)


def test_image_names() -> None:
    assert image_name("trixie") == "localhost/deploy-lab:trixie"
    assert image_name("Registry.example/os/ubuntu:24.04") == (
        "localhost/deploy-lab:registry.example-os-ubuntu-24.04"
    )
