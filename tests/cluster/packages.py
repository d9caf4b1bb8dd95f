"""Small packages in several versions, and a repository of them on a machine: updates a test can count on."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster

_HOLDS = """import mmap, signal
with open("/usr/lib/deploy-probe/data", "rb") as file:
    kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
signal.pause()
"""
_UNIT = """[Service]
ExecStart=/usr/bin/python3 /usr/lib/deploy-probe/hold.py
[Install]
WantedBy=multi-user.target
"""
_PLACE = "/srv/deploy-probe"
ASKS_FOR_A_REBOOT = "touch /run/reboot-required; echo deploy-core >> /run/reboot-required.pkgs"


def install(cluster: Cluster, host: str, place: Path) -> None:
    """Version 1 of deploy-probe, a service that has a file of its package mapped, and of deploy-core."""
    cluster.on(host, "mkdir", "--parents", _PLACE)
    for name in ("deploy-probe", "deploy-core"):
        _copy(cluster, host, _built(place, name, 1))
    cluster.on(host, "sh", "-c", f"dpkg --install {_PLACE}/*_1.deb")
    cluster.on(host, "systemctl", "enable", "--now", "deploy-probe")
    line = f"deb [trusted=yes] file:{_PLACE} ./"
    cluster.on(host, "sh", "-c", f"echo '{line}' > /etc/apt/sources.list.d/deploy-probe.list")


def offer(cluster: Cluster, host: str, place: Path, version: int, *names: str, after: str = "") -> None:
    """A new version of these packages, which runs a script ``after`` it was unpacked."""
    built = [_built(place, name, version, after) for name in names]
    for file in built:
        _copy(cluster, host, file)
    index = place / "Packages"
    index.write_text("".join(map(_entry, built)))
    _copy(cluster, host, index)


def remove(cluster: Cluster, host: str) -> None:
    """Everything of it."""
    cluster.on(host, "dpkg", "--purge", "deploy-probe", "deploy-core")
    cluster.on(host, "rm", "--recursive", _PLACE, "/etc/apt/sources.list.d/deploy-probe.list")
    cluster.on(host, "rm", "--force", "/run/reboot-required", "/run/reboot-required.pkgs")


def _built(place: Path, name: str, version: int, after: str = "") -> Path:
    tree = place / f"{name}_{version}"
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: tests\nDescription: a test\n"
    )
    if name == "deploy-probe":
        for path, text in (
            ("usr/lib/deploy-probe/data", str(version) * 4096),
            ("usr/lib/deploy-probe/hold.py", _HOLDS),
            ("usr/lib/systemd/system/deploy-probe.service", _UNIT),
        ):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
    if after:
        script = tree / "DEBIAN/postinst"
        script.write_text(f"#!/bin/sh\n{after}\n")
        script.chmod(0o755)
    package = place / f"{name}_{version}.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", tree, package], check=True, capture_output=True
    )
    return package


def _entry(package: Path) -> str:
    control = subprocess.run(
        ["dpkg-deb", "--field", package], check=True, capture_output=True, text=True
    ).stdout
    content = package.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return f"{control}Filename: ./{package.name}\nSize: {len(content)}\nSHA256: {digest}\n\n"


def _copy(cluster: Cluster, host: str, file: Path) -> None:
    to = f"cat > {_PLACE}/{file.name}"
    command = ["podman", "exec", "--interactive", container_name(cluster.name, host), "sh", "-c", to]
    subprocess.run(command, input=file.read_bytes(), check=True)
