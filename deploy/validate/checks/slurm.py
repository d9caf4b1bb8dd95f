"""What Slurm's daemons say, against the inventory: nodes, partitions, QOS, associations, configuration."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ClusterShell.NodeSet import NodeSet

from deploy.site.energy import energy_sources
from deploy.validate import slurm_text
from deploy.validate.context import Context, each_host
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed


def controllers(context: Context) -> Iterator[Result]:
    """Every slurmctld answers."""
    answer = context.answers.told(context.controllers, "ping")
    text = str(answer["out"]) if answer else ""
    if not slurm_text.controllers(text):
        hint = f"systemctl status slurmctld; journalctl -u slurmctld -e   (on {context.controller})"
        why = context.why_silent("ping") if context.told("ping") is None else "it names no controller"
        yield failed(f"scontrol ping: {why}", context.controller, hint=hint)
        return
    up = slurm_text.controllers(text)
    for name in context.controllers:
        if up.get(name):
            yield passed("is up", name)
        else:
            hint = f"systemctl status slurmctld; journalctl -u slurmctld -e   (on {name})"
            yield failed(
                "slurmctld is down" if name in up else "Slurm does not know this controller", name, hint=hint
            )


def standby(context: Context) -> Iterator[Result]:
    """Each of several controllers gets an answer of every other's slurmctld."""
    if len(context.controllers) == 1:
        yield not_applicable("there is one controller")
        return
    for name in context.controllers:
        answer = ((context.answers.looks.get(name) or {}).get("slurm") or {}).get("ping")
        up = slurm_text.controllers(str(answer["out"])) if answer else {}
        if not up:
            yield not_measured(f"scontrol ping: {(answer or {}).get('why') or 'no answer'}", name)
            continue
        lost = [other for other in context.controllers if other != name and not up.get(other)]
        if lost:
            hint = f"scontrol ping   (on {name}); systemctl status slurmctld   (on {', '.join(lost)})"
            yield failed(f"gets no answer of {' and '.join(lost)}", name, hint=hint)
        else:
            yield passed("reaches the others", name)


def accounting_daemon(context: Context) -> Iterator[Result]:
    """Slurmdbd and its database answer."""
    if context.told("associations") is not None:
        yield passed("answers", context.controller)
    else:
        hint = f"systemctl status slurmdbd mariadb; journalctl -u slurmdbd -e   (on {context.controller})"
        yield failed(f"sacctmgr: {context.why_silent('associations')}", context.controller, hint=hint)


def registered(context: Context) -> Iterator[Result]:
    """Slurm has every node of the inventory with its CPUs, memory and typed GPUs, and no other."""
    if context.told("nodes") is None:
        yield not_measured(f"Slurm does not report its nodes: {context.why_silent('nodes')}")
        return
    again = f"deploy cluster {context.inventory}"
    for node in context.promised["slurmctld_nodes"]:
        name, record = node["name"], context.slurm_nodes.get(node["name"])
        if record is None:
            yield failed("Slurm does not know it", name, expected="slurm-node", hint=again)
            continue
        wrong = list(_less_than_promised(node["hardware"], record))
        if wrong:
            yield failed("; ".join(wrong), name, expected="the hardware contract", hint=again)
        else:
            yield passed(
                f"{record.get('CPUTot')} CPUs, {record.get('RealMemory')} MiB, {_gpus(record)}", name
            )
    known = {node.name for node in (context.whole or context.site).nodes}
    promised = {node["name"] for node in context.promised["slurmctld_nodes"]}
    for name in (node.name for node in context.site.nodes if node.name not in promised):
        yield not_measured("its contract is not known yet: nobody asked it what it has", name)
    for name in sorted(context.slurm_nodes.keys() - known):
        yield failed("Slurm has this node, the inventory has not", name, expected="slurm-node", hint=again)


