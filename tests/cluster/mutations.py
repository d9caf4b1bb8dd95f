"""What is done to hosts behind deploy's back, chosen by chance among all that their own records name."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from docs.generators.unwatched import kept_by
from tests.contract.content import ROOT

Records = Mapping[str, Mapping[str, Any]]
"""The state of everything that is recorded of a host, by kind and name."""


@dataclass(frozen=True)
class Mutation:
    """Something done to a host, and how what `deploy status` says of it begins, as a pattern."""

    host: str
    command: str
    expected: str


FILES_OF_A_HOST = 4
ATTRIBUTES = {
    "chmod 0707 {}": "{} *has mode 0707",
    "chown nobody {}": "{} *has owner nobody",
    "chgrp nogroup {}": "{} *has group nogroup",
}
OWN_FILES = {"echo '# drifted' >> {}": "{} differs", "rm {}": "{} is missing", **ATTRIBUTES}
LINKS = {"rm {}": "{} is missing", "ln -sfn /nowhere {}": "{} has target /nowhere"}
SHARED_FILES = {
    "/etc/hosts": "/^# BEGIN/,/^# END/ s/ ctl1$/ ctl7/",
    "/etc/environment": "s/^BASH_ENV=.*/BASH_ENV=drifted/",
    "/etc/bash.bashrc": "/modules.bash/d",
    # On nodes, and where only admins get in.
    "/etc/pam.d/sshd": "/deploy-job-session/d; /pam_deny/d",
}
"""Files of the distribution in which some lines are deploy's, and how those are changed."""
CHOSEN_FILES = {path for role in (ROOT / "roles").iterdir() for path in kept_by(role)}
"""Those whose content stays as somebody writes it, of which docs/not-watched.md speaks."""
SERVICES = {
    "systemctl stop {}": "service {} *is stopped",
    "systemctl disable {}": "service {} *is disabled at boot",
    "systemctl mask --now {}": "service {} *is masked at boot",
}
PACKAGES = ("python3-apt", "slurm-client", "lmod", "libpam-slurm-adopt", "libpam-systemd")
"""Those without daemons: what else is said of a daemon depends on its package."""
TAKE_BACK = (
    "cd $(mktemp -d) && apt-get -qq download {0} && dpkg-deb --raw-extract {0}_*.deb older"
    " && sed -i 's/^Version: .*/&~older/' older/DEBIAN/control && dpkg-deb --build older older.deb"
    " && dpkg --force-downgrade --force-depends --install older.deb"
)
ACCOUNTS = {
    "usermod --shell /bin/false bob": "user bob *has shell /bin/false",
    "usermod --home /nowhere bob": "user bob *has home /nowhere",
    "userdel --force bob": "user bob is missing",
    "groupdel --force alice": "group alice is missing",
}
ASSOCIATIONS = (
    "delete user alice",
    "modify user bob set fairshare=77",
    "modify user bob set maxjobs=-1",
    "modify account research set parent=deploy-validate",
)
DROP_IN = "mkdir -p {0} && printf '[Service]\\nNice=1\\n' > {0}/zz.conf"
PLACES_OF_DROP_INS = ("/etc/systemd/system", "/run/systemd/system", "/etc/systemd/system.control")
BESIDE = {
    "/etc/ssh/sshd_config.d/01-drifted.conf": "MaxSessions 3",
    "/etc/profile.d/zz-drifted.sh": "export BASH_ENV=/nowhere",
    "/etc/systemd/system/service.d/zz.conf": "[Service]",
}
"""Files that override deploy's, by hand, from where they lie."""
TOLD = {
    "scontrol setdebug debug": "the configuration that slurmctld runs with ",
    "scontrol update PartitionName=batch MaxTime=77": "partitions as slurmctld has them ",
}
"""What a running slurmctld can be told otherwise."""
OTHER_ARGUMENTS = (
    "sed 's/^ExecStart=.*/& -m/' /lib/systemd/system/{0} > /etc/systemd/system/{0}"
    " && systemctl daemon-reload && systemctl restart {0}"
    " && rm /etc/systemd/system/{0} && systemctl daemon-reload"
)
RUNS_OTHERWISE = "chrony.service"
"""A service on every host, which is started with other arguments on one; no more is done to it."""
FIREWALL = (
    "nft delete table inet deploy",
    "nft insert rule inet deploy input tcp dport 4711 accept",
    "nft add chain inet deploy output",
)


