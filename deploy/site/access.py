"""Who may come in: what contradicts itself between logins, Slurm and the firewall."""

from collections.abc import Iterator
from datetime import UTC, datetime

from deploy.errors import Finding, Severity
from deploy.site.addresses import is_ip
from deploy.site.inventory import CACHE, LOGS, NODE, Host, Site
from deploy.site.origin import host_origin
from deploy.site.public_keys import is_public_key, restriction_faults
from deploy.site.slurm_parameters import slurm_parameter

_FIREWALL = "firewall_admin_networks"
_NETWORKS = "firewall_cluster_networks"
_SSHD = "ssh_server_parameters"
_METHODS, _KEYBOARD = "AuthenticationMethods", "keyboard-interactive"
_SENDERS = "log_server_senders"
_SERVED = {CACHE: "package_cache_clients", LOGS: _SENDERS}
"""Groups whose services are for the cluster's networks, and the variable with these."""
_SHOWN = 5


def check_access(site: Site) -> Iterator[Finding]:
    """All of it."""
    yield from _sessions_without_jobs(site)
    yield from _asked_by_keyboard_alone(site)
    yield from _peers_without_addresses(site)
    yield from _open_services(site)
    yield from _firewall_that_is_off(site)
    yield from _proxies_with_passwords(site)
    yield from _tls_on_one_side(site)
    yield from _senders_without_addresses(site)
    yield from dict.fromkeys(_restricted_keys(site, datetime.now(UTC)))


def _restricted_keys(site: Site, now: datetime) -> Iterator[Finding]:
    """Keys whose restrictions let nobody in."""
    for host in site.cluster:
        accounts = host.variables.get("users_accounts")
        for account in accounts if isinstance(accounts, list) else ():
            keys = account.get("ssh_keys") if isinstance(account, dict) else ()
            for number, key in enumerate(keys or ()):
                # What is no key at all is refused as a value.
                faults = restriction_faults(key, now) if is_public_key(str(key)) else ()
                for fault, is_refused in faults:
                    yield Finding(
                        host.where("users_accounts"),
                        "key-restriction",
                        f"{account.get('name')}: ssh_keys[{number}]: {fault}",
                        'write it as sshd(8) has it, as in from="192.0.2.0/24",expiry-time="20271231" '
                        "ssh-ed25519 AAAA…, or remove the key",
                        Severity.ERROR if is_refused else Severity.WARNING,
                    )


def _sessions_without_jobs(site: Site) -> Iterator[Finding]:
    """Slurm makes the part of a job that sessions belong to only when it is told to."""
    restricted = [n for n in site.nodes if n.variables.get("job_ssh_admits", "users_with_jobs") != "everyone"]
    for master in site.controllers:
        if restricted and slurm_parameter(master, "PrologFlags") == "":
            yield Finding(
                master.where("slurmctld_parameters"),
                "prolog-without-contain",
                "PrologFlags is taken away: without Contain nobody could log in to a compute node by ssh",
                "leave it out (what is written there is added to Contain), or set job_ssh_admits: everyone",
            )


def is_entered_by_job(site: Site, host: Host) -> bool:
    """Whether users come to a host only with a job of theirs there."""
    is_open = host.variables.get("job_ssh_admits") == "everyone"
    return NODE in host.groups and host not in site.logins and not is_open


def _asked_by_keyboard_alone(site: Site) -> Iterator[Finding]:
    """Where users come by their jobs, sshd takes no keyboard-interactive from them."""
    for host in site.nodes:
        said = host.value(_SSHD)
        named = said.items() if isinstance(said, dict) and is_entered_by_job(site, host) else ()
        lists = " ".join(str(value) for name, value in named if str(name).lower() == _METHODS.lower()).split()
        if lists and all(_KEYBOARD in methods for methods in lists):
            yield Finding(
                host.where(_SSHD),
                "keyboard-interactive",
                f"{_METHODS} asks for {_KEYBOARD} in any case; on {host.name}, which users enter by their "
                "jobs, sshd takes that from admins alone: a session that begins so is no part of a job",
                "give users a list without it for compute nodes, such as hostbased or publickey, or set "
                "job_ssh_admits: everyone there",
            )
            return


