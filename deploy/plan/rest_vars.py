"""What Slurm's daemons and the REST API must know of the whole site."""

from typing import Any

from deploy.plan.registry_vars import certified_names
from deploy.site.inventory import REST, Host, Site

Variables = dict[str, Any]

KEY_FILE = "{{ '/etc/slurm/jwt_hs256.key' if slurm_tokens_key | default(true) else '' }}"
"""Where the role slurm_tokens places the key of tokens.

It mentions the key, so that phases whose daemons read it have work when it is another.
"""


def rest_variables(site: Site, host: Host) -> Variables:
    """Of a host with the REST API; none elsewhere."""
    return {"slurm_rest_names": certified_names(host)} if host in site.group(REST) else {}


def tokens_key_file(site: Site) -> str:
    """Where slurmctld and slurmdbd find the key of tokens; empty where nobody takes tokens."""
    return KEY_FILE if site.group(REST) else ""
