"""What was rehearsed of the example sites is nearly all that their users type."""

import json
from typing import Any

import pytest
import yaml

from tests.contract.content import ROOT

SITES = sorted(path.parent.name for path in ROOT.glob("inventory/sites/*/user-commands.yml"))
MOST_LEFT_OUT = 12
"""Over all sites; each has to say why no rehearsal could have it."""


def _declared(site: str) -> dict[str, dict[str, Any]]:
    text = (ROOT / f"inventory/sites/{site}/user-commands.yml").read_text(encoding="utf-8")
    return {command["id"]: command for command in yaml.safe_load(text)["commands"]}


def _rehearsed(site: str) -> dict[str, dict[str, Any]]:
    text = (ROOT / f"docs/rehearsals/{site}.json").read_text(encoding="utf-8")
    return {command["id"]: command for command in json.loads(text)["commands"]}


@pytest.mark.parametrize("site", SITES)
def test_all_that_users_type_was_rehearsed(site: str) -> None:
    assert [*_rehearsed(site)] == [*_declared(site)]


@pytest.mark.parametrize("site", SITES)
def test_only_what_says_so_is_left_out(site: str) -> None:
    declared = _declared(site)
    seen = _rehearsed(site)
    left_out = {name: command["why"] for name, command in seen.items() if command["verdict"] == "left out"}
    assert left_out == {name: [declared[name].get("cannot_run_here")] for name in left_out}


def test_few_commands_are_left_out() -> None:
    names = [
        f"{site} {name}"
        for site in SITES
        for name, command in _declared(site).items()
        if "cannot_run_here" in command
    ]
    assert len(names) <= MOST_LEFT_OUT, names
