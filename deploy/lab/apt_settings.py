"""What this machine's own apt says of mirrors, checks and proxies: lab machines use the same."""

import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import error

_SUITES = ("", "-updates", "-security")
_TARGET_FIELDS = "$(CREATED_BY)\t$(ORIGIN)\t$(REPO_URI)\t$(CODENAME)\t$(COMPONENT)"
_KEPT_OPTIONS = (
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::Max-FutureTime",
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
)


@dataclass(frozen=True)
class Archive:
    """Where releases of a distribution come from. ``mirrors``: by suite, for machines of another one."""

    distribution: str
    origin: str
    keyring: Path
    mirrors: tuple[tuple[str, str], ...] = ()
    components: str = ""

    @property
    def signed(self) -> str:
        """The option of apt that names who has to have signed it."""
        return f" [signed-by={self.keyring}]" if self.keyring.exists() else ""


DEBIAN = Archive("debian", "Debian", Path("/usr/share/keyrings/debian-archive-keyring.gpg"))
UBUNTU = Archive(
    "ubuntu",
    "Ubuntu",
    Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg"),
    mirrors=(
        ("", "http://archive.ubuntu.com/ubuntu"),
        ("-updates", "http://archive.ubuntu.com/ubuntu"),
        ("-security", "http://security.ubuntu.com/ubuntu"),
    ),
    components="main restricted universe multiverse",
)


def source_lines(
    targets: str,
    host_release: str,
    wanted_release: str,
    archive: Archive = DEBIAN,
    suites: Sequence[str] = _SUITES,
) -> list[str]:
    """Apt sources of ``wanted_release`` at the mirrors from which this machine gets its own release.

    ``targets`` is what ``apt-get indextargets`` prints with the fields of this module; ``[]`` when
    nothing in it is of the archive.
    """
    wanted = {host_release + suffix: wanted_release + suffix for suffix in suites}
    components: dict[tuple[str, str], list[str]] = {}
    for line in targets.splitlines():
        created_by, origin, uri, codename, component = line.split("\t")
        if created_by != "Packages" or origin != archive.origin or codename not in wanted:
            continue
        if not uri.startswith(("http://", "https://")):
            continue  # a disc or directory of this machine is not there inside a container
        listed = components.setdefault((uri, wanted[codename]), [])
        if component not in listed:
            listed.append(component)
    return [
        f"deb{archive.signed} {uri} {suite} {' '.join(names)}" for (uri, suite), names in components.items()
    ]


def kept_options(dump: str) -> list[str]:
    """The lines of an ``apt-config dump`` that fetching through the same mirror needs."""
    return sorted(line for line in dump.splitlines() if _is_kept(line))


def _is_kept(line: str) -> bool:
    name = line.partition(" ")[0]
    return not line.endswith(' "";') and any(
        name == kept or (name.startswith(f"{kept}::") and "Proxy" in kept) for kept in _KEPT_OPTIONS
    )


def read_sources(release: str, archive: Archive = DEBIAN, suites: Sequence[str] = _SUITES) -> list[str]:
    """Apt sources for a release of an archive; ``[]`` where mmdebstrap's own default is the best choice.

    One that is not stable yet has the suite ``""`` alone. Raises DeployError ``lab-keyring-missing``.
    """
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    if system.get("ID") == archive.distribution:
        targets = _printed(["apt-get", "indextargets", "--format", _TARGET_FIELDS])
        return source_lines(targets, system.get("VERSION_CODENAME", ""), release, archive, suites)
    if archive.mirrors and not archive.keyring.exists():
        raise error(
            "lab-keyring-missing",
            f"{release} is {archive.origin}'s, and its keys are not on this machine: {archive.keyring}",
            hint=f"apt-get install {archive.distribution}-keyring",
        )
    return [
        f"deb{archive.signed} {uri} {release}{suite} {archive.components}" for suite, uri in archive.mirrors
    ]


def read_options() -> list[str]:
    """Apt options for lab machines, one ``name "value";`` a line; ``[]`` where there is no apt."""
    return kept_options(_printed(["apt-config", "dump"]))


def _printed(command: Iterable[str]) -> str:
    try:
        return subprocess.run([*command], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""