def _less_than_promised(hardware: Mapping[str, Any], record: Mapping[str, str]) -> Iterator[str]:
    for key, name, unit in (("cpus", "CPUTot", "CPUs"), ("memory_mb", "RealMemory", "MiB")):
        promised = hardware.get(key)
        if promised is not None and int(record.get(name) or 0) != int(promised):
            yield f"Slurm has {record.get(name)} {unit}, the contract {promised}"
    promised_gpus: dict[str, int] = {}
    for gpu in hardware.get("gpus") or []:
        promised_gpus[str(gpu["type"])] = promised_gpus.get(str(gpu["type"]), 0) + int(gpu["count"])
    if (has := slurm_text.gpus(record.get("Gres", ""))) != promised_gpus:
        yield f"Slurm has {_in_words(has)}, the contract {_in_words(promised_gpus)}"


def _gpus(record: Mapping[str, str]) -> str:
    return _in_words(slurm_text.gpus(record.get("Gres", "")))


def _in_words(gpus: Mapping[str, int]) -> str:
    return ", ".join(f"{count} x {kind or 'gpu'}" for kind, count in sorted(gpus.items())) or "no GPUs"


def energy(context: Context) -> Iterator[Result]:
    """Slurm measures the power of every node, where the site says by what."""
    sources = ", ".join(energy_sources(context.site))
    if not sources:
        yield not_applicable("slurmctld_energy_sources is empty")
        return
    for name in (node["name"] for node in context.promised["slurmctld_nodes"]):
        record = context.slurm_nodes.get(name, {})
        watts = record.get("CurrentWatts", "")
        if watts == "n/a":
            hint = (
                f"deploy cluster {context.inventory} --limit {name} --full   (it says why); before Slurm "
                f"23.11 a new source is read when slurmd starts: systemctl restart slurmd   (on {name})"
            )
            yield failed(f"nothing is measured by {sources}: ConsumedEnergy stays empty", name, hint=hint)
        elif watts.isdigit() and int(watts):
            yield passed(f"{watts} W by {sources}", name)
        else:
            yield not_measured("Slurm has no measurement of it yet", name)


def usable(context: Context) -> Iterator[Result]:
    """Every node can take jobs."""
    for host in context.status.hosts:
        if not host.is_node or host.status.slurm is None:
            continue
        node = host.status.slurm
        if node.is_drained or node.is_down:
            found = [f for f in host.findings if f.reference in {"node-drained", "node-down"}]
            resume = f"scontrol update nodename={host.status.name} state=resume   (on {context.controller})"
            why = f"{node.word}: {node.reason}" if node.reason else node.word
            yield failed(
                found[0].message if found else why, host.status.name, hint=found[0].hint if found else resume
            )
        else:
            yield passed(node.word, host.status.name)
    if not context.slurm_nodes:
        yield not_measured(f"Slurm does not report its nodes: {context.why_silent('nodes')}")


def partitions(context: Context) -> Iterator[Result]:
    """Partitions have the nodes, limits and permissions that the inventory gives them."""
    text = context.told("partitions")
    if text is None:
        yield not_measured(f"Slurm does not report its partitions: {context.why_silent('partitions')}")
        return
    has = slurm_text.first_of(slurm_text.records(text), "PartitionName")
    again = f"deploy cluster {context.inventory}"
    for partition in [
        *context.value("slurmctld_partitions"),
        *context.promised["slurmctld_added_partitions"],
    ]:
        name = str(partition["name"])
        if name not in has:
            yield failed(f"there is no partition {name}", name, expected="slurmctld_partitions", hint=again)
            continue
        nodes = context.promised["slurmctld_partition_nodes"].get(name, {}).get("nodes", "")
        wrong = list(_other_than_promised(partition, nodes, has[name]))
        if wrong:
            yield failed("; ".join(wrong), name, expected="slurmctld_partitions", hint=again)
        else:
            yield passed(f"{has[name].get('Nodes') or 'no nodes'}, {has[name].get('MaxTime', '')}", name)


