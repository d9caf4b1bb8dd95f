"""The floor: what deploy put in place, put in place again by nothing but parallel ssh, tar and apt."""

import io
import re
import shlex
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.bench.commands import BenchError
from tests.bench.lab import CONTROLLER, BenchLab
from tests.bench.state import Installed, readdressed, rewritten

_ACCOUNTING_DUMP, _DATABASE = "run/bench/accounting.cfg", "run/bench/database.sql"
_CLUSTER_DAEMONS = ("mariadb", "slurmdbd", "slurmctld", "slurmd", "sackd")

_INSTALL = """\
umask 022
{accounts}
if [ -n "$(find /var/lib/apt/lists -maxdepth 0 -mmin +1440)" ]; then apt-get -qq update; fi
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
DEBIAN_FRONTEND=noninteractive apt-get -qq --yes --no-install-recommends install {packages} \
</dev/null >/dev/null
rm /usr/sbin/policy-rc.d
tar --extract --directory=/ --overwrite
systemctl daemon-reload
{start}
"""

_CONTROLLER = """\
systemctl enable --quiet --now mariadb
mariadb < /{database}
systemctl enable --quiet --now slurmdbd
{wait_for_database}
{add_qos}
sacctmgr -i load file=/{dump} >/dev/null
systemctl enable --quiet --now slurmctld
{wait_for_controller}
rm -r /run/bench
"""


@dataclass(frozen=True)
class Recording:
    """A deployed cluster, as far as a script needs it to make the same once more."""

    addresses: Mapping[str, str]
    hosts: Mapping[str, Installed]
    qos: tuple[str, ...]
    """Names of QOS that Slurm does not make by itself: a dump of the accounting mentions them only."""
    accounting: bytes
    database: bytes


def record(lab: BenchLab, hosts: Mapping[str, Installed]) -> Recording:
    """Reads from a deployed cluster what its files do not say: the accounting and its database."""
    configuration = lab.on(CONTROLLER, "cat /etc/slurm/slurm.conf /etc/slurm/slurmdbd.conf").text
    cluster = _setting(configuration, "ClusterName")
    dump = f"sacctmgr -i dump {shlex.quote(cluster)} file=/run/bench.cfg >/dev/null; cat /run/bench.cfg"
    accounting = lab.on(CONTROLLER, f"{dump}; rm /run/bench.cfg").output
    listed = lab.on(CONTROLLER, "sacctmgr --noheader --parsable2 show qos format=name").text.split()
    qos = tuple(name for name in listed if name != "normal")
    return Recording(lab.addresses, hosts, qos, accounting, database_statements(configuration).encode())


def _setting(text: str, name: str) -> str:
    found = re.search(rf"^{name}=(.+)$", text, re.MULTILINE)
    if not found:
        raise BenchError(name, "not in the deployed configuration")
    return found[1].strip()


def database_statements(configuration: str) -> str:
    """SQL that makes slurmdbd's database and user."""
    name, user, password = (_setting(configuration, f"Storage{key}") for key in ("Loc", "User", "Pass"))
    return (
        f"CREATE DATABASE `{name}`;\n"
        f"CREATE USER '{user}'@'localhost' IDENTIFIED BY '{password}';\n"
        f"GRANT ALL ON `{name}`.* TO '{user}'@'localhost';\n"
    )


def prepared(recording: Recording, lab: BenchLab) -> dict[str, bytes]:
    """The archives for the hosts of another lab; the controller's carries what only it needs."""
    change = readdressed(recording.addresses, lab.addresses)
    archives = {host: rewritten(installed.files, change) for host, installed in recording.hosts.items()}
    extra = {_ACCOUNTING_DUMP: recording.accounting, _DATABASE: recording.database}
    archives[CONTROLLER] = _with_files(archives[CONTROLLER], extra)
    return archives


def _with_files(archive: bytes, files: Mapping[str, bytes]) -> bytes:
    result = io.BytesIO(archive)
    with tarfile.open(fileobj=result, mode="a") as target:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            target.addfile(member, io.BytesIO(content))
    return result.getvalue()


def put_in_place(recording: Recording, lab: BenchLab, archives: Mapping[str, bytes]) -> None:
    """The whole of it: every host at once, the nodes' daemons after the controller's, then the first job."""

    def install(host: str) -> None:
        script = install_script(recording.hosts[host], makes_homes=host == CONTROLLER)
        if host == CONTROLLER:
            script += _controller_script(recording.qos)
        lab.on(host, script, data=archives[host])

    def start(host: str) -> None:
        daemons = [name for name in ("slurmd", "sackd") if _has(recording.hosts[host], name)]
        lab.on(host, _enable(daemons))

    others = [host for host in lab.addresses if host != CONTROLLER]
    with ThreadPoolExecutor(len(lab.addresses)) as hosts:
        list(hosts.map(install, lab.addresses))
        list(hosts.map(start, others))
    lab.first_job()


def install_script(installed: Installed, *, makes_homes: bool) -> str:
    """Accounts, one apt transaction, the files, and the daemons that wait for nobody."""
    services = [name.removesuffix(".service") for name in installed.services]
    return _INSTALL.format(
        accounts="\n".join(_account_commands(installed, makes_homes=makes_homes)),
        packages=shlex.join(installed.packages),
        start=_enable(name for name in services if name not in _CLUSTER_DAEMONS),
    )


def _account_commands(installed: Installed, *, makes_homes: bool) -> Iterable[str]:
    for line in installed.groups:
        name, gid = line.split()
        yield shlex.join(["groupadd", "--gid", gid, name])
    for line in installed.users:
        name, _, uid, gid, _, home, shell = line.split(":")
        # /home is one volume that all machines of a lab share.
        has_home = "--create-home" if makes_homes and home.startswith("/home/") else "--no-create-home"
        ids = ["--uid", uid, "--gid", gid]
        yield shlex.join(["useradd", *ids, "--home-dir", home, "--shell", shell, has_home, name])


def _controller_script(qos: Sequence[str]) -> str:
    return _CONTROLLER.format(
        add_qos=f"sacctmgr -i add qos {shlex.quote(','.join(qos))} >/dev/null" if qos else "",
        database=_DATABASE,
        dump=_ACCOUNTING_DUMP,
        wait_for_database=_wait("sacctmgr --noheader show cluster"),
        wait_for_controller=_wait("scontrol ping"),
    )


def _wait(command: str) -> str:
    return f"timeout 60 sh -c 'until {command} >/dev/null 2>&1; do sleep 0.1; done'"


def _enable(services: Iterable[str]) -> str:
    names = [*services]
    return shlex.join(["systemctl", "enable", "--quiet", "--now", *names]) if names else ""


def _has(installed: Installed, name: str) -> bool:
    return f"{name}.service" in installed.services
