"""What users meet on a host: accounts, a login shell, directories for all, its name, packets that arrive."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from deploy.plan.expectations import expected_hostname
from deploy.validate.context import Context, blamed, each_host
from deploy.validate.declared import declared_groups, declared_users
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed

Answer = Mapping[str, Any]

_SHOWN = 3
_FREE_FOR_ALL = 0o1777
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_PERCENT, _MILLISECONDS = 100, 1000
_OFTEN = 1.0


def accounts(context: Context) -> Iterator[Result]:
    """Users and groups are the same everywhere."""
    answers = context.surroundings
    users = _usual(answers, "users", lambda user: user["uid"])
    primary = _usual(answers, "users", lambda user: user["gid"])
    groups = _usual(answers, "groups", lambda gid: gid)
    wrong = {}
    for name, answer in answers.items():
        host = context.site.hosts[name]
        promised = declared_users(host)
        expected = {**users, **promised}
        said = [f"{user} is not known" for user in promised if answer["users"].get(user) is None]
        for user, told in answer["users"].items():
            if told is None:
                continue
            if told["uid"] != expected[user]:
                said.append(f"{user} has the uid {told['uid']} instead of {expected[user]}")
            elif told["gid"] != primary[user]:
                said.append(f"{user} has the gid {told['gid']} instead of {primary[user]}")
            if user in promised and not told["has_shell"]:
                said.append(f"{user}'s login shell {told['shell']} is not there")
        right = {**groups, **declared_groups(host)}
        said += [
            f"the group {group} has the gid {gid} instead of {right[group]}"
            for group, gid in answer["groups"].items()
            if gid is not None and gid != right[group]
        ]
        if said:
            wrong[name] = _in_short(said)
    hint = f"getent passwd; deploy cluster {context.inventory} --limit {{host}}   (getent on {{host}})"
    yield from each_host(list(answers), wrong, f"{len(users)} users, {len(groups)} groups", hint)


def _usual(answers: Mapping[str, Answer], what: str, of: Callable[[Any], int]) -> dict[str, int]:
    """By name, the number that most hosts have for it; of equals, that of the first host."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for answer in answers.values():
        for name, told in answer[what].items():
            if told is not None:
                counts[name][of(told)] += 1
    return {name: found.most_common(1)[0][0] for name, found in counts.items()}


def login_shell(context: Context) -> Iterator[Result]:
    """A user who logs in comes to a prompt."""
    answers = context.surroundings
    umasks = Counter(answer["login_shell"]["umask"] for answer in answers.values() if answer["login_shell"])
    umasks.pop("", None)
    usual = umasks.most_common(1)[0][0] if umasks else ""
    for name, answer in answers.items():
        shell = answer["login_shell"]
        if answer["closed"]:
            hint = f"cat {answer['closed']}; rm {answer['closed']}   (on {name})"
            yield failed(f"{answer['closed']} is there: no user may log in", name, hint=hint)
        elif shell is None:
            yield not_measured("there is no user to try it as", name)
        elif shell["why"]:
            hint = f"ls -l /etc/profile.d; bash -lx -c true   (on {name})"
            yield failed(shell["why"], name, hint=hint)
        elif shell["umask"] != usual:
            hint = f"grep -r umask /etc/profile /etc/profile.d /etc/login.defs /etc/pam.d   (on {name})"
            yield failed(f"the umask is {shell['umask']}, on most hosts {usual}", name, hint=hint)
        else:
            yield passed(f"runs a command, with umask {usual}", name)


def shared_directories(context: Context) -> Iterator[Result]:
    """The directories for all take everybody's files, and nobody may remove another's."""
    wrong = {}
    for name, answer in context.surroundings.items():
        said = [
            f"{path} {why}" for path, told in answer["directories"].items() for why in _misfits(path, told)
        ]
        if said:
            wrong[name] = _in_short(said)
    hint = "ls -ld /tmp /var/tmp /dev/shm; findmnt   (on {host}); chmod 1777 DIRECTORY"
    right = "mode 1777, writable"
    yield from each_host(list(context.surroundings), wrong, right, hint)


