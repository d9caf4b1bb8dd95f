"""Machines with kernels of their own: what is asked of podman, what is refused, what starts them."""

import platform
import subprocess
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.lab import disk, power
from deploy.lab.disk import disk_entries, ensure_disk, start_entry
from deploy.lab.enter import exec_command
from deploy.lab.machine import Machine
from deploy.lab.machines import KINDS, kind_named, uml
from deploy.lab.machines.containers import CONTAINERS
from deploy.lab.machines.kind import NewHost
from deploy.lab.machines.uml import USER_MODE
from deploy.lab.recipe import host_entries, overlay_entries
from deploy.lab.tarball import Entry, pack
from tests.unit.lab.test_labs import lab_of

HOST = NewHost("two", "node1", IPv4Address("10.213.7.11"), "/cache/trixie-1.raw", ())
MACHINE = Machine(cgroup_v1=True, runtime="runc", open_files=20000, processes=32768)


def test_the_container_holds_a_kernel_and_its_disk() -> None:
    words = USER_MODE.container(HOST, MACHINE)
    assert {
        "--label=deploy.disk=/cache/trixie-1.raw",
        "--volume=/cache/trixie-1.raw:/machine/base.raw:ro",
        "ubd0=/machine/disk.cow,/machine/base.raw",
        "systemd.hostname=node1",
    } <= set(words)
    assert words.index("localhost/deploy-lab-kernel:uml") + 1 == words.index("/machine/start")
    (network,) = (word for word in words if word.startswith("vec0:"))
    assert {"gro=1", "mac=02:de:0a:d5:07:0b"} <= set(network.split(","))
    # The container's own network must not have the machine's hardware address.
    assert not any(word.startswith("--mac-address") for word in words)


def test_a_machine_takes_its_files_at_the_first_boot() -> None:
    placed = USER_MODE.placed([Entry("/etc/hosts", "x", mode=0o600, uid=7)])
    assert placed == [start_entry(), Entry("/machine/files/etc/hosts", "x", mode=0o600, uid=7)]
    units = {entry.path: entry.text or "" for entry in disk_entries()}
    unit = units["/etc/systemd/system/lab-files.service"]
    assert "-o ro,/machine/files none" in unit
    assert "LIBMOUNT_FORCE_MOUNT2=always" in unit  # without it only Debian 12 hands that over as it is
    assert "--no-overwrite-dir" in unit


def test_only_containers_lack_units_of_the_kernel() -> None:
    masked = {entry.path for entry in overlay_entries() if entry.link == "/dev/null"}
    kept = masked - {entry.path for entry in disk_entries()}
    assert "/etc/systemd/system/systemd-udevd.service" in kept
    assert {entry.path for entry in host_entries()} <= {entry.path for entry in disk_entries()}


def test_the_start_is_a_script_that_bash_takes(tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text(start_entry().text or "")
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_a_reboot_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """The kernel executes the script with its devices open; what the script executes has three files."""
    script, kernel = tmp_path / "start", tmp_path / "linux.uml"
    kernel.write_text(
        '#!/bin/bash\nfor one in /proc/self/fd/*; do [ -e "$one" ] && echo "${one##*/}"; done; true\n'
    )
    kernel.chmod(0o755)
    text = start_entry().text or ""
    script.write_text(text.replace("/sys/class/net/tap0", "/"))
    command = f"exec 5</dev/null 17</dev/null; PATH={tmp_path}:$PATH exec bash {script}"
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert {"0", "1", "2"} <= set(said)
    assert not {"5", "17"} & set(said)


@pytest.mark.parametrize(
    ("route", "gateway"), [("default via 10.213.7.1 dev eth0", ["Gateway=10.213.7.1"]), ("", [])]
)
def test_a_machine_has_the_address_of_its_container(tmp_path: Path, route: str, gateway: list[str]) -> None:
    address = "2: eth0    inet 10.213.7.11/24 brd 10.213.7.255 scope global eth0"
    commands = {
        "ip": f"""case "$*" in *address\\ show*) echo "{address}";; *route*) printf '{route}';; esac""",
        "linux.uml": 'echo "started with $*"',
    }
    for name, text in commands.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n".replace("\\\\", "\\"))
        (tmp_path / name).chmod(0o755)
    script = (start_entry().text or "").replace("/sys/class/net", "/nowhere")
    (tmp_path / "start").write_text(script.replace("/machine/files", str(tmp_path / "files")))
    command = f"PATH={tmp_path}:$PATH exec bash {tmp_path}/start mem=1M"
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert said.stdout == "started with mem=1M\n"
    network = (tmp_path / "files/etc/systemd/network/lab.network").read_text().splitlines()
    assert "Address=10.213.7.11/24" in network
    assert [line for line in network if "Gateway" in line] == gateway
    assert (tmp_path / "files/etc/resolv.conf").exists()


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("a.b=0 c\n", ["mem=1M"], "mem=1M a.b=0 c"),
        ("\n", ["mem=1M"], "mem=1M"),
        (None, ["mem=1M"], "mem=1M"),
        # It reboots: its kernel hands over all that it was started with.
        ("a.b=0 c\n", ["mem=1M", "a.b=0", "c"], "mem=1M a.b=0 c"),
    ],
)
def test_words_for_the_kernel(tmp_path: Path, text: str | None, given: list[str], expected: str) -> None:
    kernel = tmp_path / "linux.uml"
    kernel.write_text("#!/bin/bash\necho $*\n")
    kernel.chmod(0o755)
    if text is not None:
        (tmp_path / "kernel-line").write_text(text)
    script = (start_entry().text or "").replace("/sys/class/net/tap0", "/")
    (tmp_path / "start").write_text(script.replace("/machine/", f"{tmp_path}/"))
    command = f"PATH={tmp_path}:$PATH exec bash {tmp_path}/start {' '.join(given)}"
    said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert said == expected + "\n"


