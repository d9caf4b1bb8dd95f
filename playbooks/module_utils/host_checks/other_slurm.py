"""Whether a Slurm is there already that is not the one of the distribution, or belongs to another cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.finding import error
from ansible.module_utils.host_checks.package_sources import missing

_DAEMONS = ("slurmctld", "slurmd", "slurmdbd")
_PLACES = ("usr/local/sbin", "usr/local/bin", "opt/slurm*/sbin", "opt/slurm*/*/sbin")
_CLIENTS = {False: "slurm-client", True: "slurm-smd-client"}
"""What every host of a cluster has of Slurm, by whether SchedMD's packaging made it."""
_CONFIGURATIONS = (
    "etc/slurm/slurm.conf",
    "etc/slurm-llnl/slurm.conf",
    "run/slurm/conf/slurm.conf",
    "var/spool/slurmd/conf-cache/slurm.conf",
)


def check_installation(root: Path) -> Iterator[dict[str, str]]:
    """Daemons and units that no package of the distribution brought."""
    for daemon in _DAEMONS:
        binaries = [path for place in _PLACES for path in root.glob(f"{place}/{daemon}")]
        packaged = root / "usr/sbin" / daemon
        if packaged.exists() and not any(
            _is_known_to_dpkg(root, name) for name in (daemon, f"slurm-smd-{daemon}")
        ):
            binaries.append(packaged)
        unit = root / "etc/systemd/system" / f"{daemon}.service"
        units = [unit] if unit.is_file() and not unit.is_symlink() else []
        for path in (*binaries, *units):
            shown = f"/{path.relative_to(root)}"
            yield error(
                "other-slurm-installed",
                f"{shown} is not from a package of the distribution: it would run instead of the one that is "
                f"installed from there",
                f"remove what brought it, or take the host out of the inventory; see: dpkg -S {shown}",
            )


def check_source(root: Path, *, is_built: bool) -> Iterator[dict[str, str]]:
    """Slurm's packages of the source that the site does not name: the others cannot take their place."""
    other = _CLIENTS[not is_built]
    if missing([other], root / "var/lib/dpkg/info"):
        return
    there, wanted = ("distribution", "schedmd") if is_built else ("schedmd", "distribution")
    yield error(
        "slurm-source-differs",
        f"it has Slurm from other packages ({other}) than slurm_packages_source: {wanted} says; deploy does "
        "not put the one in the other's place",
        f"set slurm_packages_source: {there}; or drain and stop Slurm there, and remove its packages by hand",
    )


def _is_known_to_dpkg(root: Path, package: str) -> bool:
    """Whether dpkg has a package, or was killed while it unpacked it."""
    dpkg = root / "var/lib/dpkg"
    if (dpkg / "info" / f"{package}.list").exists():
        return True
    texts = (_text(path) for path in (dpkg / "status", *dpkg.glob("updates/*")))
    return any(re.search(rf"^Package: {package}$", text, re.MULTILINE) for text in texts)


def memberships(root: Path) -> Iterator[dict[str, Any]]:
    """What the configurations say that Slurm runs by here: the cluster, and its controllers by name.

    Their addresses are empty where the name is the address, as slurm.conf(5) has it under SlurmctldHost.
    """
    for name in _CONFIGURATIONS:
        text = _text(root / name)
        cluster = _parameter(text, "ClusterName")
        hosts = (host.partition("(") for host in _parameters(text, "SlurmctldHost|ControlMachine"))
        if cluster:
            controllers = {host: address.rstrip(")") for host, _, address in hosts}
            yield {"file": f"/{name}", "name": cluster, "controllers": controllers}


def check_membership(root: Path, cluster: str, controllers: Sequence[str]) -> Iterator[dict[str, str]]:
    """A configuration of a cluster with another name and other controllers."""
    for found in memberships(root):
        theirs, hosts, name = found["name"], found["controllers"].keys(), found["file"]
        # A cluster that is renamed keeps its controllers.
        if theirs != cluster and not hosts & set(controllers):
            yield error(
                "belongs-to-other-cluster",
                f"{name} is of the cluster {theirs} with the controller {', '.join(sorted(hosts)) or '?'}; "
                f"this site is {cluster}",
                f"drain and stop Slurm there and remove {name}, or take the host out of the inventory",
            )
            return


def has_state(root: Path, state_location: str) -> bool:
    """Whether a slurmctld ran by this state, here or where it was copied from."""
    return bool(_text(_clustername(root, state_location)))


def _clustername(root: Path, state_location: str) -> Path:
    """Where slurmctld writes whose state it is, before anything else."""
    return root / state_location.lstrip("/") / "clustername"


def check_state(root: Path, cluster: str, state_location: str) -> Iterator[dict[str, str]]:
    """The state of a cluster with another name, which slurmctld refuses to start with."""
    theirs = _text(_clustername(root, state_location)).partition("|")[0].strip()
    if theirs and theirs != cluster:
        yield error(
            "cluster-name-differs",
            f"{state_location} holds the state of the cluster {theirs}, and this site is called {cluster}: "
            f"slurmctld would not start",
            f"set slurmctld_cluster_name: {theirs}; to rename the cluster and lose its jobs: "
            f"rm {state_location}/clustername",
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _parameters(text: str, names: str) -> list[str]:
    return re.findall(rf"^\s*(?:{names})\s*=\s*(\S+)", text, re.MULTILINE | re.IGNORECASE)


def _parameter(text: str, name: str) -> str:
    return next(iter(_parameters(text, name)), "")
