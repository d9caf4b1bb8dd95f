"""What the steps of ``deploy upgrade`` are told: the inventory source of playbooks/upgrade.yml."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.container_vars import PLUGIN_PACKAGE
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site

GROUPS = (
    *("build", "prepare", "plugin", "judge", "rehearse"),
    *("standby", "answers", "controllers", "rest", "hosts"),
)
"""The plays, each of which has a group ``upgrade_<name>``."""
STAGE = "/var/lib/deploy/slurm-upgrade"
"""Where a controller has the wanted release beside the installed one."""


def write_step(
    path: Path,
    site: Site,
    contract: Mapping[str, Hardware],
    group: str,
    hosts: Iterable[str],
    *,
    by_host: Mapping[str, Mapping[str, Any]],
    variables: Mapping[str, Any],
) -> None:
    """Writes the source for one step: its hosts are in the group of one play, and all others are empty.

    ``by_host`` are variables of hosts, ``variables`` those of the step.
    """
    chosen = set(hosts)
    own = {name: dict(said) for name, said in by_host.items()}
    source = generated_inventory(site, build_plan(site, contract), contract, own)
    for name in GROUPS:
        members = sorted(chosen) if name == group else ()
        source["all"]["children"][f"upgrade_{name}"] = {
            "hosts": dict.fromkeys(members),
            "vars": {"slurm_stage_directory": STAGE, **_of_plugin(site), **variables},
        }
    path.write_text(json.dumps(source, indent=1), encoding="utf-8")


def _of_plugin(site: Site) -> dict[str, Any]:
    """The plugin for containers goes with the release that it was built for, and another one comes."""
    if not site.containers:
        return {"upgrade_has_plugin": False, "slurm_stage_goes_back": False}
    return {
        "upgrade_has_plugin": True,
        "slurm_stage_goes_back": False,
        "slurm_stage_replaced": [PLUGIN_PACKAGE],
        "pyxis_staged": STAGE,
        "pyxis_wanted": str(site.controller.value("slurm_packages_version")),
    }
