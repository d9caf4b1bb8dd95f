"""The faults: how each is caused, how it ends, and what is waited for in between."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from deploy.lab.state import SHARED_STATE
from tests.campaign import chance_of
from tests.cluster.lab_cluster import Cluster, run
from tests.reliability.lab import (
    CONTROLLERS,
    DATABASE,
    HOSTS,
    NODES,
    SECOND_DATABASE,
    freeze,
    init_of,
    thaw,
)

LEADER, STANDBY = CONTROLLERS
_FILL = f"{SHARED_STATE}/fill"
_ITS_OWN = ("/var/log", "/var/spool", "/var/tmp")
_LATER = 120


@dataclass(frozen=True)
class Place:
    """Where a fault is caused, and the chance that decides what is not said."""

    cluster: Cluster
    chance: random.Random

    def on(self, host: str, script: str) -> None:
        """Runs a script as root."""
        self.cluster.on(host, "sh", "-ec", script)

    def shuffled(self, hosts: tuple[str, ...]) -> list[str]:
        """In an order that chance decides."""
        return self.chance.sample(hosts, len(hosts))


def _nothing(_place: Place) -> None:
    """What ends by itself."""


@dataclass(frozen=True)
class Fault:
    """``what`` stands in the table; ``lasts`` are the fewest and the most seconds."""

    what: str
    cause: Callable[[Place], None]
    end: Callable[[Place], None] = _nothing
    lasts: tuple[float, float] | None = None
    """None: until jobs are taken again."""
    is_until_led: bool = False
    """Whether it lasts some seconds longer than until the other controller leads."""
    users_on: str = DATABASE
    hurts_nodes: bool = False
    """Whether jobs that run end with their node, so that Slurm starts them again."""
    spares_slurmctld: bool = False
    """Whether slurmctld and its nodes go on: only one that has run for minutes asks for lost jobs."""


def _kills(host: str, daemon: str) -> Callable[[Place], None]:
    def kill(place: Place) -> None:
        place.on(host, f"systemctl kill --kill-whom=main --signal=KILL {daemon}")

    return kill


def _cut(place: Place, host: str, verb: str) -> None:
    for chain, way in (("INPUT", "-i"), ("OUTPUT", "-o")):
        rule = ("iptables", verb, chain, "!", way, "lo", "-j", "DROP")
        run("nsenter", "-t", init_of(place.cluster, host), "-n", *rule)


def _signals(signal: str) -> Callable[[Place], None]:
    return lambda place: place.on(LEADER, f"systemctl kill --kill-whom=main --signal={signal} slurmctld")


def _fill_disk(place: Place) -> None:
    """Small file systems take the place of the directories in which the leader's own disk is written to."""
    for path in _ITS_OWN:
        place.on(
            LEADER,
            f"size=$(($(du --summarize --block-size=1M {path} | cut -f1) + 4))m;"
            f" mode=$(stat --format=%a {path}); mkdir /run/copy; mount --bind {path} /run/copy;"
            f" mount -t tmpfs -o mode=$mode,size=$size tmpfs {path};"
            f" cp -a /run/copy/. {path}; umount /run/copy; rmdir /run/copy",
        )
    place.on(LEADER, "systemctl kill --kill-whom=main --signal=USR2 slurmctld")
    for path in _ITS_OWN:
        place.on(LEADER, f"! dd if=/dev/zero of={path}/fill bs=64k status=none 2>/dev/null")


def _empty_disk(place: Place) -> None:
    for path in _ITS_OWN:
        place.on(LEADER, f"umount --lazy {path}")
    place.on(LEADER, "systemctl kill --kill-whom=main --signal=USR2 slurmctld")


def _all_on(place: Place) -> None:
    for host in place.shuffled(HOSTS):
        place.cluster.power_on(host)
        time.sleep(place.chance.uniform(0, 5))


def _controllers_late(place: Place) -> None:
    place.cluster.power_on(*place.shuffled((DATABASE, SECOND_DATABASE, *NODES)))
    time.sleep(_LATER)
    place.cluster.power_on(*place.shuffled(CONTROLLERS))


