"""A suspended job keeps its GPUs."""

from pathlib import Path

import pytest

from deploy.errors import Severity
from deploy.site.checks import site_findings
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

GPUS = "slurmd_hardware: {gpus: [{type: a100, count: 4}]}\n"
PARTITIONS = "slurmctld_partitions: [{name: batch, default: true, preempt_mode: SUSPEND}]\n"


@pytest.mark.parametrize(
    ("text", "nodes", "who"),
    [
        (
            "slurmctld_preemption: partition\nslurmctld_preempt_mode: suspend\n",
            GPUS,
            "slurmctld_preempt_mode",
        ),
        (f"slurmctld_preemption: partition\n{PARTITIONS}", GPUS, "partition batch"),
        (
            "slurmctld_preemption: qos\nslurm_accounts_qos: [{name: low, preempt_mode: suspend}]\n",
            GPUS,
            "QOS low",
        ),
        ("slurmctld_preemption: partition\n", GPUS, ""),
        (PARTITIONS, GPUS, ""),
        ("slurmctld_preemption: partition\nslurmctld_preempt_mode: suspend\n", "", ""),
    ],
)
def test_who_suspends_jobs_is_told_that_they_keep_their_gpus(
    tmp_path: Path, text: str, nodes: str, who: str
) -> None:
    files = {"group_vars/all.yml": text, "group_vars/slurm-node.yml": nodes}
    site = read_site(write_site(tmp_path, files=files))
    found = [it for it in site_findings(site) if it.reference == "preemption-keeps-gpus"]
    assert [it.severity for it in found] == [Severity.WARNING] * bool(who)
    assert all(it.message.startswith(f"{who} suspends jobs") for it in found)
