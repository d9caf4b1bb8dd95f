"""What hosts are: reachable, with their services, hardware and clock; what they see of each other."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median_low

from deploy.errors import Finding, Severity
from deploy.judge.node_status import Reach
from deploy.judge.site_status import JudgedHost
from deploy.site.addresses import is_ip
from deploy.site.storage import mount_paths
from deploy.validate.context import Context, blamed, each_host
from deploy.validate.outliers import spread_limit
from deploy.validate.questions import closed_nodes
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed

_PERCENT = 100
_BESIDE_OTHERS_PERCENT = 30
"""Jobs of users on the same node take some of its speed."""


def reachable(context: Context) -> Iterator[Result]:
    """Every host answers over ssh, with sudo and Python."""
    for host in context.status.hosts:
        status = host.status
        if status.reach is Reach.NOT_ASKED:
            continue
        if status.reach is Reach.ANSWERED:
            yield passed("answers", status.name)
        else:
            hint = next(
                (f.hint for f in host.findings), f"deploy check {context.inventory} --limit {status.name}"
            )
            yield failed(status.trouble or "gave no answer", status.name, hint=hint)


def services(context: Context) -> Iterator[Result]:
    """The daemons of every host run."""
    for host in context.status.hosts:
        absent = [service.name for service in host.down if not service.is_installed]
        wrong = _errors(host, "service-down", "slurm-silent", "never-converged")
        if wrong:
            said = wrong[0].message if not absent else f"not installed: {', '.join(absent)}"
            yield failed(said, host.status.name, hint=wrong[0].hint)
        elif host.status.reach is Reach.ANSWERED:
            yield passed("all run", host.status.name)


def clock(context: Context) -> Iterator[Result]:
    """The clocks agree."""
    zones = {name: str(answer["zone"]) for name, answer in context.surroundings.items()}
    usual = Counter(zones.values()).most_common(1)[0][0] if zones else ""
    for host in context.status.hosts:
        zone = zones.get(host.status.name, usual)
        if wrong := _errors(host, "clock-off"):
            yield failed(wrong[0].message, host.status.name, hint=wrong[0].hint)
        elif zone != usual:
            said = f"it shows the time of another zone: UTC{zone}, on most hosts UTC{usual}"
            yield failed(
                said, host.status.name, hint=f"timedatectl set-timezone ZONE   (on {host.status.name})"
            )
        elif _errors(host, "never-converged"):
            yield not_measured("the host is not set up yet", host.status.name)
        elif host.status.reach is Reach.ANSWERED:
            yield passed("agrees", host.status.name)


def _errors(host: JudgedHost, *references: str) -> list[Finding]:
    """Findings that `deploy status` has, too."""
    return [f for f in host.findings if f.reference in references and f.severity is Severity.ERROR]


def hardware(context: Context) -> Iterator[Result]:
    """No node has less than its contract."""
    for host in context.status.hosts:
        if host.status.shortfalls:
            text = "; ".join(host.status.shortfalls)
            hint = next((f.hint for f in host.findings if f.reference == "hardware-below-contract"), "")
            yield failed(text, host.status.name, expected="the hardware contract", hint=hint)
        elif host.status.shortfalls is not None:
            yield passed("has what its contract says", host.status.name)
        elif host.is_node and host.status.reach is Reach.ANSWERED:
            yield not_measured("its contract is not known yet: nobody asked it what it has", host.status.name)


def names(context: Context) -> Iterator[Result]:
    """Every host knows every other's address by name."""
    expected = {h.name: h.cluster_address for h in context.site.cluster if is_ip(h.cluster_address)}
    wrong: dict[str, str] = {}
    for host, look in context.answers.looks.items():
        said = [
            f"{name} is {', '.join(told) or 'not known'} here, not {expected[name]}"
            for name, told in look["addresses"].items()
            if expected[name] not in told and name != host
        ]
        if said:
            wrong[host] = "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")  # noqa: PLR2004
    most = max((len(look["addresses"]) for look in context.answers.looks.values()), default=0)
    hint = f"deploy cluster {context.inventory} --limit {{host}}   (or fix DNS and /etc/hosts there)"
    yield from each_host(list(context.answers.looks), wrong, f"knows {most} hosts", hint)


def ways(context: Context) -> Iterator[Result]:
    """Slurm's daemons can be reached from where that is needed."""
    failures: set[tuple[str, str]] = set()
    said: defaultdict[str, list[str]] = defaultdict(list)
    asked = [host for host in context.slurm_hosts if host in context.answers.looks]
    for host in asked:
        for peer, why in context.answers.looks[host]["refusals"].items():
            pair = host, peer.rpartition(":")[0]
            failures.add(pair)
            for end in set(pair):
                said[end].append(f"{peer} from {host}: {why}")
    guilty = [host for host, _ in blamed(failures)]
    wrong = {host: "no connection to " + "; ".join(said[host][:3]) for host in guilty}
    hint = "nft list ruleset; systemctl status slurmd slurmctld   (on {host})"
    yield from each_host(list(dict.fromkeys([*asked, *guilty])), wrong, "reaches its peers' daemons", hint)


