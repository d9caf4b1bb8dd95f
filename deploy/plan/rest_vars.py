"""What Slurm's daemons and the REST API must know of the whole site."""

from typing import Any

from deploy.plan.registry_vars import certified_names
from deploy.site.inventory import REST, Host, Site

Variables = dict[str, Any]

KEY_FILE = "{{ '/etc/slurm/jwt_hs256.key' if slurm_tokens_key | default(true) else '' }}"
"""Where the role slurm_tokens places the key of tokens.

It mentions the key, so that phases whose daemons read it have work when it is another.
"""

_KEY_CHANGES = "{{ ansible_check_mode and __slurm_tokens_placed | default({}) is changed }}"
"""Whether the role slurm_tokens would place another key: a preview leaves the file as old as it was."""


def rest_variables(site: Site, host: Host) -> Variables:
    """Of a host with the REST API; none elsewhere."""
    return {"slurm_rest_names": certified_names(host)} if host in site.group(REST) else {}


def tokens_of(site: Site, role: str) -> Variables:
    """What a daemon's role is told of the key of tokens: of none where nobody takes tokens."""
    if not site.group(REST):
        return {f"{role}_tokens_key_file": ""}
    return {f"{role}_tokens_key_file": KEY_FILE, f"{role}_tokens_key_changes": _KEY_CHANGES}
