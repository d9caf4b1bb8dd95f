from collections.abc import Iterator
from pathlib import Path

import yaml

from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.tracked import ROOT, copy_tracked
from tests.unit.site.sites import write_site

EXAMPLE = ROOT / "inventory" / "example"


def test_the_example_site_is_healthy(tmp_path: Path) -> None:
    site = read_site(copy_tracked("inventory/example", tmp_path) / "inventory.ini")
    assert [host.name for host in site.nodes] == ["node1", "node2"]
    assert check_site(site) == []


def test_every_commented_default_is_a_valid_value(tmp_path: Path) -> None:
    values = yaml.safe_load("\n".join(settings((EXAMPLE / "group_vars" / "all.yml").read_text())))
    assert len(values) > 30
    path = write_site(tmp_path, files={"group_vars/all.yml": yaml.safe_dump(values)})
    check_site(read_site(path))


def settings(text: str) -> Iterator[str]:
    """Settings follow the mark at once; their nested lines are indented and follow them."""
    nested = False
    for line in text.splitlines():
        nested = line.startswith("#") and (line[1:2] != " " or (nested and line.startswith("#  ")))
        if nested:
            yield line[1:]
