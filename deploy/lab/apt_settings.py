"""What this machine's own apt says of mirrors, checks and proxies: lab machines use the same."""

import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SUITES = ("", "-updates", "-security")
_TARGET_FIELDS = "$(CREATED_BY)\t$(ORIGIN)\t$(REPO_URI)\t$(CODENAME)\t$(COMPONENT)"
_KEPT_OPTIONS = (
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::Max-FutureTime",
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
)


def source_lines(
    targets: str,
    host_release: str,
    wanted_release: str,
    keyring: Path = KEYRING,
    suites: Sequence[str] = _SUITES,
) -> list[str]:
    """Apt sources of ``wanted_release`` at the mirrors from which this machine gets its own release.

    ``targets`` is what ``apt-get indextargets`` prints with the fields of this module; ``[]`` when
    nothing in it is Debian's, then mmdebstrap's own default is the best choice.
    """
    signed = f" [signed-by={keyring}]" if keyring.exists() else ""
    wanted = {host_release + suffix: wanted_release + suffix for suffix in suites}
    components: dict[tuple[str, str], list[str]] = {}
    for line in targets.splitlines():
        created_by, origin, uri, codename, component = line.split("\t")
        if created_by != "Packages" or origin != "Debian" or codename not in wanted:
            continue
        if not uri.startswith(("http://", "https://")):
            continue  # a disc or directory of this machine is not there inside a container
        listed = components.setdefault((uri, wanted[codename]), [])
        if component not in listed:
            listed.append(component)
    return [f"deb{signed} {uri} {suite} {' '.join(names)}" for (uri, suite), names in components.items()]


def kept_options(dump: str) -> list[str]:
    """The lines of an ``apt-config dump`` that fetching through the same mirror needs."""
    return sorted(line for line in dump.splitlines() if _is_kept(line))


def _is_kept(line: str) -> bool:
    name = line.partition(" ")[0]
    return not line.endswith(' "";') and any(
        name == kept or (name.startswith(f"{kept}::") and "Proxy" in kept) for kept in _KEPT_OPTIONS
    )


def read_sources(release: str, suites: Sequence[str] = _SUITES) -> list[str]:
    """Apt sources for a Debian release; ``[]`` on a machine that is not Debian.

    One that is not stable yet has the suite ``""`` alone.
    """
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        return []
    if system.get("ID") != "debian":
        return []
    targets = _printed(["apt-get", "indextargets", "--format", _TARGET_FIELDS])
    return source_lines(targets, system.get("VERSION_CODENAME", ""), release, suites=suites)


def read_options() -> list[str]:
    """Apt options for lab machines, one ``name "value";`` a line; ``[]`` where there is no apt."""
    return kept_options(_printed(["apt-config", "dump"]))


def _printed(command: Iterable[str]) -> str:
    try:
        return subprocess.run([*command], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""
