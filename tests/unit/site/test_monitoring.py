"""Where nothing limits the numbers of the monitoring, and whom that endangers."""

from pathlib import Path

import pytest

from deploy.site.inventory import read_site
from deploy.site.monitoring import check_monitoring
from tests.unit.site.sites import INVENTORY, write_site

MANY = INVENTORY.replace("node[1:2]", "node[1:50]")


@pytest.mark.parametrize(
    ("inventory", "said", "finds"),
    [
        (MANY, "", True),
        (INVENTORY, "", False),
        (MANY, "prometheus_retention_size: 50GB\n", False),
        (MANY, "prometheus_storage: /data/prometheus\n", False),
        (MANY + "[slurm-metric]\nlogin1\n", "", False),
        (MANY + "[slurm-metric]\nlogin1\n[slurm-database]\nlogin1\n", "", True),
        (MANY + "[slurm-metric]\n", "", False),
    ],
)
def test_numbers_that_may_fill_the_disk_of_slurm_are_named(
    tmp_path: Path, inventory: str, said: str, *, finds: bool
) -> None:
    site = read_site(write_site(tmp_path, inventory, {"group_vars/all.yml": said}))
    assert [finding.reference for finding in check_monitoring(site)] == ["metrics-without-limit"] * finds