def _other_than_promised(partition: Mapping[str, Any], nodes: str, has: Mapping[str, str]) -> Iterator[str]:
    if NodeSet(_listed(has.get("Nodes", ""))) != NodeSet(nodes):
        yield f"it has the nodes {has.get('Nodes')}, not {nodes or 'none'}"
    if (has.get("Default") == "YES") != bool(partition.get("default", False)):
        yield "it is the default" if has.get("Default") == "YES" else "it is not the default"
    for key, name in (("max_time", "MaxTime"), ("default_time", "DefaultTime")):
        if key in partition and _differ(str(partition[key]), has.get(name, "")):
            yield f"{name} is {has.get(name)}, not {partition[key]}"
    yield from _other_permissions(partition, has)


def _other_permissions(partition: Mapping[str, Any], has: Mapping[str, str]) -> Iterator[str]:
    state = str(partition.get("state", "UP")).upper()
    if has.get("State", "UP").upper() != state:
        yield f"it is {has.get('State')}, not {state}"
    for key, name in (
        ("allow_accounts", "AllowAccounts"),
        ("allow_qos", "AllowQos"),
        ("allow_groups", "AllowGroups"),
    ):
        wanted = frozenset(map(str, partition.get(key) or ()))
        if {word.lower() for word in wanted} != {word.lower() for word in slurm_text.words(has.get(name))}:
            yield f"{name} is {has.get(name)}, not {','.join(sorted(wanted)) or 'ALL'}"
    if str(partition.get("qos") or "N/A").lower() != has.get("QoS", "N/A").lower():
        yield f"its QOS is {has.get('QoS')}, not {partition.get('qos') or 'none'}"
    for key, name in (("max_nodes", "MaxNodes"), ("min_nodes", "MinNodes")):
        if key in partition and str(partition[key]).upper() != has.get(name, "").upper():
            yield f"{name} is {has.get(name)}, not {partition[key]}"


def _listed(nodes: str) -> str:
    return "" if nodes in {"(null)", "N/A"} else nodes


def _differ(promised: str, has: str) -> bool:
    try:
        return slurm_text.minutes(promised) != slurm_text.minutes(has)
    except ValueError:
        return promised != has


def qos(context: Context) -> Iterator[Result]:
    """The database has every QOS that the inventory declares."""
    text = context.told("qos")
    if text is None:
        yield not_measured(f"the database does not report its QOS: {context.why_silent('qos')}")
        return
    has = {line.split("|")[0].strip().lower() for line in text.splitlines()}
    declared = [
        *context.accounted("slurm_accounts_qos"),
        *(account for account in context.accounted("slurm_accounts_accounts") if account.get("budget")),
        *context.promised.get("slurm_accounts_added_qos", []),
    ]
    again = f"deploy cluster {context.inventory} --full"
    for entry in declared:
        name = str(entry["name"]).lower()
        if name in has:
            yield passed("is there", name)
        else:
            source = "budget of slurm_accounts_accounts" if entry.get("budget") else "slurm_accounts_qos"
            yield failed(f"there is no QOS {name}", name, expected=source, hint=again)
    if not declared:
        yield not_applicable("the inventory declares no QOS")


def associations(context: Context) -> Iterator[Result]:
    """Users may charge the accounts that the inventory gives them."""
    text = context.told("associations")
    if text is None:
        yield not_measured(
            f"the database does not report its associations: {context.why_silent('associations')}"
        )
        return
    cluster = str(context.value("slurmctld_cluster_name"))
    has = {(account, user) for name, account, user in slurm_text.associations(text) if name == cluster}
    declared = [
        *context.accounted("slurm_accounts_users"),
        *_members(context.accounted("slurm_accounts_accounts")),
        *context.promised.get("slurm_accounts_added_users", []),
    ]
    again = f"deploy cluster {context.inventory} --full"
    for entry in declared:
        user = str(entry["name"]).lower()
        missing = [a for a in map(str, entry.get("accounts") or []) if (a.lower(), user) not in has]
        if missing:
            yield failed(
                f"{user} may not charge {', '.join(missing)}",
                user,
                expected="slurm_accounts_users",
                hint=again,
            )
        else:
            yield passed(f"may charge {', '.join(map(str, entry.get('accounts') or []))}", user)
    if not declared:
        yield not_applicable("the inventory declares no users of Slurm")


