import subprocess
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import DeployError, ExitCode, error
from deploy.lab import state, up
from deploy.lab.access import KeyDirectory, wait_for_ssh
from deploy.lab.addresses import node_number
from deploy.lab.directory import LabDirectory
from deploy.lab.machines import kind_named
from deploy.lab.parallel import for_each
from deploy.lab.podman import podman
from deploy.lab.state import Lab, LabHost, all_labs, check_name, find_lab, need_lab
from deploy.lab.up import Wish

NETWORKS = [
    {
        "name": "deploy-two",
        "subnets": [{"subnet": "10.213.7.0/24"}],
        "labels": {
            "deploy.lab": "two",
            "deploy.directory": "/sites/two",
            "deploy.release": "trixie",
            "deploy.gpus": "2",
        },
    }
]


def container(host: str, address: str, status: str) -> dict[str, Any]:
    labels = {"deploy.lab": "two", "deploy.host": host, "deploy.address": address}
    return {"Names": [f"deploy-two-{host}"], "State": status, "Labels": labels}


CONTAINERS = [
    container("node10", "10.213.7.20", "running"),
    container("node2", "10.213.7.12", "exited"),
    container("ctl1", "10.213.7.2", "running"),
]


@pytest.fixture(autouse=True)
def _podman_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "query", lambda *words: NETWORKS if words[0] == "network" else CONTAINERS)


def test_labs_are_what_podman_says() -> None:
    (lab,) = all_labs()
    assert (lab.name, lab.release, lab.gpus, lab.machines) == ("two", "trixie", 2, "containers")
    assert (lab.directory, lab.network) == (Path("/sites/two"), IPv4Network("10.213.7.0/24"))
    assert lab.names == ["ctl1", "node2", "node10"]
    assert [host.running for host in lab.hosts] == [True, False, True]
    assert find_lab("one") is None


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(DeployError, match=r"no lab named one.*\n.*existing labs: two"):
        need_lab("one")
    with pytest.raises(DeployError, match=r"no machine node9.*\n.*ctl1, node2, node10"):
        need_lab("two").host("node9")


def test_without_any_lab_the_hint_makes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "query", lambda *_words: [])
    with pytest.raises(DeployError, match="make one: deploy lab up"):
        need_lab("one")


@pytest.mark.parametrize("name", ["", "Lab", "1st", "a_b", "a/b", "-a", "a" * 40])
def test_names_that_podman_would_not_take(name: str) -> None:
    with pytest.raises(DeployError, match="lab-name"):
        check_name(name)


def lab_of(*hosts: tuple[str, str]) -> Lab:
    return Lab(
        name="two",
        directory=Path("/sites/two"),
        release="trixie",
        gpus=2,
        network=IPv4Network("10.213.7.0/24"),
        hosts=tuple(LabHost(name, "", status, "") for name, status in hosts),
        machines="containers",
    )


@pytest.mark.parametrize(
    ("hosts", "wanted", "count"),
    [
        ([], None, 2),
        ([("ctl1", "running")], None, 2),
        ([("node1", "running"), ("node3", "exited")], None, 3),
        ([("node1", "running")], 4, 4),
    ],
)
def test_number_of_nodes(hosts: list[tuple[str, str]], wanted: int | None, count: int) -> None:
    assert up._count(lab_of(*hosts), wanted, node_number, 2, "compute nodes") == count
    assert up._count(None, 5, node_number, 2, "compute nodes") == 5


def test_a_lab_does_not_shrink() -> None:
    with pytest.raises(DeployError, match="has 3 compute nodes already"):
        up._count(lab_of(("node3", "running")), 2, node_number, 2, "compute nodes")


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish("two", gpus=3), "--gpus 2, which cannot become 3"),
        (Wish("two", release="bookworm"), "--release trixie, which cannot become bookworm"),
        (Wish("two", machines="uml"), "--machines containers, which cannot become uml"),
        (Wish("two", directory=Path("/elsewhere")), "--dir /sites/two, which cannot become /elsewhere"),
        (Wish("two", gpus=17), "0 to 16 simulated GPUs, not 17"),
        (Wish("two", directory=Path(__file__)), "go into a directory"),
    ],
)
def test_what_is_made_stays_as_it_is(wish: Wish, said: str) -> None:
    with pytest.raises(DeployError, match=said):
        up._check(wish, lab_of())


def test_the_same_wish_again_is_fine() -> None:
    up._check(Wish("two", gpus=2, release="trixie", directory=Path("/sites/two")), lab_of())


