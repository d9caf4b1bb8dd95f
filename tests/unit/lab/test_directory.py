import errno
import os
import subprocess
from pathlib import Path

import pytest

from deploy.lab.access import KeyDirectory, make_key_pair
from deploy.lab.directory import LabDirectory
from deploy.site.creation import create_site
from deploy.site.starter import Machines, starter_files

ADDRESSES = {"ctl1": "10.213.7.2", "login1": "10.213.7.3", "node1": "10.213.7.11"}


def made(path: Path) -> LabDirectory:
    directory = LabDirectory(path)
    directory.keys.public_key()
    directory.keys.write_known_hosts({"10.213.7.2": "ssh-ed25519 AAAA"})
    directory.write(ADDRESSES, release="trixie", gpus=2, cgroup_v1=True)
    return directory


def test_existing_files_are_the_admins(tmp_path: Path) -> None:
    directory = made(tmp_path / "lab")
    directory.inventory.write_text("mine\n")
    (directory.path / "group_vars/slurm-node.yml").unlink()
    directory.write(ADDRESSES, release="trixie", gpus=2, cgroup_v1=True)
    assert directory.inventory.read_text() == "mine\n"
    assert (directory.path / "group_vars/slurm-node.yml").exists()


def test_keys_are_private_and_made_once(tmp_path: Path) -> None:
    keys = KeyDirectory(tmp_path / "lab/.lab")
    public = keys.public_key()
    assert keys.identity.stat().st_mode & 0o777 == 0o600
    assert keys.path.stat().st_mode & 0o777 == 0o700
    assert keys.public_key() == public
    derived = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(keys.identity)], capture_output=True, text=True, check=True
    )
    assert derived.stdout.split()[:2] == public.split()[:2]


def test_every_key_is_another() -> None:
    assert make_key_pair("a").public.split()[1] != make_key_pair("a").public.split()[1]


def test_known_hosts_name_the_address(tmp_path: Path) -> None:
    directory = made(tmp_path)
    assert directory.keys.known_hosts.read_text() == "10.213.7.2 ssh-ed25519 AAAA\n"


def test_ssh_takes_no_other_host_key(tmp_path: Path) -> None:
    command = KeyDirectory(tmp_path / "a b").ssh_command("10.213.7.2", "-o", "BatchMode=yes")
    assert f'UserKnownHostsFile="{tmp_path}/a b/known_hosts"' in command
    assert "StrictHostKeyChecking=yes" in command
    assert command[-1] == "admin@10.213.7.2"


def test_adding_keeps_the_files_mode(tmp_path: Path) -> None:
    directory = made(tmp_path)
    directory.inventory.chmod(0o640)
    directory.add({"node2": "10.213.7.12"})
    assert directory.inventory.stat().st_mode & 0o777 == 0o640
    assert directory.missing({**ADDRESSES, "node2": "10.213.7.12"}) == {}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        ".lab",
        "group_vars",
        "inventory.ini",
        "validation.yml",
    ]


def test_forgetting_the_keys_leaves_the_inventory(tmp_path: Path) -> None:
    directory = made(tmp_path)
    directory.forget_keys()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "group_vars",
        "inventory.ini",
        "validation.yml",
    ]


def test_a_directory_named_lab_without_our_keys_stays(tmp_path: Path) -> None:
    (tmp_path / ".lab").mkdir()
    LabDirectory(tmp_path).forget_keys()
    assert (tmp_path / ".lab").exists()


@pytest.mark.parametrize(("extra", "kept"), [(None, []), ("notes.txt", ["notes.txt"])])
def test_delete_removes_only_what_the_lab_wrote(tmp_path: Path, extra: str | None, kept: list[str]) -> None:
    directory = made(tmp_path / "lab")
    (directory.path / ".deploy/runs").mkdir(parents=True)
    if extra:
        (directory.path / extra).touch()
    directory.forget_keys()
    assert directory.delete() == kept
    assert directory.path.exists() == bool(kept)


def site(path: Path) -> LabDirectory:
    create_site(path, starter_files(Machines("ctl1", ("node1",), ("login1",))))
    return LabDirectory(path)


