"""From one release of Slurm to another: which way is supported, and which hosts have gone it."""

from collections.abc import Iterable, Mapping

from deploy.errors import DeployError, Finding
from deploy.judge.version_skew import RELEASES, Release, release, shown, understands


def is_of(version: str, wanted: str) -> bool:
    """Whether a package's version is what a site wants: a release, ``26.05``, or a version, ``26.05.5``."""
    bare, parts = version.rpartition(":")[2], wanted.split(".")
    return bare.replace("-", ".").replace("+", ".").split(".")[: len(parts)] == parts


def kept_releases(
    wanted: Mapping[str, str], installed: Mapping[str, str], controllers: Iterable[str]
) -> dict[str, str]:
    """By host the release that it keeps although the site wants another: its own, or its controllers'.

    ``installed`` are the versions of Slurm's packages by host, empty or missing where there are none.
    """
    kept = {}
    # A controller that is new has none yet, where others have.
    of_cluster = next((installed[name] for name in controllers if installed.get(name)), "")
    for name, version in wanted.items():
        own = installed.get(name) or of_cluster
        found = release(own)
        if version and found and not is_of(own, version):
            kept[name] = shown(found)
    return kept


def way(old: Release, new: Release) -> tuple[Release, ...]:
    """The releases to go through, ``new`` the last, in as few hops as may be; empty where there is no way."""
    hops: list[Release] = []
    here = old
    while here != new:
        further = [each for each in RELEASES if here < each <= new and understands(each, here)]
        if not further:
            return ()
        here = further[-1]
        hops.append(here)
    return tuple(hops)


def refuse_route(wanted: str, installed: Mapping[str, str], inventory: str) -> None:
    """Raises DeployError where one hop does not bring every host from what it has to what is wanted.

    ``upgrade-unknown-release``, ``upgrade-is-downgrade``, ``upgrade-hop-too-long``.
    """
    new = release(wanted)
    findings = []
    for host, version in sorted(installed.items()):
        old = release(version)
        if old is None or is_of(version, wanted):
            continue
        if new is None or new not in RELEASES:
            findings.append(_unknown(wanted, inventory))
            break
        if old not in RELEASES or new < old or (new == old and _is_newer(version, wanted)):
            findings.append(_downgrade(host, version, wanted))
        elif not understands(new, old):
            findings.append(_too_long(host, old, new, inventory))
    if findings:
        raise DeployError(*findings)


def _is_newer(version: str, wanted: str) -> bool:
    """Whether a version of the same release is newer than the wanted one."""
    numbers = [part for part in version.rpartition(":")[2].replace("-", ".").split(".")[:3] if part.isdigit()]
    return list(map(int, numbers)) > [int(part) for part in wanted.split(".") if part.isdigit()]


def _unknown(wanted: str, inventory: str) -> Finding:
    known = f"{shown(RELEASES[0])} to {shown(RELEASES[-1])}"
    return Finding(
        inventory,
        "upgrade-unknown-release",
        f"which releases Slurm {wanted} takes over from is not known here; known are {known}",
        "a later deploy may know it; or correct slurm_packages_version",
    )


def _downgrade(host: str, version: str, wanted: str) -> Finding:
    return Finding(
        host,
        "upgrade-is-downgrade",
        f"it has Slurm {version}, newer than {wanted}: slurmdbd and slurmctld do not read the database and"
        " the state of a newer release, so jobs and accounting would be lost",
        "set slurm_packages_version to a release that is not older; the way back is the backup of before",
    )


def _too_long(host: str, old: Release, new: Release, inventory: str) -> Finding:
    between = [shown(each) for each in way(old, new)[:-1]]
    back = shown(min(each for each in RELEASES if understands(new, each)))
    over = f"go over {' and '.join(between)}" if between else "there is no way between them"
    wanted = between[0] if between else back
    return Finding(
        host,
        "upgrade-hop-too-long",
        f"Slurm {shown(new)} takes over from {back} and later, and this host has {shown(old)}",
        f"{over}: set slurm_packages_version to {wanted}, then: deploy upgrade {inventory}",
    )