def _peers_without_addresses(site: Site) -> Iterator[Finding]:
    """A firewall knows hosts by their addresses; one that it does not know is cut off from the cluster."""
    walled = [
        host for host in site.cluster if _FIREWALL in host.variables and not host.variables.get(_NETWORKS)
    ]
    nameless = _without_addresses(site)
    if walled and nameless:
        yield Finding(
            walled[0].where(_FIREWALL),
            "firewall-without-addresses",
            f"the inventory has no address of {_first(nameless)}, so the firewall would cut it off from the "
            "cluster",
            "write addresses into ansible_host or hosts_file_address, or the cluster's networks into "
            f"{_NETWORKS}",
        )


def _without_addresses(site: Site) -> list[str]:
    return [host.name for host in site.cluster if not is_ip(host.cluster_address)]


def _first(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def _open_services(site: Site) -> Iterator[Finding]:
    """What is for the cluster's networks is for everybody where the inventory has none."""
    if any(is_ip(host.cluster_address) for host in site.cluster):
        return
    for group, networks in _SERVED.items():
        for host in site.group(group):
            # A firewall lets none but the cluster's networks come to them.
            if networks not in host.variables and _FIREWALL not in host.variables:
                yield Finding(
                    host.where(networks),
                    "services-without-addresses",
                    f"the inventory has no address of any host, so {networks} would be empty and the service "
                    "there open to everybody",
                    "write addresses into ansible_host or hosts_file_address, or the networks into "
                    f"{networks}",
                )


def _firewall_that_is_off(site: Site) -> Iterator[Finding]:
    for host in site.cluster:
        if _FIREWALL not in host.variables and "firewall_open" in host.variables:
            yield Finding(
                host.where("firewall_open"),
                "firewall-off",
                f"firewall_open is set for {host.name}, which has no firewall",
                f"name those who may reach ssh there: {_FIREWALL}: [ADDRESS, …]",
                Severity.WARNING,
            )
            return


def _proxies_with_passwords(site: Site) -> Iterator[Finding]:
    """Everybody reads the environment, so a password there would be no secret."""
    for name in ("proxy_http", "proxy_https"):
        for host in site.cluster:
            if "@" in str(host.variables.get(name) or ""):
                yield Finding(
                    host.where(name),
                    "proxy-with-password",
                    f"{name} has a user and a password in it: only apt is told; users, and the files "
                    "that deploy fetches on hosts, go out without it",
                    "use a proxy that knows the cluster by its addresses, or have files from a "
                    "bootstrap_mirror that hosts reach without one",
                    Severity.WARNING,
                )
                break


def _senders_without_addresses(site: Site) -> Iterator[Finding]:
    """The server takes logs from the networks of addresses; who sends from elsewhere is not told."""
    nameless = _without_addresses(site)
    for keeper in site.group(LOGS)[:1]:
        if _SENDERS not in keeper.variables and 0 < len(nameless) < len(site.cluster):
            yield Finding(
                host_origin(site.inventory, keeper.name),
                "logs-without-addresses",
                f"the inventory has no address of {_first(nameless)}, so {keeper.name} might take no logs "
                "from there, and nobody would be told",
                "write addresses into ansible_host or hosts_file_address, or all networks whose hosts send "
                f"into {_SENDERS} of {keeper.name}",
                Severity.WARNING,
            )


def _tls_on_one_side(site: Site) -> Iterator[Finding]:
    """Logs with TLS need a certificate and its key at one end and its authority at the other."""
    for keeper in site.group(LOGS)[:1]:
        served = bool(keeper.variables.get("log_server_certificate"))
        if served != bool(keeper.variables.get("log_server_key")):
            has, lacks = ("certificate", "key") if served else ("key", "certificate")
            yield _half_of_tls(
                keeper.where(f"log_server_{has}"),
                f"{keeper.name} has a log_server_{has} and no log_server_{lacks}: it could not speak TLS",
            )
            return
        other = next(
            (host for host in site.cluster if bool(host.variables.get("log_client_ca")) != served), None
        )
        if other is not None:
            what = "has no log_client_ca" if served else "has a log_client_ca, and the server no certificate"
            yield _half_of_tls(
                keeper.where("log_server_certificate") if served else other.where("log_client_ca"),
                f"logs go to {keeper.name}; {other.name} {what}: its logs would not arrive",
            )


def _half_of_tls(where: str, what: str) -> Finding:
    hint = "set log_server_certificate and log_server_key for the server, log_client_ca for all hosts"
    return Finding(where, "log-tls-on-one-side", what, hint)
