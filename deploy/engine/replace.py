"""What ``deploy node replace`` does: new hardware, or a new installation, under the name of a node."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from deploy.engine.batches import UNTIL, Bad, Share, Work, in_batches
from deploy.engine.cluster import deploy_cluster
from deploy.engine.consent import Agrees
from deploy.engine.display import Display
from deploy.engine.drains import Ledger, Node, Way, reason
from deploy.engine.fit import Nodes
from deploy.engine.options import Options
from deploy.engine.proving import by_jobs
from deploy.engine.run import opened
from deploy.errors import DeployError, ExitCode, error, shown_path
from deploy.run import host_key
from deploy.run.host_key import HostKey
from deploy.run.ssh import NotByPlainSshError, Unanswered, command
from deploy.site.hardware import FILE_NAME, VARIABLE, declared, forget, read_contract
from deploy.site.inventory import Host, Site

Confirms = Callable[[str, str], bool]
"""Whether whoever types this says that a node (the first) has the host key with that fingerprint."""

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True)
class Asked:
    """What was typed: ``why``, the ``fingerprint`` if any, and who is asked where it is not.

    ``agrees`` is asked where the run of the node would lose jobs elsewhere. For ``burn_in_hours`` it is under
    load before it is released.
    """

    why: str
    way: Way
    fingerprint: str | None
    confirms: Confirms
    agrees: Agrees
    burn_in_hours: float = 0.0


def replace_node(
    inventory: Path,
    node: str,
    asked: Asked,
    options: Options,
    *,
    display: Display,
    say: Callable[[str], None],
) -> Node:
    """The node, in service unless others hold it. With a DeployError it stays drained, or as it was."""
    if asked.fingerprint is not None and not _FINGERPRINT.fullmatch(asked.fingerprint):
        raise error(
            "invalid-option",
            f"{asked.fingerprint!r} is no fingerprint of a host key",
            where="--fingerprint",
            hint="SHA256:..., as ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub shows it at its console",
        )
    with opened(inventory, options, needs_ansible=False) as run:
        site = run.site
        ledger = Ledger(site, options)
        nodes = Nodes(ledger, say)
        host = nodes.known([node], "replace")[node]
        why = reason(f"replace: {asked.why}")

        def act(_: tuple[str, ...]) -> Bad:
            _accept(site, host, asked, options)
            _read_anew(site, host, say)
            summary = deploy_cluster(inventory, replace(options, limit=node), display, asked.agrees, say)
            is_good = summary.exit_code is ExitCode.OK
            return {} if is_good else {node: "it did not converge: see deploy report"}

        def check(names: tuple[str, ...]) -> Bad:
            bad = nodes.fit(names, {})
            left = [name for name in names if name not in bad]
            if not left:
                return bad
            return bad | by_jobs(run, ledger, left, why, say, burn_in_hours=asked.burn_in_hours)

        load = ("--burn-in", f"{asked.burn_in_hours:g}") if asked.burn_in_hours else ()
        more = ("--reason", asked.why, *load, *asked.way.options)
        work = Work(
            "replace",
            why,
            act,
            check,
            lambda rest: f"deploy node replace {shown_path(inventory)} {shlex.join([rest, *more])}",
            asked.way,
            until=lambda _: f"{UNTIL}, and so do its jobs of deploy validate",
        )
        (came,) = in_batches(ledger, [node], Share(1), work, say)
        return came


def refuse_rename(inventory: Path, node: str, new: str) -> DeployError:
    """Why no node is renamed, and what to do instead."""
    site = shown_path(inventory)
    return error(
        "node-not-renamed",
        f"Slurm knows jobs, accounting, reservations and drains by a node's name: {new} would be another "
        f"node whose history is not that of {node}, and what runs on {node} would be lost",
        where=node,
        hint=f"deploy node remove {site} {node} --wait, write {new} in its place in the inventory, then: "
        f"deploy cluster {site}",
    )


def _accept(site: Site, host: Host, asked: Asked, options: Options) -> None:
    """Takes the host key that the machine has now, when it is the one that was typed or confirmed.

    Raises DeployError ``host-key-not-accepted``, and then the known key is as it was.
    """
    try:
        words = command(host, options.login)
        entry = host_key.known(words)
    except NotByPlainSshError as problem:
        raise _not_accepted(site, host, f"its host key cannot be looked at by plain ssh: {problem}") from None
    keys = host_key.offered(words)
    if isinstance(keys, Unanswered):
        raise _not_accepted(site, host, f"it does not answer: {keys.why}", ExitCode.UNREACHABLE)
    if entry.keys & {*keys}:
        return
    key = _chosen(site, host, keys, asked)
    host_key.accept(entry, key)


def _chosen(site: Site, host: Host, keys: tuple[HostKey, ...], asked: Asked) -> HostKey:
    shown = ", ".join(f"{key.fingerprint} ({key.kind})" for key in keys)
    if asked.fingerprint is not None:
        found = next((key for key in keys if key.fingerprint == asked.fingerprint), None)
        if found is None:
            message = f"it has other host keys than {asked.fingerprint}: {shown}"
            raise _not_accepted(site, host, message)
        return found
    if not asked.confirms(host.name, keys[0].fingerprint):
        raise _not_accepted(site, host, f"nobody confirmed its new host key: {shown}")
    return keys[0]


def _not_accepted(site: Site, host: Host, message: str, exit_code: ExitCode = ExitCode.FAILED) -> DeployError:
    return error(
        "host-key-not-accepted",
        message,
        where=host.name,
        hint="read it at the machine's console (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then: "
        f"deploy node replace {shown_path(site.inventory)} {host.name} --fingerprint SHA256:...",
        exit_code=exit_code,
    )


def _read_anew(site: Site, host: Host, say: Callable[[str], None]) -> None:
    """Takes a node out of the hardware contract, so that the run that follows reads what the machine has."""
    if declared(host):
        say(f"{host.where(VARIABLE)}: {VARIABLE} says what {host.name} has, so that is not read anew")
    if host.name in read_contract(site):
        forget(site, host.name)
        say(f"{FILE_NAME}: the hardware of {host.name} is read anew")
