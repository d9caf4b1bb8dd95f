"""What ``deploy bootstrap`` does: machines with a password become machines that deploy can work on."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.errors import DeployError, ExitCode, error
from deploy.run import host_key
from deploy.run.first_login import Passwords, Welcome, public_key, welcome
from deploy.run.host_key import HostKey
from deploy.run.settings import default_forks
from deploy.run.ssh import Login, NotByPlainSshError, Unanswered, ask, command

Confirms = Callable[[Mapping[str, str]], bool]
"""Whether the admin knows these host keys: host -> fingerprint, with the kind of key."""


@dataclass(frozen=True)
class Readied:
    """By host what was ``done``, ``failed`` with why, or was ``silent``."""

    done: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """UNREACHABLE where a host was not reached, FAILED where one is not ready."""
        if self.silent:
            return ExitCode.UNREACHABLE
        return ExitCode.FAILED if self.failed else ExitCode.OK


def bootstrap(inventory: Path, options: Options, confirms: Confirms, *, has_rule: bool) -> Readied:
    """Lets the admin's key in on all hosts, installs sudo and Python, and looks whether that is enough.

    Raises DeployError before anything changes: a site that is wrong, no key here, keys nobody confirmed.
    """
    with opened(inventory, options, needs_ansible=False) as run:
        words, failed = _commands(run, replace(options.login, asks_for_passwords=False))
        keys = _public_keys(run, words)
        silent = _known_by_now(run, words, confirms)
        passwords = Passwords(options.connection_password or "", options.become_password or "")

        def one(host: str) -> Welcome | Unanswered:
            return welcome(words[host], keys[host], passwords, has_rule=has_rule)

        reached = [host for host in words if host not in silent]
        with ThreadPoolExecutor(options.forks or default_forks(max(1, len(reached)))) as pool:
            welcomes = dict(zip(reached, pool.map(one, reached), strict=True))
        silent |= {host: came.why for host, came in welcomes.items() if isinstance(came, Unanswered)}
        came = {host: came for host, came in welcomes.items() if isinstance(came, Welcome)}
        failed |= {host: each.problem for host, each in came.items() if each.problem}
        if has_rule:
            failed |= _not_ready(run, [host for host in came if host not in failed], options)
        return Readied({host: each.did for host, each in came.items() if host not in failed}, failed, silent)


def _commands(run: Run, login: Login) -> tuple[dict[str, list[str]], dict[str, str]]:
    """How hosts are reached over ssh, and which cannot be; this machine itself needs nothing."""
    words, failed = {}, {}
    for name in [name for name in run.hosts if run.limit is None or name in run.limit]:
        host = run.site.hosts[name]
        if host.connection.get("ansible_connection") == "local":
            continue
        try:
            each = command(host, login)
            host_key.settings(each)
            words[name] = each
        except NotByPlainSshError as problem:
            failed[name] = f"plain ssh cannot reach it as the inventory says: {problem}"
    return words, failed


def _public_keys(run: Run, words: Mapping[str, list[str]]) -> dict[str, str]:
    found = {name: public_key(each, host_key.settings(each)) for name, each in words.items()}
    without = [name for name, key in found.items() if key is None]
    if without:
        raise error(
            "no-public-key",
            f"there is no key here that {', '.join(without[:5])} could let in",
            where=run.inventory,
            hint="make one: ssh-keygen -t ed25519; else --private-key FILE, with FILE.pub beside it",
        )
    return {name: key for name, key in found.items() if key is not None}


def _known_by_now(run: Run, words: Mapping[str, list[str]], confirms: Confirms) -> dict[str, str]:
    """Has the admin confirm the keys of hosts that nobody knows; why hosts showed none."""
    entries = {name: host_key.known(each) for name, each in words.items()}
    strange = [name for name, entry in entries.items() if entry.file and not entry.keys]
    with ThreadPoolExecutor(default_forks(max(1, len(strange)))) as pool:
        offers = dict(
            zip(strange, pool.map(lambda name: host_key.offered(words[name]), strange), strict=True)
        )
    keys = {name: offer[0] for name, offer in offers.items() if not isinstance(offer, Unanswered)}
    shown = {name: f"{key.fingerprint} ({key.kind})" for name, key in keys.items()}
    if keys and not confirms(shown):
        raise _not_confirmed(run, keys)
    for name, key in keys.items():
        host_key.accept(entries[name], key)
    return {name: offer.why for name, offer in offers.items() if isinstance(offer, Unanswered)}


def _not_confirmed(run: Run, keys: Mapping[str, HostKey]) -> DeployError:
    return error(
        "host-keys-not-confirmed",
        f"nobody confirmed the host keys of {', '.join(list(keys)[:5])}, so nothing was changed",
        where=run.inventory,
        hint="compare them with what ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub says at the machines' "
        "consoles, and type yes on a terminal; --accept-host-keys believes the network this once",
        exit_code=ExitCode.CHANGES_PENDING,
    )


def _not_ready(run: Run, names: list[str], options: Options) -> dict[str, str]:
    """Which hosts do not do what every other verb needs of them: a login by key, root, Python."""
    login = replace(options.login, asks_for_passwords=False)
    questions: dict[str, tuple[str, dict[str, list[str]]]] = {
        name: ("look", {"phases": []}) for name in names
    }
    answers = ask(questions, run.site.hosts, login, options.forks)
    return {
        name: f"it lets nobody become root by the key: {answer.why}"
        for name, answer in answers.items()
        if isinstance(answer, Unanswered)
    }
