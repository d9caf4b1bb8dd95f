"""Whom ``deploy replay`` asks, and what: the inventory source of playbooks/replay.yml."""

import json
from collections.abc import Mapping
from pathlib import Path

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site


def write_replay(path: Path, site: Site, contract: Mapping[str, Hardware], days: int, programs: Path) -> None:
    """The first controller is asked about so many ``days``; its programs lie in ``programs``."""
    source = generated_inventory(site, build_plan(site, contract), contract)
    source["all"]["children"]["replay"] = {
        "hosts": {site.controller.name: None},
        "vars": {
            "replay_days": days,
            "replay_programs": str(programs),
            "replay_database": str(site.database_host.value("slurmdbd_database_name")),
        },
    }
    path.write_text(json.dumps(source, indent=1), encoding="utf-8")
