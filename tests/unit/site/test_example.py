from pathlib import Path

import yaml

from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

EXAMPLE = Path(__file__).parents[3] / "inventory" / "example"


def test_the_example_site_is_healthy() -> None:
    check_site(read_site(EXAMPLE / "inventory.ini"))


def test_every_commented_default_is_a_valid_value(tmp_path: Path) -> None:
    text = (EXAMPLE / "group_vars" / "all.yml").read_text()
    values = yaml.safe_load("\n".join(line[1:] for line in text.splitlines() if _is_setting(line)))
    assert len(values) > 30
    path = write_site(tmp_path, files={"group_vars/all.yml": yaml.safe_dump(values)})
    check_site(read_site(path))


def _is_setting(line: str) -> bool:
    """Settings follow the mark at once, their nested lines by two spaces or a dash; prose by one space."""
    return line.startswith("#") and (line[1:2] != " " or line.startswith("#  "))