def mounts(context: Context) -> Iterator[Result]:
    """What should be mounted is."""
    has_any = False
    for host in context.site.cluster:
        paths = mount_paths(context.site, host)
        if not paths or host.name not in context.answers.looks:
            continue
        has_any = True
        table = context.answers.looks[host.name]["mounted"]
        missing = [path for path in paths if not table.get(path)]
        if missing:
            hint = f"mount {missing[0]}   (on {host.name})"
            yield failed(f"not mounted: {', '.join(missing)}", host.name, hint=hint)
        else:
            yield passed(f"{len(paths)} mounted", host.name)
    if not has_any:
        yield not_applicable("the site mounts no file system from elsewhere")


def space(context: Context) -> Iterator[Result]:
    """Users can write to /tmp, /var and their homes."""
    limit = context.thresholds.free_percent
    wrong = {}
    for host, look in context.answers.looks.items():
        said = []
        for path, room in look["space"].items():
            if room is None:
                said.append(f"{path} does not answer")
                continue
            bytes_free, bytes_all, files_free, files_all = room
            for free, total, what in ((bytes_free, bytes_all, "space"), (files_free, files_all, "inodes")):
                percent = _PERCENT * free / total if total else _PERCENT
                if percent < limit:
                    said.append(f"{path} has {percent:.1f} % of its {what} free")
        if said:
            wrong[host] = "; ".join(said)
    hint = "du -xh --max-depth=2 /tmp /var | sort -h | tail   (on {host})"
    yield from each_host(list(context.answers.looks), wrong, f"more than {limit:.0f} % free", hint)


def credentials(context: Context) -> Iterator[Result]:
    """What one host signs, by munge or by Slurm itself, every other can decode."""
    by_slurm = str(context.site.controller.value("slurm_auth_type")) == "auth/slurm"
    signer, unit = ("Slurm", "slurmd sackd slurmctld") if by_slurm else ("munge", "munge")
    makers = [
        h for h in context.slurm_hosts if (context.answers.looks.get(h) or {}).get("credential") is not None
    ]
    failures: dict[tuple[str, str], str] = {}
    for decoder, answer in context.answers.credentials.items():
        for maker, why in answer["undecoded"].items():
            failures[decoder, maker] = why
    wrong = {}
    for host, ends in blamed(failures):
        why = failures.get((host, ends[0])) or failures[ends[0], host]
        others = ", ".join(ends[:3]) + (" …" if len(ends) > 3 else "")  # noqa: PLR2004
        wrong[host] = f"{signer} of {host} and of {others} do not understand each other: {why}"
    hint = f"deploy cluster {context.inventory} --limit {{host}}; systemctl status {unit}   (on {{host}})"
    yield from each_host(makers, wrong, f"{len(makers)} hosts decode it", hint)


def admin_logins(context: Context) -> Iterator[Result]:
    """Admins log in on a compute node without a job there."""
    closed = [node.name for node in closed_nodes(context.site, context.contract)]
    if not closed:
        yield not_applicable("no compute node is closed to logins")
    for node in closed:
        answer = context.answers.admins.get(node)
        admins = dict(answer["admins"]) if answer else {}
        refused = [f"{name} would be refused: {why}" for name, why in admins.items() if why]
        if answer is None:
            yield not_measured("PAM could not be asked there", node)
        elif refused:
            hint = (
                f"deploy cluster {context.inventory} --limit {node} --full; cat /etc/pam.d/sshd   (on {node})"
            )
            yield failed("; ".join(refused), node, hint=hint)
        elif admins:
            yield passed(f"PAM lets in: {', '.join(admins)}", node)
        else:
            yield not_measured("no account there belongs to an admin", node)


def speed(context: Context) -> Iterator[Result]:
    """A node works as fast as those of its type."""
    kinds: dict[str, dict[str, float]] = {}
    for node, run in context.runs("probes").items():
        if run["answers"]:
            kinds.setdefault(context.type_of(node), {})[node] = float(run["answers"][0]["work_seconds"])
    for found in kinds.values():
        typical = median_low(found.values())
        limit = typical * context.thresholds.slow_node_ratio
        spread = spread_limit(found, context.thresholds.outlier_deviations, _BESIDE_OTHERS_PERCENT)
        if spread is not None:
            limit = min(limit, typical + spread)
        for node, seconds in found.items():
            said = f"{seconds * 1000:.0f} ms for a piece of work, typical {typical * 1000:.0f} ms"
            more: dict[str, float | str] = {
                "value": seconds,
                "unit": "s",
                "expected": f"<= {limit * 1000:.0f} ms",
            }
            if seconds > limit:
                hint = f"look for throttling and foreign load: top; dmesg --level=warn   (on {node})"
                yield failed(said, node, hint=hint, **more)
            else:
                yield passed(said, node, **more)
    if not kinds:
        yield not_measured("no job ran on a node")
