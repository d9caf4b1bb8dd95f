"""How long a conversion of the database is waited for: by what a rehearsal saw, and by what the site says."""

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from tests.contract.content import ROOT, read_yaml

HOURS = 40000


def waits(**variables: object) -> dict[str, int]:
    """Seconds by what is waited for; a site says numbers, or texts that are some."""
    own = {"__slurmdbd_patience", "__slurmdbd_dump", "__slurmdbd_conversion"}
    role: dict[str, Any] = read_yaml(ROOT / "roles/slurmdbd/vars/main.yml")
    templates = {name: trust_as_template(text) for name, text in role.items() if name in own}
    templar = Templar(loader=DataLoader(), variables={**templates, **variables})
    found = {name: templar.template(text) for name, text in templates.items()}
    return {name.removeprefix("__slurmdbd_"): int(seconds) for name, seconds in found.items()}


@pytest.mark.parametrize("said", [HOURS, str(HOURS)])
def test_a_site_that_waits_for_hours_does_so_in_every_step(said: object) -> None:
    expected = {"patience": HOURS, "dump": HOURS, "conversion": HOURS}
    assert waits(slurmdbd_start_timeout=said, slurm_conversion_patience=120) == expected


def test_what_a_rehearsal_saw_counts_where_it_is_longer() -> None:
    said = waits(slurmdbd_start_timeout=120, slurm_conversion_patience=HOURS)
    assert said == {"patience": HOURS, "dump": 7200, "conversion": 3600}
    assert waits(slurmdbd_start_timeout=120)["patience"] == 120


def test_the_tasks_go_by_them() -> None:
    tasks = {
        name: read_yaml(ROOT / f"roles/slurmdbd/tasks/{name}.yml")[0] for name in ("answers", "rehearse")
    }
    assert tasks["answers"]["ansible.builtin.wait_for"]["timeout"] == "{{ __slurmdbd_patience }}"
    assert tasks["rehearse"]["slurmdbd_rehearsal"]["timeout"] == "{{ __slurmdbd_conversion }}"
