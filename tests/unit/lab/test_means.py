"""What users' commands find in a rehearsal besides the deployment."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import DeployError
from deploy.lab import means as module
from deploy.lab import registry
from deploy.lab.means import Means
from deploy.lab.rehearsed_site import rehearsed
from deploy.lab.state import Lab, LabHost
from deploy.site.inventory import Host, Site

CONF = "NodeName=n1 NodeAddr=10.0.0.4 CPUs=2 RealMemory=1024 State=UNKNOWN\n"
GROUPS = {
    "slurm-master": ("ctl",),
    "slurm-portal": ("login",),
    "slurm-login": ("login",),
    "slurm-node": ("n1",),
    "slurm-container": ("n1",),
    "big": ("n1",),
}
COMMAND = {"id": "a", "user": "alice", "run": "true", "expect": {}}
IMAGES = [{"image": "docker.io/library/ubuntu", "tags": ["latest", "24.04"], "packages": ["python3"]}]


class Podman:
    """Remembers what it was told to do, and answers for Slurm."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[tuple[str, ...]] = []
        self.data: list[bytes] = []
        self.states = "n1 idle"
        monkeypatch.setattr(module, "podman", self)
        monkeypatch.setattr(registry, "podman", self)
        monkeypatch.setattr(registry, "ensure_image", lambda image, _: f"made:{image.repository}")
        monkeypatch.setattr(module, "_SECONDS_TO_RETURN", 0.05)
        monkeypatch.setattr(module, "_BETWEEN_LOOKS", 0.01)
        hosts = tuple(
            LabHost(name, f"10.0.0.{n}", "running", "") for n, name in enumerate(("ctl", "login", "n1"), 2)
        )
        lab = Lab("lab", Path("/lab"), "trixie", 0, IPv4Network("10.0.0.0/24"), hosts, "containers")
        monkeypatch.setattr(module, "need_lab", lambda _: lab)

    def __call__(self, *words: str, data: bytes | None = None) -> str:
        self.told.append(words)
        self.data.append(data or b"")
        if words[-1] == "/etc/slurm/slurm.conf" and "cat" in words:
            return CONF
        return self.states if "sinfo" in words[-1] else ""

    def written(self, path: str) -> list[str]:
        pairs = zip(self.told, self.data, strict=True)
        return [data.decode() for words, data in pairs if words[-2:] == ("tee", path)]


@pytest.fixture
def podman(monkeypatch: pytest.MonkeyPatch) -> Podman:
    return Podman(monkeypatch)


def means(**content: Any) -> Means:  # noqa: ANN401 - of a file of commands
    hosts = {
        name: Host(name, {}, frozenset(group for group, members in GROUPS.items() if name in members))
        for name in ("ctl", "login", "n1")
    }
    site = Site(Path("/sites/mine/inventory.ini"), hosts, {"slurm-cluster": tuple(hosts), **GROUPS})
    what = rehearsed(site, [], most=1, gpus=1)
    return Means(what, "lab", "trixie", content, lambda _: None)


def test_a_password_goes_where_the_portal_is_and_into_a_file(podman: Podman) -> None:
    made = means()
    first, second = made.prepare([{**COMMAND, "password_file": "word", "files": {"x": "y"}}, COMMAND])
    assert second == COMMAND
    assert first["files"]["x"] == "y"
    assert len(first["files"]["word"]) > 20
    assert podman.told == [("exec", "--interactive", "deploy-lab-login", "chpasswd")]
    assert podman.data == [f"alice:{first['files']['word']}\n".encode()]
    assert first["files"]["word"] not in repr(made)


def test_packages_are_where_people_type_and_compute(podman: Podman) -> None:
    means(packages=["python3-torch"]).prepare([COMMAND])
    installed = [words[1] for words in podman.told if words[-1] == "python3-torch"]
    assert sorted(installed) == ["deploy-lab-login", "deploy-lab-n1"]


def test_one_password_for_a_user(podman: Podman) -> None:
    wanting = {**COMMAND, "password_file": "word"}
    first, second = means().prepare([wanting, wanting])
    assert first == second
    assert len(podman.told) == 1


def test_images_are_served_where_no_portal_has_the_port(podman: Podman) -> None:
    assert means(served_images=IMAGES).prepare([COMMAND]) == [COMMAND]
    pushed = [words[-1] for words in podman.told if words[0] == "push"]
    assert pushed == [
        "docker://10.0.0.2:443/library/ubuntu:latest",
        "docker://10.0.0.2:443/library/ubuntu:24.04",
    ]
    named = {words[2]: words[-1] for words in podman.told if "10.0.0.2 registry-1.docker.io" in words[-1]}
    assert named == dict.fromkeys(
        ["deploy-lab-ctl", "deploy-lab-login", "deploy-lab-n1"], "10.0.0.2 registry-1.docker.io"
    )
    assert "DNS:registry-1.docker.io" in [words[-1] for words in podman.told]


def test_nodes_pretend_from_what_was_deployed(podman: Podman) -> None:
    made = means(sizes=[{"group": "big", "cpus": 8, "memory_mb": 16000, "nodes": 3}])
    assert "8 CPUs" in made.pretend(with_absent=False)
    assert "3 nodes" in made.pretend(with_absent=True)
    first, second = podman.written("/etc/slurm/slurm.conf")
    assert "CPUs=8 RealMemory=16000" in first
    assert second.count("CPUs=8 RealMemory=16000") == 2
    assert second.count("config_overrides") == 1
    restarted = [words[1:] for words in podman.told if words[-2:] == ("restart", "slurmd")]
    assert restarted == [("deploy-lab-n1", "systemctl", "restart", "slurmd")] * 2


def test_nodes_that_slurm_does_not_take_are_named(podman: Podman) -> None:
    podman.states = "n1 inval"
    made = means(sizes=[{"group": "big", "cpus": 8, "memory_mb": 16000}])
    with pytest.raises(DeployError, match=r"n1 inval.*\[rehearsal-sizes-refused\]"):
        made.pretend(with_absent=False)