def _members(accounts: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Members and managers of accounts, as users that are declared by themselves are."""
    for account in accounts:
        for name in dict.fromkeys((*(account.get("members") or ()), *(account.get("managers") or ()))):
            yield {"name": name, "accounts": [account["name"]]}


_OF_COMMANDS = frozenset({"slurm.conf", "plugstack.conf", "topology.conf", "cli_filter.lua"})
"""What sackd gets, for Slurm's commands; slurmd gets all of them."""


def configuration(context: Context) -> Iterator[Result]:
    """Every host of Slurm has the controller's files, as far as it needs them."""
    looks = context.answers.looks
    source = next((looks[name] for name in context.controllers if name in looks), None)
    if source is None:
        yield not_measured("no controller could be looked at")
        return
    ours = source["configuration"]["hashes"]
    hint = "scontrol reconfigure   (on the controller), else systemctl restart slurmd   (on {host})"
    for host in context.configured_hosts:
        if host not in looks:
            continue
        has = looks[host]["configuration"]
        has_daemon = host in context.controllers or host in context.nodes
        needed = ours.keys() if has_daemon else ours.keys() & _OF_COMMANDS
        wrong = {
            "is not the controller's": [
                name for name, digest in has["hashes"].items() if ours.get(name) != digest
            ],
            "is not there": sorted(needed - has["hashes"].keys()),
        }
        said = [
            f"{', '.join(names)} in {has['directory']} {words}" for words, names in wrong.items() if names
        ]
        asks = {name.partition(":")[0] for name in has["server"].split(",")}
        if has["directory"] is None and asks & {*context.controllers}:
            yield passed(f"its commands fetch them from {has['server']}", host)
        elif has["directory"] is None:
            yield failed("there is no slurm.conf", host, hint=hint.format(host=host))
        elif said:
            yield failed("; ".join(said), host, hint=hint.format(host=host))
        else:
            yield passed(f"{len(has['hashes'])} files as on {context.controller}", host)


def plugins(context: Context) -> Iterator[Result]:
    """What plugstack.conf loads is on every host of Slurm; without it srun fails or ignores options."""
    looks = context.answers.looks
    seen = [host for host in context.configured_hosts if host in looks]
    asked = [host for host in seen if not looks[host]["configuration"]["server"]]
    lists = {host: [p["path"] for p in looks[host]["configuration"]["plugins"]] for host in asked}
    ours = next((lists[name] for name in context.controllers if name in lists), [])
    if not ours and not any(lists.values()) and not context.site.containers:
        yield not_applicable("no SPANK plugin is configured")
        return
    wrong = {}
    for host in asked:
        absent = [p["path"] for p in looks[host]["configuration"]["plugins"] if not p["exists"]]
        unlisted = [path for path in ours if path not in lists[host]]
        if absent:
            wrong[host] = f"plugstack.conf loads {', '.join(absent)}, which is not there"
        elif unlisted:
            wrong[host] = f"plugstack.conf does not load {', '.join(unlisted)}"
        elif not ours:
            wrong[host] = "plugstack.conf loads nothing, although the site offers containers"
    hint = f"deploy cluster {context.inventory} --limit {{host}} --full"
    yield from each_host(asked, wrong, f"{len(ours)} there", hint)
    for host in seen:
        if host not in asked:
            yield not_measured("it keeps no plugstack.conf: its commands fetch it each time", host)
