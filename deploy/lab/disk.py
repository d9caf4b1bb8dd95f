"""What machines with a kernel of their own boot from: a disk image of Debian, and the kernel.

User-mode Linux is a program: Debian's package of it, with the libraries that it wants, is an image of
podman's, whichever release runs on the machines and here. All comes from the mirrors of this machine's
own apt, which verifies signatures and checksums.
"""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from deploy.durable import take_place
from deploy.errors import ExitCode, error
from deploy.lab.apt_settings import read_options, read_sources
from deploy.lab.image import bootstrap, ensure_programs
from deploy.lab.locks import exclusive
from deploy.lab.podman import podman, query, succeeds
from deploy.lab.recipe import PACKAGES, UNITS, Recipe, host_entries, quiet_entries
from deploy.lab.tarball import Entry
from deploy.place import private_place

KERNEL_IMAGE = "localhost/deploy-lab-kernel:uml"
DISK, START = "/machine/base.raw", "/machine/start"
"""Where both lie in a machine's container."""
KERNEL_LINE = "/machine/kernel-line"
"""Words there that its kernel is started with beside its own."""
FILES = "/machine/files"
"""The machine's own files there, which it takes at its first boot."""
DISK_LABEL = "deploy.disk"

_CACHE = Path("/var/cache/deploy-lab")
_BYTES = 8 << 30
_RELEASES = ("bookworm", "trixie", "forky")
_KERNEL_RELEASE = "forky"  # its Linux 7.2 is the one that these machines were tried with
_FORMAT = ("mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,lazy_journal_init=1")

# Bash has its script open as 255, and closes that by itself.
_START = f"""\
#!/bin/bash
# Starts the machine. Its kernel executes this again when it reboots, with all devices of before still open.
set -euo pipefail
for descriptor in /proc/self/fd/*; do
  descriptor=${{descriptor##*/}}
  if ((descriptor > 2 && descriptor < 255)); then eval "exec $descriptor>&-"; fi
done
if [ ! -e /sys/class/net/tap0 ]; then
  read -r _ _ _ address _ < <(ip -4 -oneline address show dev eth0)
  read -r _ _ gateway _ < <(ip -4 route show default; echo)
  mkdir -p {FILES}/etc/systemd/network
  {{
    printf '[Match]\\nName=vec0\\n\\n[Network]\\nAddress=%s\\nIPv6AcceptRA=no\\n' "$address"
    if [ -n "$gateway" ]; then printf 'Gateway=%s\\n' "$gateway"; fi
  }} >{FILES}/etc/systemd/network/lab.network
  cat /etc/resolv.conf >{FILES}/etc/resolv.conf
  # The machine has the container's address from now on.
  ip address flush dev eth0
  ip tuntap add tap0 mode tap
  ip link add bridge0 type bridge
  for port in eth0 tap0; do ip link set "$port" master bridge0 up; done
  ip link set bridge0 up
fi
read -r -a words <{KERNEL_LINE} || true
for word in "${{words[@]}}"; do
  # When the machine reboots, its kernel hands over what it was started with.
  if [[ " $* " != *" $word "* ]]; then set -- "$@" "$word"; fi
done
exec -a "$0" linux.uml "$@"
"""

_FILES_UNIT = f"""\
[Unit]
Description=Files of this machine alone, taken at its first boot
DefaultDependencies=no
After=systemd-remount-fs.service
Before=systemd-networkd.service network-pre.target
Before=systemd-tmpfiles-setup-dev.service systemd-tmpfiles-setup.service
ConditionPathExists=!/var/lib/lab-files

[Service]
Type=oneshot
RemainAfterExit=yes
# The mount of Debian 12 hands its options over as one text, which hostfs takes for the path alone; those of
# later releases do so where they are asked to.
Environment=LIBMOUNT_FORCE_MOUNT2=always
ExecStart=/usr/bin/mount -t hostfs -o ro,{FILES} none /mnt
ExecStart=/bin/bash -o pipefail -c 'tar -C /mnt -c . | tar -C / -x --no-overwrite-dir'
ExecStart=/usr/bin/umount /mnt
ExecStart=/usr/bin/touch /var/lib/lab-files

[Install]
WantedBy=sysinit.target
"""


