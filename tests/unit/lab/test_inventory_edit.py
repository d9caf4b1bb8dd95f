import pytest

from deploy.errors import DeployError
from deploy.lab.inventory_edit import add_nodes, lines_to_add, missing_hosts, moved_hosts
from deploy.lab.site_files import inventory

NEW = {"node3": "10.213.7.13", "node4": "10.213.7.14"}
OLD = {"ctl1": "10.213.7.2", "node1": "10.213.7.11"}

EDITED = """\
# mine
[all]
ctl1 ansible_host=10.213.7.2  # the big one
node1 ansible_host=10.213.7.11

; our nodes
[slurm-node] # do not sort
node1
# node9 is in repair

[slurm-node:vars]
x=1"""


def test_new_lines_follow_the_last_of_their_section_and_nothing_else_changes() -> None:
    assert (
        add_nodes(EDITED, NEW)
        == """\
# mine
[all]
ctl1 ansible_host=10.213.7.2  # the big one
node1 ansible_host=10.213.7.11
node3 ansible_host=10.213.7.13
node4 ansible_host=10.213.7.14

; our nodes
[slurm-node] # do not sort
node1
node3
node4
# node9 is in repair

[slurm-node:vars]
x=1"""
    )


def test_only_missing_hosts_are_added() -> None:
    text = inventory(OLD | NEW)
    assert missing_hosts(text, OLD | NEW | {"node5": "10.213.7.15"}) == {"node5": "10.213.7.15"}
    assert missing_hosts(EDITED, {"node9": "10.213.7.19"}) == {"node9": "10.213.7.19"}


def test_adding_gives_the_inventory_that_a_bigger_lab_starts_with() -> None:
    assert add_nodes(inventory(OLD), NEW) == inventory(OLD | NEW)


def test_an_empty_section_at_the_end_without_newline() -> None:
    assert add_nodes("[all]\nctl1\n[slurm-node]", NEW).endswith("[slurm-node]\nnode3\nnode4\n")


def test_without_all_the_definitions_go_to_the_top() -> None:
    text = add_nodes("[slurm-node]\nnode1\n", {"node3": "10.213.7.13"})
    assert text == "node3 ansible_host=10.213.7.13\n\n[slurm-node]\nnode1\nnode3\n"


def test_line_ends_stay_what_they_are() -> None:
    text = add_nodes("[all]\r\nnode1\r\n[slurm-node]\r\nnode1\r\n", {"node3": "10.213.7.13"})
    assert "node3 ansible_host=10.213.7.13\r\n" in text
    assert "\n" not in text.replace("\r\n", "")


def test_a_missing_section_is_the_admins_to_make() -> None:
    with pytest.raises(DeployError, match=r"no section \[slurm-node\](.|\n)*node3 ansible_host=10.213.7.13"):
        add_nodes("[all]\nnode1\n", NEW)


def test_other_addresses_are_noticed() -> None:
    assert moved_hosts(EDITED, {"ctl1": "10.213.8.2", "node1": "10.213.7.11"}) == [
        "ctl1 ansible_host=10.213.8.2"
    ]
    assert moved_hosts(EDITED, OLD) == []


def test_lines_to_type() -> None:
    assert lines_to_add({"node3": "10.213.7.13"}) == (
        "[all]\nnode3 ansible_host=10.213.7.13\n[slurm-node]\nnode3"
    )