@pytest.mark.parametrize(
    "name", ["inventory.ini", "secrets.yml", "hardware.yml", "group_vars/all.yml", ".deploy"]
)
def test_a_new_lab_does_not_write_into_a_site(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    up._check(Wish("one"), None)
    (tmp_path / "one/group_vars").mkdir(parents=True)
    up._check(Wish("one"), None)
    (tmp_path / "one" / name).touch()
    with pytest.raises(DeployError, match=rf"{name}.*\[lab-directory-taken\]"):
        up._check(Wish("one"), None)


def test_a_new_lab_does_not_write_into_the_directory_of_another() -> None:
    with pytest.raises(DeployError, match=r"lab two.*\[lab-directory-taken\]"):
        up._check(Wish("one", directory=Path("/sites/two")), None)


def test_a_lab_that_was_taken_down_comes_again_in_its_directory(tmp_path: Path) -> None:
    directory = LabDirectory(tmp_path / "one")
    directory.write({"ctl1": "10.213.9.2"}, release="trixie", gpus=2, cgroup_v1=False)
    up._check(Wish("one", directory=directory.path), None)


def test_machines_that_never_ran_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ran when its host went down is "created", too, by podman of Debian 12."""
    removed: list[str] = []
    monkeypatch.setattr(up, "podman", lambda *words: removed.append(words[-1]))
    containers = [
        {**container("ctl1", "10.213.7.2", "created"), "StartedAt": 1795833684},
        {**container("node1", "10.213.7.11", "created"), "StartedAt": -62135596800},
        {**container("node2", "10.213.7.12", "exited"), "StartedAt": 1795833684},
    ]
    monkeypatch.setattr(state, "query", lambda *words: NETWORKS if words[0] == "network" else containers)
    left = up._without_unfinished(need_lab("two"))
    assert left.names == ["ctl1", "node2"]
    assert removed == ["deploy-two-node1"]


def test_a_network_taken_meanwhile_gives_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def refuse_first(*words: str) -> str:
        tried.append(next(word for word in words if word.startswith("--subnet=")))
        if len(tried) == 1:
            raise error("podman-failed", "subnet is already used on the host", hint="")
        return ""

    monkeypatch.setattr(up, "podman", refuse_first)
    monkeypatch.setattr(up, "taken_networks", list)
    assert up.make_network(Wish("two"), "trixie", kind_named("containers")).name == "two"
    assert len(set(tried)) == 2


def test_the_addresses_of_a_rehearsed_site_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(up, "podman", lambda *words: made.extend(words))
    monkeypatch.setattr(up, "taken_networks", list)
    for avoided in ((), (IPv4Network("10.213.7.1"),)):
        up.make_network(Wish("two", avoided=avoided), "trixie", kind_named("containers"))
    first, second = (word for word in made if word.startswith("--subnet="))
    assert first == second
    favourite = IPv4Network(first.partition("=")[2])
    up.make_network(Wish("two", avoided=(IPv4Network(favourite[9]),)), "trixie", kind_named("containers"))
    assert f"--subnet={favourite}" not in made[len(made) // 3 * 2 :]


def test_the_name_server_of_podman_is_off() -> None:
    words = up._network_arguments("two", IPv4Network("10.213.7.0/24"), {"deploy.lab": "two"}, isolated=False)
    assert "--internal" not in words
    assert words[:3] == ["network", "create", "--disable-dns"]
    assert {"--gateway=10.213.7.1", "--ip-range=10.213.7.192/26", "--label=deploy.lab=two"} <= set(words)


def answer(code: int, errors: str) -> object:
    def run(command: list[str], **_options: object) -> subprocess.CompletedProcess[Any]:
        binary = command[0] == "podman"
        return subprocess.CompletedProcess(command, code, b"", errors.encode() if binary else errors)

    return run


def test_podmans_reason_reaches_the_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", answer(125, "Warning: x\nError: no such network\n"))
    with pytest.raises(DeployError, match=r"Error: no such network.*\n.*podman network rm 'a b'") as caught:
        podman("network", "rm", "a b")
    assert caught.value.exit_code == ExitCode.FAILED


def test_silent_machines_are_all_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", answer(255, "Host key verification failed.\n"))
    with pytest.raises(DeployError) as caught:
        wait_for_ssh("two", KeyDirectory(tmp_path), {"ctl1": "10.213.7.2", "node1": "10.213.7.11"}, -1)
    assert [finding.where for finding in caught.value.findings] == ["ctl1", "node1"]
    assert "Host key verification failed." in caught.value.findings[0].message
    assert "deploy lab exec --name two ctl1 --" in caught.value.findings[0].hint
    assert caught.value.exit_code == ExitCode.UNREACHABLE


def test_all_are_tried_before_the_first_error_is_raised() -> None:
    seen: list[str] = []

    def fail_on_a(host: str) -> None:
        seen.append(host)
        if host == "a":
            raise ValueError(host)

    with pytest.raises(ValueError, match="a"):
        for_each(["a", "b", "c"], fail_on_a)
    assert sorted(seen) == ["a", "b", "c"]
    assert for_each([], len) == {}