def test_delete_takes_nothing_of_a_site(tmp_path: Path) -> None:
    """Also where a lab of an earlier version wrote into it."""
    directory = site(tmp_path / "site")
    directory.write(ADDRESSES, release="trixie", gpus=2, cgroup_v1=True)
    (directory.path / ".deploy/runs").mkdir(parents=True)
    before = directory.names()
    assert {"inventory.ini", "secrets.yml", "group_vars", ".deploy"} <= set(before)
    assert directory.delete() == before
    assert (directory.path / "group_vars/all.yml").exists()


def test_what_a_lab_made_is_no_site(tmp_path: Path) -> None:
    directory = made(tmp_path / "lab")
    (directory.path / "secrets.yml").touch()
    assert directory.of_a_site() == []
    directory.add({"node2": "10.213.7.12"})
    assert directory.of_a_site() == []


@pytest.mark.parametrize("at", ["192.0.2.1", "ctl1.site.example", "'192.0.2.1'"])
def test_a_labs_inventory_with_machines_of_a_site_is_a_sites(tmp_path: Path, at: str) -> None:
    directory = made(tmp_path / "lab")
    text = directory.inventory.read_text()
    directory.inventory.write_text(f"# ansible_host={at}\n{text}")
    assert directory.of_a_site() == []
    directory.inventory.write_text(text.replace("ansible_host=10.213.7.2", f"ansible_host={at}"))
    assert {"inventory.ini", "validation.yml", "group_vars/all.yml"} <= {*directory.of_a_site()}
    assert directory.delete() == [".lab", "group_vars", "inventory.ini", "validation.yml"]


@pytest.mark.parametrize("own", ["group_vars/slurm-database.yml", "host_vars/node1.yml", "notes.txt"])
def test_what_a_deletion_leaves_is_no_site(own: str, tmp_path: Path) -> None:
    directory = made(tmp_path / "lab")
    (directory.path / own).parent.mkdir(exist_ok=True)
    (directory.path / own).write_text("mine: true\n")
    directory.forget_keys()
    assert directory.delete() == [own.partition("/")[0]]
    assert directory.of_a_site() == []


@pytest.mark.parametrize("gone", [("inventory.ini",), ("inventory.ini", "validation.yml")])
@pytest.mark.parametrize("own_kernel", [False, True])
def test_a_lab_without_its_inventory_is_deleted(
    gone: tuple[str, ...], tmp_path: Path, *, own_kernel: bool
) -> None:
    directory = LabDirectory(tmp_path / "lab")
    directory.write(ADDRESSES, release="trixie", gpus=0, cgroup_v1=False, own_kernel=own_kernel)
    (directory.path / "secrets.yml").touch()
    for name in gone:
        (directory.path / name).unlink()
    assert "secrets.yml" in directory.of_a_site(), "no new lab begins in it"
    assert directory.delete() == []


def test_a_lab_with_an_empty_inventory_is_deleted(tmp_path: Path) -> None:
    """Which a full disk left."""
    (tmp_path / "lab").mkdir()
    directory = LabDirectory(tmp_path / "lab")
    directory.inventory.touch()
    assert directory.delete() == []
    directory = made(tmp_path / "lab")
    directory.forget_keys()
    directory.inventory.write_text("\n")
    assert directory.delete() == []


@pytest.mark.parametrize("name", ["inventory.ini", "inventory.yml", "secrets.yml", "group_vars/all.yml"])
def test_what_nothing_says_to_be_a_labs_is_not_deleted(name: str, tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / name).write_text("x: 1\n")
    directory = LabDirectory(tmp_path)
    before = directory.names()
    assert directory.of_a_site() == [name]
    assert directory.delete() == before
    assert (tmp_path / name).exists()


def test_a_deletion_that_was_cut_off_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = made(tmp_path / "lab")
    directory.forget_keys()
    (directory.path / "secrets.yml").touch()

    def cut_off(_path: Path, *, missing_ok: bool) -> None:
        raise KeyboardInterrupt(missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", cut_off)
        with pytest.raises(KeyboardInterrupt):
            directory.delete()
    assert directory.delete() == []
    assert not directory.path.exists()


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            KeyDirectory(tmp_path / "lab/.lab").public_key()
        with pytest.raises(OSError, match="No space"):
            LabDirectory(tmp_path / "lab").write(ADDRESSES, release="trixie", gpus=2, cgroup_v1=True)
    assert [path for path in (tmp_path / "lab").rglob("*") if path.is_file()] == []
    assert made(tmp_path / "lab").missing(ADDRESSES) == {}