def test_each_start_has_words_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[bytes] = []

    def podman(*words: str, data: bytes | None = None) -> str:
        put.extend([data] if data and words[:1] == ("cp",) else [])
        return ""

    monkeypatch.setattr(uml, "podman", podman)
    monkeypatch.setattr(uml, "keep_address", lambda _container: None)
    USER_MODE.start("one", ["a=1", "b"])
    USER_MODE.start("one")
    assert put == [
        pack([Entry("/machine/kernel-line", "a=1 b\n")]),
        pack([Entry("/machine/kernel-line", "\n")]),
    ]


def test_containers_have_no_kernel_line() -> None:
    with pytest.raises(DeployError, match="lab-kernel-line"):
        CONTAINERS.start("one", ["a=1"])


def test_a_machine_that_runs_gets_no_other_kernel_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "inspect_machine", lambda: MACHINE)
    monkeypatch.setattr(power, "need_lab", lambda _name: lab_of(("node1", "running")))
    with pytest.raises(DeployError, match=r"lab-kernel-line.*\n.*deploy lab stop --name two node1"):
        power.power_on("two", "node1", "a=1")


def test_commands_go_over_ssh() -> None:
    lab = replace(lab_of(("node1", "running")), machines="uml")
    words = exec_command(lab, "node1", ["sh", "-c", "a b"], user="bob", terminal=False)
    assert words[0] == "ssh"
    assert words[-1] == """sudo su --login bob --command 'sh -c '"'"'a b'"'"''"""
    assert "-t" in exec_command(lab, "node1", ["id"], user=None, terminal=True)


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(DeployError, match="lab-architecture"):
        USER_MODE.check()


def test_without_tun_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(Path, "exists", lambda _: False)
    with pytest.raises(DeployError, match="lab-no-tun"):
        USER_MODE.check()


def test_memory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9999999 kB\nMemAvailable: 2097152 kB\n")
    USER_MODE.require_room(2, meminfo)
    with pytest.raises(DeployError, match=r"3 more machines with 1024 MiB.* 2048 MiB"):
        USER_MODE.require_room(3, meminfo)


@pytest.mark.parametrize("release", ["noble", "registry.example/ubuntu:24.04"])
def test_a_release_that_does_not_boot_is_refused(release: str) -> None:
    with pytest.raises(DeployError, match=r"lab-release.*\n.*one of: bookworm, trixie"):
        ensure_disk(release)


def test_disks_that_machines_boot_from_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names = ("trixie-new", "trixie-used", "trixie-old", "bookworm-other")
    for name in names:
        (tmp_path / f"{name}.raw").touch()
    monkeypatch.setattr(disk, "_CACHE", tmp_path)
    used = {"Labels": {"deploy.disk": str(tmp_path / "trixie-used.raw")}}
    monkeypatch.setattr(disk, "query", lambda *_: [used])
    disk._drop_others(tmp_path / "trixie-new.raw", "trixie")
    assert {file.stem for file in tmp_path.iterdir()} == set(names) - {"trixie-old"}


def test_an_unknown_kind_is_answered_with_the_known_ones() -> None:
    with pytest.raises(DeployError, match=r"lab-machines.*\n.*containers, uml"):
        kind_named("kvm")
    assert all(kind_named(name).name == name for name in KINDS)
