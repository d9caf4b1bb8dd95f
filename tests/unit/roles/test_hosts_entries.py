from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/hosts_file/library/hosts_entries.py")

Entry = dict[str, Any]
LOCALHOST = "127.0.0.1 localhost\n"


def entry(address: str, *names: str) -> Entry:
    return {"address": address, "names": list(names)}


NODES = [entry("10.0.0.10", "node10"), entry("10.0.0.9", "node9", "node9.cluster"), entry("fd00::1", "six")]
BLOCK = f"{module.BEGIN}\n10.0.0.9 node9 node9.cluster\n10.0.0.10 node10\nfd00::1 six\n{module.END}\n"


def updated(text: str, entries: list[Entry], *, remove: bool = True) -> str:
    return str(module.updated(text, entries, remove_loopback_name=remove))


def test_block_is_added_in_the_order_of_addresses() -> None:
    assert updated(LOCALHOST, NODES) == LOCALHOST + BLOCK


def test_order_of_the_inventory_does_not_matter() -> None:
    assert updated(LOCALHOST, NODES[::-1]) == updated(LOCALHOST, NODES)


def test_second_run_changes_nothing() -> None:
    once = updated(LOCALHOST, NODES)
    assert updated(once, NODES) == once


def test_block_is_replaced_where_it_is() -> None:
    text = f"{LOCALHOST}{BLOCK}192.0.2.1 printer\n"
    after = updated(text, [entry("10.0.0.1", "node1")])
    assert after == f"{LOCALHOST}{module.BEGIN}\n10.0.0.1 node1\n{module.END}\n192.0.2.1 printer\n"


def test_a_block_that_was_copied_goes() -> None:
    copied = BLOCK.replace("10.0.0.9 ", "10.9.9.9 ")
    assert updated(f"{LOCALHOST}{BLOCK}# mine\n{copied}", NODES) == f"{LOCALHOST}{BLOCK}# mine\n"


def test_no_entries_remove_the_block() -> None:
    assert updated(LOCALHOST + BLOCK, []) == LOCALHOST


def test_last_line_without_an_end_is_not_joined() -> None:
    assert updated("127.0.0.1 localhost", NODES).startswith(f"{LOCALHOST}{module.BEGIN}\n")


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("127.0.1.1 node9\n", False),
        ("127.0.1.1\tnode9.cluster node9 # installer\n", False),
        ("127.0.1.1 laptop\n", True),
        ("127.0.1.1 laptop # node9\n", True),
        ("# 127.0.1.1 node9\n", True),
        ("127.0.0.1 node9\n", True),
    ],
)
def test_loopback_line_of_a_name_in_the_block_goes(line: str, stays: bool) -> None:  # noqa: FBT001
    assert (line in updated(LOCALHOST + line, NODES)) is stays
    assert line in updated(LOCALHOST + line, NODES, remove=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (entry("node1", "node1"), "'node1' is not an IP address"),
        (entry("10.0.0.1"), "10.0.0.1 has no name"),
        (entry("10.0.0.1", "two words"), "'two words', a name of 10.0.0.1, is not a host name"),
        (entry("10.0.0.1", "a\n10.0.0.2 b"), "is not a host name"),
    ],
)
def test_entries_that_would_break_the_file_are_refused(wrong: Entry, said: str) -> None:
    assert said in module.invalid([*NODES, wrong])


def test_good_entries_are_not_refused() -> None:
    assert module.invalid(NODES) is None


@pytest.mark.parametrize(
    ("said", "manages"),
    [
        ("manage_etc_hosts: true\n", "true"),
        ("manage_etc_hosts: 'True'\n", "True"),
        ("manage_etc_hosts: localhost\n", "localhost"),
        ("manage_etc_hosts: template # all of it\n", "template"),
        ("manage_etc_hosts: false\n", ""),
        ('manage_etc_hosts: "no"\n', ""),
        ("manage_etc_hosts: null\n", ""),
        ("manage_etc_hosts:\nhostname: true\n", ""),
        ("# manage_etc_hosts: true\nother:\n  manage_etc_hosts: true\n", ""),
        ("hostname: node1\n", ""),
    ],
)
@pytest.mark.parametrize("name", ["cloud-config.txt", "vendor-cloud-config.txt", "vendor2-cloud-config.txt"])
def test_what_wins_over_the_configuration_of_cloud_init_is_said(
    tmp_path: Path, name: str, said: str, manages: str
) -> None:
    (tmp_path / name).write_text(f"#cloud-config\n\n# from 1 files\n# part-001\n\n---\n{said}...\n")
    found = module.rewritten_at_boot(tmp_path)
    assert len(found) == bool(manages)
    assert all(f"says manage_etc_hosts: {manages} ({tmp_path / name}), which wins" in line for line in found)


def test_a_machine_without_cloud_init_says_nothing(tmp_path: Path) -> None:
    assert module.rewritten_at_boot(tmp_path / "instance") == []