def mutations(chosen: random.Random, records: Mapping[str, Records]) -> Iterator[Mutation]:
    """About forty; those that need a daemon come before it may be stopped."""
    yield Mutation("ctl1", f"sacctmgr -i {chosen.choice(ASSOCIATIONS)}", "accounts, users and their limits ")
    yield Mutation("login1", chosen.choice(FIREWALL), "firewall rules ")
    for command, expected in TOLD.items():
        yield Mutation("ctl1", command, expected)
    host = chosen.choice(sorted(records))
    other = OTHER_ARGUMENTS.format(RUNS_OTHERWISE)
    yield Mutation(host, other, f"service {RUNS_OTHERWISE} *runs as *-m, ran as ")
    for host, record in records.items():
        yield from _files(chosen, host, record["files"])
        yield from _beside(chosen, host, record["services"])
        yield _package(chosen, host, record["packages"])
        yield from _settings(chosen, host, record.get("sysctls", {}))
        yield from _services(chosen, host, record["services"])
    for host in chosen.sample(sorted(records), 3):
        command, expected = chosen.choice(list(ACCOUNTS.items()))
        yield Mutation(host, command, expected)


def _files(chosen: random.Random, host: str, states: Mapping[str, Any]) -> Iterator[Mutation]:
    for path in chosen.sample(sorted(states), FILES_OF_A_HOST):
        if states[path] is None:
            yield Mutation(host, f"touch {path}", f"{path} is there, and was not")
            continue
        kinds = {"file": OWN_FILES, "link": LINKS}.get(states[path]["type"], ATTRIBUTES)
        if path.endswith(".service"):
            # Of a service without its unit nothing else is said than that it is missing.
            kinds = ATTRIBUTES
        if path in CHOSEN_FILES:
            kinds = {"rm {}": "{} is missing", **ATTRIBUTES}
        if path in SHARED_FILES:
            # podman binds /etc/hosts into its machines, where it cannot be replaced.
            edit = f"sed '{SHARED_FILES[path]}' {{0}} > /run/drifted && cat /run/drifted > {{0}}"
            kinds = {edit: "{} differs", **ATTRIBUTES}
        command, expected = chosen.choice(list(kinds.items()))
        yield Mutation(host, command.format(path), expected.format(path))


def _beside(chosen: random.Random, host: str, services: Mapping[str, Any]) -> Iterator[Mutation]:
    """A drop-in for a service, and a file that overrides one of deploy's."""
    name = chosen.choice(sorted(services))
    unit = name if "." in name else f"{name}.service"
    place = f"{chosen.choice(PLACES_OF_DROP_INS)}/{unit}.d"
    yield Mutation(host, DROP_IN.format(place), f"{place}/zz.conf is there, and was not")
    path, text = chosen.choice(list(BESIDE.items()))
    command = f"mkdir -p $(dirname {path}) && echo '{text}' > {path}"
    yield Mutation(host, command, f"{path} is there, and was not")


def _settings(chosen: random.Random, host: str, values: Mapping[str, Any]) -> Iterator[Mutation]:
    for name in chosen.sample(sorted(values), min(1, len(values))):
        yield Mutation(host, f"sysctl -w {name}=1", f"kernel setting {name} is 1, was ")


def _package(chosen: random.Random, host: str, states: Mapping[str, Any]) -> Mutation:
    name = chosen.choice([name for name in PACKAGES if name in states])
    if chosen.choice((True, False)):
        return Mutation(host, f"dpkg --force-depends --remove {name}", f"package {name} is missing")
    return Mutation(host, TAKE_BACK.format(name), f"package {name} is {states[name]}~older, was ")


def _services(chosen: random.Random, host: str, states: Mapping[str, Any]) -> Iterator[Mutation]:
    names = sorted(states.keys() - {RUNS_OTHERWISE})
    for name in chosen.sample(names, min(2, len(names))):
        # A unit that deploy wrote itself cannot be masked.
        fitting = [each for each in SERVICES if name != "deploy-firewall.service" or "mask" not in each]
        command = chosen.choice(fitting)
        yield Mutation(host, command.format(name), SERVICES[command].format(name))
