"""What a lab machine is made of, before anything is built: packages, files, apt settings."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.lab.apt_settings import DEBIAN, UBUNTU
from deploy.lab.tarball import Entry, pack

RELEASES = {"bookworm": DEBIAN, "trixie": DEBIAN, "jammy": UBUNTU, "noble": UBUNTU}
"""The archive of each."""
UNITS = "/etc/systemd/system"
# Packages give their users numbers from 999 down and from 100 up.
ADMIN, ADMIN_UID, ADMIN_HOME = "admin", 500, "/var/lib/admin"

PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "python3",
    "python3-apt",
    "sudo",
    "iproute2",
    "ca-certificates",
    "procps",
    "kmod",
    "util-linux",
)
IMPORT_CHANGES = ('CMD ["/sbin/init"]', "STOPSIGNAL SIGRTMIN+3")

_DPKG_OPTIONS = (
    "force-unsafe-io",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)

# They want hardware or a kernel of their own.
_MASKED_UNITS = (
    "systemd-modules-load.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-journald-audit.socket",
    "systemd-firstboot.service",
    "systemd-binfmt.service",
    "proc-sys-fs-binfmt_misc.automount",
)
_TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer")

# These set values of the one kernel that all machines and the host share.
_SILENCED_SYSCTL_FILES = (
    "10-coredump-debian.conf",
    "50-default.conf",
    "50-pid-max.conf",
    "99-protect-links.conf",
)
# Of procps in Ubuntu 22.04 and 24.04.
_SILENCED_ON_UBUNTU = tuple(
    f"10-{name}.conf"
    for name in (
        "bufferbloat",
        "console-messages",
        "ipv6-privacy",
        "kernel-hardening",
        "magic-sysrq",
        "map-count",
        "network-security",
        "ptrace",
        "zeropage",
    )
)

_SSHD = """\
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
HostKey /etc/ssh/ssh_host_ed25519_key
"""

_HOST_KEYS_UNIT = """\
[Unit]
Description=Host keys for a machine that was started without any
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key
Before=ssh.service

[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key

[Install]
WantedBy=multi-user.target
"""

# Hooks are shell text by mmdebstrap's own interface; "$1" is the new system's directory.
_HOOKS = (
    f'chroot "$1" groupadd -g {ADMIN_UID} {ADMIN}',
    f'chroot "$1" useradd -u {ADMIN_UID} -g {ADMIN} -m -d {ADMIN_HOME} -s /bin/bash {ADMIN}',
    'chroot "$1" find /etc/ssh -name "ssh_host_*" -delete',
    # Otherwise every machine rebuilds the linker cache and the message catalog at its first boot.
    'chroot "$1" touch /etc/.updated /var/.updated',
    # Otherwise every machine works out the index of all packages before it installs its first. The index is
    # good for files of the time it saw, and in the system's archive none is newer than the archive.
    'chroot "$1" find /var/cache/apt/archives -name "*.deb" -delete',
    'chroot "$1" find /etc/apt /var/lib/apt/lists /var/lib/dpkg/status -exec touch --date=2020-01-01 {} +',
    'chroot "$1" apt-get check -qq',
)


def host_entries() -> list[Entry]:
    """The lab's own files on machines of every kind: how they let the admin in."""
    return [
        Entry("/etc/ssh/sshd_config.d/10-lab.conf", _SSHD),
        Entry(f"/etc/sudoers.d/{ADMIN}", f"{ADMIN} ALL=(ALL:ALL) NOPASSWD: ALL\n", mode=0o440),
        Entry(f"{UNITS}/lab-host-keys.service", _HOST_KEYS_UNIT),
        Entry(f"{UNITS}/multi-user.target.wants/lab-host-keys.service", link="../lab-host-keys.service"),
    ]


def quiet_entries() -> list[Entry]:
    """Without these apt would fetch packages behind the admin's back."""
    return [_masked(unit) for unit in _TIMERS]


def overlay_entries(release: str = "") -> list[Entry]:
    """The lab's own files in the image of containers; nothing in them belongs to one machine."""
    silenced = (*_SILENCED_SYSCTL_FILES, *(_SILENCED_ON_UBUNTU if RELEASES.get(release) is UBUNTU else ()))
    return [
        *host_entries(),
        *(_masked(unit) for unit in _MASKED_UNITS),
        *quiet_entries(),
        *(Entry(f"/etc/sysctl.d/{name}", link="/dev/null") for name in silenced),
    ]


def _masked(unit: str) -> Entry:
    return Entry(f"{UNITS}/{unit}", link="/dev/null")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what comes out of a build."""

    release: str
    sources: tuple[str, ...]
    apt_options: tuple[str, ...]
    packages: tuple[str, ...] = PACKAGES
    files: tuple[Entry, ...] = tuple(overlay_entries())
    installs: bool = True
    """Whether it is a whole system; else nothing but files of the packages and of what they depend on."""

    def bootstrap_command(self, overlay_file: str, output: str) -> list[str]:
        """The mmdebstrap call that makes the system; an empty source list means its default mirror."""
        options = [
            "--quiet",
            f"--variant={'minbase' if self.installs else 'extract'}",
            f"--include={','.join(self.packages)}",
            # The first install on a new machine then needs no refresh of the package lists.
            *(["--skip=cleanup/apt/lists", "--skip=cleanup/apt/cache"] if self.installs else []),
            *(f"--aptopt={line}" for line in self.apt_options),
            *(f"--dpkgopt={line}" for line in _DPKG_OPTIONS),
            *(f"--customize-hook={hook}" for hook in self._hooks(overlay_file)),
        ]
        return ["mmdebstrap", *options, self.release, output, *self.sources]

    def _hooks(self, overlay_file: str) -> Sequence[str]:
        # What is unpacked only has none of the programs that hooks call, and mmdebstrap calls no hook.
        return (*_HOOKS, f"tar-in {overlay_file} /") if self.installs else ()

    def containerfile(self) -> str:
        """How the same files and packages get onto a foreign image of the Debian family."""
        install = (
            "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "
            + " ".join(self.packages)
        )
        finish = " && ".join(hook.removeprefix('chroot "$1" ') for hook in _HOOKS)
        return "\n".join((f"FROM {self.release}", f"RUN {install}", f"RUN {finish}", "ADD overlay.tar /", ""))

    @property
    def overlay(self) -> bytes:
        """The files on top of the packages, as a tar archive."""
        return pack(self.files)

    @property
    def digest(self) -> str:
        """Changes whenever the outcome would."""
        parts: Sequence[str] = (
            *self.bootstrap_command("", ""),
            self.containerfile(),
            *IMPORT_CHANGES,
        )
        return hashlib.sha256("\0".join(parts).encode() + self.overlay).hexdigest()[:16]
