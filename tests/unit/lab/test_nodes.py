import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from deploy.lab import nodes
from deploy.lab.access import KeyPair
from deploy.lab.enter import exec_command
from deploy.lab.machine import Machine
from deploy.lab.machines import containers
from deploy.lab.machines.containers import CONTAINERS
from deploy.lab.nodes import NodeMaker
from tests.unit.lab.test_labs import lab_of

MAKER = NodeMaker(
    lab="lab2",
    directory=Path("/sites/lab 2"),
    image="localhost/deploy-lab:trixie",
    addresses={"node1": IPv4Address("10.213.7.11"), "login1": IPv4Address("10.213.7.3")},
    gpus={"node1": 2},
    admin_key="ssh-ed25519 ADMIN deploy-lab\n",
    machine=Machine(cgroup_v1=False, runtime="crun", open_files=20000, processes=32768),
    kind=CONTAINERS,
    shared=("/home",),
)
KEYS = KeyPair(private="PRIVATE\n", public="ssh-ed25519 AAAA node1\n")


def test_container_arguments() -> None:
    arguments = MAKER.create_arguments("node1", KEYS.public)
    assert arguments[:2] == ["--runtime=crun", "create"]
    assert arguments[-3:-1] == ["localhost/deploy-lab:trixie", "/sbin/init"]
    assert {
        "--name=deploy-lab2-node1",
        "--hostname=node1",
        "--network=deploy-lab2",
        "--ip=10.213.7.11",
        "--mac-address=02:de:0a:d5:07:0b",
        "--volume=deploy-lab2-home:/home",
        "--ulimit=nofile=20000:20000",
        "--ulimit=nproc=32768:32768",
        "--label=deploy.lab=lab2",
        "--label=deploy.host=node1",
        "--label=deploy.directory=/sites/lab 2",
        "--label=deploy.address=10.213.7.11",
        "--label=deploy.host-key=ssh-ed25519 AAAA",
    } <= set(arguments)


def test_on_cgroup_v1_a_machine_has_a_tree_of_its_own() -> None:
    old = replace(MAKER, machine=replace(MAKER.machine, cgroup_v1=True, runtime="runc"))
    arguments = set(old.create_arguments("node1", KEYS.public))
    assert {"--cgroupns=private", "--systemd=false"} <= arguments
    assert "--systemd=always" in MAKER.create_arguments("node1", KEYS.public)


def test_private_files_of_a_machine() -> None:
    entries = {entry.path: entry for entry in MAKER.entries("node1", KEYS)}
    assert entries["/etc/ssh/ssh_host_ed25519_key"].mode == 0o600
    authorized = entries["/var/lib/admin/.ssh/authorized_keys"]
    assert (authorized.text, authorized.uid, authorized.mode) == (MAKER.admin_key, 500, 0o600)
    assert entries["/etc/hosts"].text == "127.0.0.1 localhost\n10.213.7.11 node1\n"


def test_only_compute_nodes_have_gpus() -> None:
    node = {entry.path: entry.text for entry in MAKER.entries("node1", KEYS)}
    assert node["/etc/tmpfiles.d/lab-gpus.conf"] == (
        "c! /dev/nvidia0 0666 root root - 195:0\nc! /dev/nvidia1 0666 root root - 195:1\n"
    )
    login = {entry.path for entry in MAKER.entries("login1", KEYS)}
    assert login == set(node) - {"/etc/tmpfiles.d/lab-gpus.conf", "/usr/local/bin/nvidia-smi"}


def test_exec_passes_the_command_on_as_it_is() -> None:
    session = ["su", "--login", "root", "--command", "sh -c 'a b'"]
    assert exec_command(lab_of(), "node1", ["sh", "-c", "a b"], user=None, terminal=False) == [
        "podman",
        "exec",
        "--interactive",
        "deploy-two-node1",
        *session,
    ]
    assert exec_command(lab_of(), "node1", ["id"], user="alice", terminal=True)[2:7] == [
        "--interactive",
        "--tty",
        "deploy-two-node1",
        "su",
        "--login",
    ]


def test_machines_are_created_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    creating, most = 0, 0

    def podman(*words: str, **_: object) -> str:
        nonlocal creating, most
        if "create" in words:
            creating += 1
            most = max(most, creating)
            time.sleep(0.05)
            creating -= 1
        return ""

    monkeypatch.setattr(nodes, "podman", podman)
    monkeypatch.setattr(containers, "boot", lambda *_: None)
    monkeypatch.setattr(containers, "keep_address", lambda _: None)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(MAKER.create, MAKER.addresses))
    assert most == 1
