"""Planted secrets: while Ansible runs no file on this machine's disk has them, afterwards no file at all."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.in_memory import is_in_memory
from deploy.run.execute import RunRequest, execute
from deploy.run.settings import ansible_environment
from deploy.site.inventory import read_site
from tests.integration.sites import LocalSite

_PLANTED = "planted-7f3a91"
_SHARED = Path("/dev/shm")


def _holders(places: Iterable[Path]) -> list[Path]:
    found = [Path(at, name) for place in places for at, _, names in os.walk(place) for name in names]
    return [path for path in found if _PLANTED.encode() in _content(path)]


@contextmanager
def _watched(*places: Path) -> Iterator[set[Path]]:
    """The files with the secret that are seen below these places while this lasts."""
    seen: set[Path] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.01):
            seen.update(_holders(places))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        ended.set()
        watcher.join()


def _content(path: Path) -> bytes:
    """What a file holds, nothing where it is gone again or is none, as a socket."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    password, file = tmp_path / "password", tmp_path / "secret.txt"
    password.write_text("word\n")
    command = [str(Path(sys.executable).parent / "ansible-vault"), "encrypt", "--output", str(file), "-"]
    command += ["--vault-password-file", str(password)]
    subprocess.run(command, input=_PLANTED, text=True, check=True, capture_output=True)
    return file


@pytest.fixture
def disk(encrypted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everything goes that has no place of its own: temporary files and a home."""
    if not is_in_memory(_SHARED) or is_in_memory(encrypted):
        pytest.skip("this machine has no tmpfs beside a disk")
    place = tmp_path / "disk"
    place.mkdir()
    for name in ("TMPDIR", "HOME"):
        monkeypatch.setenv(name, str(place))
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def test_a_run_has_its_secrets_in_memory(
    site: LocalSite, encrypted: Path, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="t-", dir=_SHARED) as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        memory = Path(name)
        target = f"{memory}/copy-{{{{ inventory_hostname }}}}"
        site.write(f"- ansible.builtin.copy:\n    src: {encrypted}\n    dest: {target}\n  no_log: true")
        request = RunRequest(
            playbook=site.playbook,
            inventories=(site.inventory,),
            arguments=("--vault-password-file", str(encrypted.with_name("password"))),
            # What is on its way to its place on a host is that host's, which is this machine here.
            environment=ansible_environment(site.settings) | {"ANSIBLE_REMOTE_TMP": str(tmp_path / "host")},
            connection_password=_PLANTED,
            become_password=_PLANTED,
        )
        with _watched(memory, disk) as seen:
            assert execute(request, lambda _: None).came_to_its_end
        assert any(path.name.startswith("password-") for path in seen)
        assert [path for path in seen if not path.is_relative_to(memory)] == []
        assert {path.name.partition("-")[0] for path in memory.iterdir()} == {"copy"}
    assert _holders([disk]) == []


def test_reading_a_site_decrypts_in_memory_and_leaves_nothing(
    encrypted: Path, disk: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "site"
    (directory / "group_vars").mkdir(parents=True)
    (directory / "inventory.ini").write_text("[slurm-master]\nctl1\n[slurm-node]\nnode1\n")
    looked_up = f"{{{{ lookup('ansible.builtin.unvault', '{encrypted}') | string | trim }}}}"
    (directory / "group_vars/all.yml").write_text(f'motd_help: "{looked_up}"\n')
    site = read_site(directory / "inventory.ini", vault_password_file=encrypted.with_name("password"))
    assert site.resolved.hosts["ctl1"].value("motd_help") == _PLANTED
    # Neither the text nor the directories that Ansible makes for it.
    assert list(disk.rglob("*")) == []