FAULTS = {
    "slurmctld-killed": Fault("slurmctld that leads: SIGKILL", _kills(LEADER, "slurmctld")),
    "slurmdbd-killed": Fault(
        "slurmdbd that serves: SIGKILL", _kills(DATABASE, "slurmdbd"), spares_slurmctld=True
    ),
    "mariadb-killed": Fault("its MariaDB: SIGKILL", _kills(DATABASE, "mariadb"), spares_slurmctld=True),
    "leader-off": Fault(
        "the controller that leads, which has the arbitrator, too, loses its power, and has it again"
        " when the other one leads",
        lambda place: place.cluster.power_off(LEADER),
        lambda place: place.cluster.power_on(LEADER),
    ),
    "database-off": Fault(
        "the first host of the database, whose slurmdbd serves, loses its power for 30 to 40 s",
        lambda place: place.cluster.power_off(DATABASE),
        lambda place: place.cluster.power_on(DATABASE),
        lasts=(30, 40),
        users_on=NODES[0],
        spares_slurmctld=True,
    ),
    "second-database-off": Fault(
        "the second host of the database loses its power for 30 to 40 s",
        lambda place: place.cluster.power_off(SECOND_DATABASE),
        lambda place: place.cluster.power_on(SECOND_DATABASE),
        lasts=(30, 40),
        spares_slurmctld=True,
    ),
    "leader-cut": Fault(
        "no network between the leading controller and all others for 40 to 50 s; it reaches the state",
        lambda place: _cut(place, LEADER, "-A"),
        lambda place: _cut(place, LEADER, "-D"),
        lasts=(40, 50),
    ),
    "standby-cut": Fault(
        "no network between the controller that stands by and all others for 40 to 50 s",
        lambda place: _cut(place, STANDBY, "-A"),
        lambda place: _cut(place, STANDBY, "-D"),
        lasts=(40, 50),
        spares_slurmctld=True,
    ),
    "leader-hung": Fault(
        "slurmctld that leads: SIGSTOP, and SIGCONT some seconds after the other one leads",
        _signals("STOP"),
        _signals("CONT"),
        is_until_led=True,
    ),
    "disk-full": Fault(
        "/var/log, /var/spool and /var/tmp of the controller that leads are full for 30 to 40 s",
        _fill_disk,
        _empty_disk,
        lasts=(30, 40),
        spares_slurmctld=True,
    ),
    "state-full": Fault(
        "the file system of the state is full for 30 to 40 s",
        lambda place: place.on(LEADER, f"! dd if=/dev/zero of={_FILL} bs=64k status=none 2>/dev/null"),
        lambda place: place.on(LEADER, f"rm {_FILL}"),
        lasts=(30, 40),
        spares_slurmctld=True,
    ),
    "state-hung": Fault(
        "the file system of the state takes no write on any host for 40 to 50 s (fsfreeze)",
        lambda place: freeze(place.cluster.name),
        lambda place: thaw(place.cluster.name),
        lasts=(40, 50),
        spares_slurmctld=True,
    ),
    "all-off": Fault(
        "all hosts lose their power, and have it again in a random order",
        lambda place: place.cluster.power_off(*place.shuffled(HOSTS)),
        _all_on,
        lasts=(0, 10),
        hurts_nodes=True,
    ),
    "controllers-late": Fault(
        f"all hosts lose their power; the controllers have it again {_LATER} s after the others",
        lambda place: place.cluster.power_off(*place.shuffled(HOSTS)),
        _controllers_late,
        lasts=(0, 10),
        hurts_nodes=True,
    ),
}


def turns(seed: int, keys: Sequence[str], times: int) -> Iterator[tuple[int, str]]:
    """Every fault once in each turn, in an order that chance decides.

    Those that spare slurmctld come last. Meanwhile it learns what became of the jobs of the others.
    """
    for number in range(times):
        order = chance_of(seed, "order", number).sample(keys, len(keys))
        yield from ((number, key) for key in sorted(order, key=lambda key: FAULTS[key].spares_slurmctld))


SHORT = ("mariadb-killed", "slurmctld-killed", "leader-hung", "leader-off", "all-off")
"""Those that tell most, for the short form; after the last Slurm asks all nodes what runs there."""
LEAD_COMES_BACK = ("leader-hung", "leader-off")
"""Those after which the first controller takes the lead back, while the other one still writes."""
