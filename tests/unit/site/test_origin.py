from pathlib import Path

import pytest

from deploy.site.inventory import read_site
from deploy.site.origin import host_lines, host_origin
from tests.unit.site.sites import INVENTORY, write_site


@pytest.mark.parametrize(
    ("files", "host", "expected"),
    [
        ({"group_vars/all.yml": "# wanted: no\nother: 1\nwanted: 2\n"}, "node1", "group_vars/all.yml:3"),
        ({"group_vars/all/x.yml": "wanted: 2\n"}, "node1", "group_vars/all/x.yml:1"),
        ({"group_vars/all.yml": "wanted:\n  - 1\n  - 2\n"}, "node1", "group_vars/all.yml:1"),
        (
            {"group_vars/all.yml": "wanted: 1\n", "host_vars/node1.yml": "a: 1\nwanted: 2\n"},
            "node1",
            "host_vars/node1.yml:2",
        ),
        (
            {"group_vars/all.yml": "wanted: 1\n", "host_vars/node1.yml": "a: 1\nwanted: 2\n"},
            "node2",
            "group_vars/all.yml:1",
        ),
        ({"group_vars/all.yml": "wanted: true\n"}, "node1", "group_vars/all.yml:1"),
        ({"group_vars/all.yml": "unwanted: 1\n"}, "node1", "node1"),
    ],
)
def test_the_place_that_a_value_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], host: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    site = read_site(write_site(tmp_path, files=files), extra_variables={"given": 1})
    assert site.hosts[host].where("wanted") == expected
    assert site.hosts[host].where("given") == "--extra-vars"


def test_inline_variables_of_an_ini_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = INVENTORY.replace("node1 ansible_host", "node1 slurmd_wait=3 ansible_host") + "[all:vars]\nx=y\n"
    site = read_site(write_site(tmp_path, text))
    assert site.hosts["node1"].where("slurmd_wait") == "inventory.ini:4"
    assert site.hosts["node1"].where("x") == "inventory.ini:21"


@pytest.mark.parametrize(
    ("text", "host", "expected"),
    [
        (INVENTORY, "node2", "inventory.ini:5"),
        ("[all]\n# node1\nnode10\nnode1:2222 a=1\n", "node1", "inventory.ini:4"),
        ("[all]\nnode[1:2]\n", "node1", "inventory.ini"),
        ("all:\n  hosts:\n    node1:\n", "node1", "inventory.ini:3"),
    ],
)
def test_the_line_that_names_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, host: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert host_origin(write_site(tmp_path, text).resolve(), host).removeprefix(f"{tmp_path}/") == expected


def test_every_line_that_names_a_host_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hosts").mkdir()
    Path("hosts/a.ini").write_text(
        "[x]\nnode1 ansible_host=1\nnode10\n# node1\n[slurm-node]\nnode[01:02]\nnode[1:4]\n"
    )
    Path("hosts/b.yml").write_text('all:\n  hosts:\n    node1:\n      ansible_host: node1\n    "node2":\n')
    lines = host_lines(Path("hosts").absolute(), "node1")
    assert lines == ("hosts/a.ini:2", "hosts/a.ini:7 (in node[1:4])", "hosts/b.yml:3")
    assert host_lines(Path("hosts").absolute(), "node2")[-1] == "hosts/b.yml:5"
