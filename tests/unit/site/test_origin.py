from pathlib import Path

import pytest

from deploy.site.origin import origin
from tests.unit.site.sites import INVENTORY, write_site


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        ({"group_vars/all.yml": "# wanted: no\nother: 1\nwanted: 2\n"}, "wanted", "group_vars/all.yml:3"),
        ({"group_vars/all/x.yml": "wanted: 2\n"}, "wanted", "group_vars/all/x.yml:1"),
        ({"host_vars/node1.yml": "a: 1\nwanted: 2\n"}, "wanted", "host_vars/node1.yml:2"),
        ({}, "node2", "inventory.ini:5"),
        ({"group_vars/all.yml": "unwanted: 1\n"}, "wanted", ""),
    ],
)
def test_the_first_place_that_sets_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    inventory = write_site(tmp_path, files=files)
    assert origin(tmp_path, inventory, name) == expected


def test_inline_variables_of_an_ini_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = INVENTORY.replace("node1 ansible_host", "node1 slurmd_wait=3 ansible_host")
    assert origin(tmp_path, write_site(tmp_path, text), "slurmd_wait") == "inventory.ini:4"
