"""The secrets that hosts are compared with before a run replaces them, and what it needs to replace them."""

from collections.abc import Collection, Mapping
from typing import Any

from deploy.plan.catalog import PHASES
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site
from deploy.site.schema import options
from deploy.site.secrets import OF_NO_HOST, secret_names

Variables = dict[str, Any]


def known_secrets(
    site: Site, contract: Mapping[str, Hardware], current: Mapping[str, Collection[str]]
) -> dict[str, Variables]:
    """By host the secrets that it may have, as templates: what they are is in no file but the site's own.

    ``current`` are by host the phases that were recorded for the site as it is now: what differs there was
    changed on the host, and is put right.
    """
    wanted: dict[str, dict[str, str]] = {host.name: {} for host in site.cluster}
    for name in (name for name in secret_names() if name not in OF_NO_HOST):
        role = options()[name].role
        for phase in (phase for phase in PHASES if role in phase.roles):
            for host in phase.members(site, contract):
                if phase.name not in current.get(host.name, ()):
                    wanted[host.name][name] = f"{{{{ {name} | default('') }}}}"
    return {name: {"host_check_secrets": secrets} for name, secrets in wanted.items()}


def new_secrets(site: Site) -> dict[str, Variables]:
    """By host what it takes to replace the secrets that are there.

    Hosts that change keys refuse each other's messages for a moment. No job is started in it while slurmctld
    is stopped, and what nodes have to say they repeat until it is back.
    """
    return {host.name: {"munge_paused_services": ["slurmctld"]} for host in site.controllers}
