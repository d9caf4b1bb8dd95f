"""Host keys of machines: what one offers, what is known, what is accepted."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.run import host_key
from deploy.run.host_key import HostKey
from deploy.run.ssh import NotByPlainSshError, Unanswered


def _key(place: Path, name: str) -> tuple[HostKey, str]:
    """A new key, and its fingerprint as ssh-keygen shows it."""
    place.mkdir(exist_ok=True)
    file = place / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    shown = subprocess.run(["ssh-keygen", "-lf", f"{file}.pub"], check=True, capture_output=True, text=True)
    kind, blob, *_ = file.with_suffix(".pub").read_text().split()
    return HostKey(kind, blob), shown.stdout.split()[1]


def _command(place: Path, *options: str) -> list[str]:
    known = f'UserKnownHostsFile="{place / "known hosts"}"'
    return ["ssh", "-T", "-o", known, *options, "--", "10.0.0.9", "sh -c true"]


def test_a_fingerprint_is_that_of_ssh_keygen(tmp_path: Path) -> None:
    key, shown = _key(tmp_path, "a")
    assert key.fingerprint == shown


@pytest.mark.parametrize(
    ("options", "name"),
    [((), "10.0.0.9"), (("-p", "2222"), "[10.0.0.9]:2222"), (("-o", "HostKeyAlias=node9"), "node9")],
)
@pytest.mark.parametrize("is_hashed", [False, True])
def test_a_new_key_takes_the_place_of_the_old_one_and_of_no_other(
    tmp_path: Path,
    options: tuple[str, ...],
    name: str,
    is_hashed: bool,  # noqa: FBT001
) -> None:
    file = tmp_path / "known hosts"
    old, new = _key(tmp_path, "old")[0], _key(tmp_path, "new")[0]
    file.write_text(f"{name} {old.kind} {old.blob}\nother {old.kind} {old.blob}")
    file.chmod(0o600)
    if is_hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    entry = host_key.known(_command(tmp_path, *options))
    assert (entry.name, entry.file, entry.keys) == (name, file, frozenset({old}))
    host_key.accept(entry, new)
    assert host_key.known(_command(tmp_path, *options)).keys == {new}
    other = subprocess.run(["ssh-keygen", "-F", "other", "-f", str(file)], check=False, capture_output=True)
    assert old.blob.encode() in other.stdout
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_machine_without_an_entry_gets_one(tmp_path: Path) -> None:
    key = _key(tmp_path, "new")[0]
    entry = host_key.known(_command(tmp_path))
    assert entry.keys == frozenset()
    host_key.accept(entry, key)
    assert host_key.known(_command(tmp_path)).keys == {key}


@pytest.mark.parametrize("kind", ["device", "none"])
def test_where_ssh_keeps_no_keys_nothing_is_written(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [
        "ssh",
        "-T",
        "-o",
        f"UserKnownHostsFile={pipe if kind == 'device' else kind}",
        "--",
        "10.0.0.9",
        "true",
    ]
    entry = host_key.known(words)
    assert (entry.file, entry.keys) == (None, frozenset())
    host_key.accept(entry, _key(tmp_path / "keys", "new")[0])
    assert pipe.is_fifo()
    assert {*tmp_path.iterdir()} == {pipe, tmp_path / "keys"}


def test_a_link_stays_and_the_keys_are_where_it_leads(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (tmp_path / "known hosts").symlink_to(kept)
    for name in ("old", "new"):
        key = _key(tmp_path, name)[0]
        host_key.accept(host_key.known(_command(tmp_path)), key)
        assert (tmp_path / "known hosts").is_symlink()
        assert host_key.known(_command(tmp_path)).keys == {key}
    assert kept.is_file()


def test_options_that_ssh_refuses_are_said(tmp_path: Path) -> None:
    with pytest.raises(NotByPlainSshError, match=r"ssh is refused: .*foo"):
        host_key.known(_command(tmp_path, "-o", "Foo=1"))


def test_a_machine_that_does_not_answer_offers_nothing(tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: No route to host' >&2\nexit 255\n")
    ssh.chmod(0o755)
    assert host_key.offered([str(ssh), "-T", "--", "x", "y"]) == Unanswered("ssh: No route to host")


def test_keys_are_asked_for_before_what_the_site_says(tmp_path: Path) -> None:
    """The first value of an option counts: the site's own strictness must not hide the key."""
    ssh, key = tmp_path / "ssh", _key(tmp_path, "new")[0]
    ssh.write_text(
        "#!/bin/sh\nfile=${1#-oUserKnownHostsFile=}\n"
        f'case "$*" in *HostKeyAlgorithms=ssh-ed25519*) echo "h {key.kind} {key.blob}" >"$file";; esac\n'
        "exit 255\n"
    )
    ssh.chmod(0o755)
    assert host_key.offered([str(ssh), "-T", "-o", "StrictHostKeyChecking=yes", "--", "h", "y"]) == (key,)
