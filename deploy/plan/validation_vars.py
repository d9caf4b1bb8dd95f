"""What `deploy validate` runs its jobs as and in: an account, a QOS and a partition named after its user."""

from collections.abc import Mapping
from typing import Any

from deploy.site.inventory import Site

_MINUTES = "00:10:00"
"""No job of a validation runs longer, whatever becomes of the one who started it."""


def validation_user(site: Site) -> str | None:
    """The name of the user; None where the site wants none."""
    declared = site.controller.value("users_validation") if site.controllers else None
    return str(declared["name"]) if isinstance(declared, Mapping) and declared.get("name") else None


def validation_accounting(site: Site) -> dict[str, Any]:
    """What the role slurm_accounts makes for it. A QOS of its own keeps the limits of users' out of it."""
    name = validation_user(site)
    if name is None:
        return {}
    return {
        "slurm_accounts_added_qos": [{"name": name, "description": "deploy validate"}],
        "slurm_accounts_added_accounts": [{"name": name, "description": "deploy validate", "qos": [name]}],
        "slurm_accounts_added_users": [
            {"name": name, "accounts": [name], "qos": [name], "default_qos": name}
        ],
    }


def validation_partitions(site: Site) -> list[dict[str, Any]]:
    """The partition: all nodes, open to that account alone, not listed, and behind all others.

    An account that nobody else uses has the best share of all; a lower tier puts it behind nevertheless, and
    what waits there keeps no node from others. Nor do they end what runs there, where sites preempt.
    """
    name = validation_user(site)
    if name is None:
        return []
    return [
        {
            "name": name,
            "allow_accounts": [name],
            "max_time": _MINUTES,
            "priority_job_factor": 0,
            "priority_tier": 0,
            **({"preempt_mode": "OFF"} if site.controller.value("slurmctld_preemption") else {}),
            "parameters": {"Hidden": "YES"},
        }
    ]