def disk_entries() -> list[Entry]:
    """The lab's own files on the disk; nothing in them belongs to one machine."""
    networkd, online = "systemd-networkd.service", "systemd-networkd-wait-online.service"
    return [
        *host_entries(),
        *quiet_entries(),
        Entry("/etc/fstab", "/dev/ubda / ext4 defaults 0 1\n"),
        Entry(f"{UNITS}/lab-files.service", _FILES_UNIT),
        Entry(f"{UNITS}/sysinit.target.wants/lab-files.service", link="../lab-files.service"),
        Entry(f"{UNITS}/multi-user.target.wants/{networkd}", link=f"/usr/lib/systemd/system/{networkd}"),
        Entry(f"{UNITS}/network-online.target.wants/{online}", link=f"/usr/lib/systemd/system/{online}"),
    ]


def start_entry() -> Entry:
    """The program with which a machine's container starts."""
    return Entry(START, _START, mode=0o755)


def kernel_line_entry(words: Sequence[str] = ()) -> Entry:
    """What the kernel is started with beside its own words, until it is started anew."""
    return Entry(KERNEL_LINE, " ".join(words) + "\n")


def ensure_disk(release: str) -> Path:
    """The disk image of a release, and the kernel for it, made unless they are there. Raises DeployError."""
    if release not in _RELEASES:
        raise error(
            "lab-release",
            f"machines with a kernel of their own do not run {release}",
            hint=f"type --release with one of: {', '.join(_RELEASES)}",
        )
    kernel = Recipe(
        release=_KERNEL_RELEASE,
        sources=tuple(read_sources(_KERNEL_RELEASE, suites=("",))),
        apt_options=tuple(read_options()),
        packages=("user-mode-linux", "bash", "coreutils", "iproute2", "base-files"),
        files=(),
        installs=False,
    )
    recipe = Recipe(
        release=release,
        sources=tuple(read_sources(release)),
        apt_options=tuple(read_options()),
        packages=(*PACKAGES, "udev", "e2fsprogs", "xfsprogs"),
        files=tuple(disk_entries()),
    )
    digest = hashlib.sha256(
        "\0".join((kernel.digest, recipe.digest, *_FORMAT, str(_BYTES))).encode()
    ).hexdigest()[:16]
    disk = _CACHE / f"{release}-{digest}.raw"
    ensure_programs(kernel, KERNEL_IMAGE)
    with exclusive(f"disk-{release}"):
        if not disk.exists():
            _CACHE.mkdir(parents=True, exist_ok=True)
            _make(recipe, disk)
            _drop_others(disk, release)
    return disk


def _drop_others(new: Path, release: str) -> None:
    """Remove disk images that the new one has replaced; one that a machine boots from stays."""
    containers = query("ps", "--all", "--filter", f"label={DISK_LABEL}")
    used = {container["Labels"][DISK_LABEL] for container in containers}
    for disk in _CACHE.glob(f"{release}-*.raw"):
        if disk != new and str(disk) not in used:
            disk.unlink()


def _make(recipe: Recipe, disk: Path) -> None:
    with private_place("disk", _CACHE) as scratch:
        overlay, tree, new = Path(scratch, "overlay.tar"), Path(scratch, "tree"), Path(scratch, "new.raw")
        overlay.write_bytes(recipe.overlay)
        bootstrap(recipe, overlay, tree)
        _copy_modules(tree)
        with new.open("wb") as handle:
            handle.truncate(_BYTES)
        made = subprocess.run(
            [*_FORMAT, "-d", str(tree), str(new)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise error(
                "lab-image-failed",
                f"mke2fs could not make a disk of {recipe.release}: {made.stderr.strip()}",
                hint=f"look whether there is room: df {_CACHE}",
                exit_code=ExitCode.FAILED,
            )
        take_place(new, disk)


def _copy_modules(tree: Path) -> None:
    # No package of the machine has those of its kernel, and units want some before others could be mounted.
    container = podman("create", KERNEL_IMAGE, "true")
    try:
        podman("cp", f"{container}:/usr/lib/uml/modules", str(tree / "usr/lib/modules"))
    finally:
        succeeds("rm", container)