def _misfits(path: str, told: Answer | None) -> Iterator[str]:
    if told is None:
        yield "is no directory"
        return
    if told["mode"] & _FREE_FOR_ALL != _FREE_FOR_ALL:
        yield f"has the mode {told['mode']:04o} instead of {_FREE_FOR_ALL:04o}"
    if told["uid"] != 0:
        yield f"belongs to the uid {told['uid']} instead of root"
    if told["is_read_only"]:
        yield "is mounted read-only"
    if path == "/dev/shm" and told["mounted"] not in _IN_MEMORY:  # noqa: S108 - it was looked at
        yield "is no file system in memory"


def identity(context: Context) -> Iterator[Result]:
    """Every host is who it should be."""
    hosts = context.site.hosts
    wrong = {}
    for name, answer in context.surroundings.items():
        expected = expected_hostname(context.site, hosts[name])
        short = answer["name"].partition(".")[0]
        said = [f"it calls itself {short} instead of {expected}"] if expected and short != expected else []
        own = hosts[name].cluster_address
        said += [
            f"it has {other}'s address {hosts[other].cluster_address}"
            for other in answer["addresses_of"]
            if other != name and hosts[other].cluster_address != own
        ]
        if said:
            wrong[name] = _in_short(said)
    hint = "hostnamectl; ip address   (on {host})"
    yield from each_host(list(context.surroundings), wrong, "its own name and address", hint)


def packets(context: Context) -> Iterator[Result]:
    """What hosts of Slurm send each other arrives: all of it, soon, and in one piece."""
    if len(context.slurm_hosts) == 1:
        yield not_applicable("there is one host of Slurm")
        return
    failures: set[tuple[str, str]] = set()
    said: defaultdict[str, list[str]] = defaultdict(list)
    answers = {
        name: answer for name, answer in context.answers.packets.items() if name in context.slurm_hosts
    }
    for name, answer in answers.items():
        for peer, told in answer["peers"].items():
            for why in _hindrances(context, told):
                failures.add((name, peer))
                for end in {name, peer}:
                    said[end].append(f"{why} from {name} to {peer}")
    wrong = {host: _in_short(said[host]) + _sent_again(answers.get(host)) for host, _ in blamed(failures)}
    hint = "ip -statistics link; nstat; tracepath OTHER   (on {host}, and look at its cable and switch port)"
    for name in dict.fromkeys([*answers, *wrong]):
        told = (
            [told for told in answers[name]["peers"].values() if told["seconds"]] if name in answers else []
        )
        if name in wrong:
            yield failed(wrong[name], name, hint=hint.format(host=name))
        elif told:
            slowest = max(one["seconds"] for one in told)
            lost, sent = (sum(one[key] for one in told) for key in ("lost", "sent"))
            far = f"the farthest of {len(told)} hosts is {slowest * _MILLISECONDS:.2f} ms away"
            yield passed(f"{lost} of {sent} packets lost, {far}", name, value=slowest, unit="s")
        elif answers[name]["peers"] or answers[name]["why"]:
            yield not_measured(answers[name]["why"] or "no peer answers to ICMP echo requests", name)


def _hindrances(context: Context, told: Answer) -> Iterator[str]:
    """What is wrong with a way; of one without any answer `ways` speaks: firewalls may drop such packets."""
    if told["seconds"] is None:
        return
    percent = _PERCENT * told["lost"] / told["sent"]
    if percent >= context.thresholds.lost_percent:
        yield f"{percent:.0f} % of {told['sent']} packets are lost"
    if told["seconds"] * _MILLISECONDS > context.thresholds.latency_ms:
        yield f"no packet takes less than {told['seconds'] * _MILLISECONDS:.0f} ms there and back"
    if told["blocked_bytes"]:
        yield f"packets of {told['blocked_bytes']} bytes are lost, small ones arrive: the MTU differs"


def _sent_again(answer: Answer | None) -> str:
    often = (answer or {}).get("sent_again") or 0.0
    return f" (TCP has sent {often:.1f} % again since it started)" if often >= _OFTEN else ""


def _in_short(said: Iterable[str]) -> str:
    lines = [*said]
    return "; ".join(lines[:_SHOWN]) + (f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else "")
