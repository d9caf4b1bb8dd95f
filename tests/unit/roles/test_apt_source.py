import base64
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

keys = load_module("playbooks/module_utils/openpgp_key.py")
source = load_module("playbooks/library/apt_source.py")

BODY = bytes([4, 0, 0, 0, 1, 1, 0, 8, 255, 0, 2, 3])
OLD_FORMAT = bytes([0x98, len(BODY)]) + BODY
NEW_FORMAT = bytes([0xC6, len(BODY)]) + BODY


def armored(data: bytes, header: str = "Version: x\n") -> bytes:
    text = base64.b64encode(data).decode()
    begin, end = "-----BEGIN PGP PUBLIC KEY BLOCK-----", "-----END PGP PUBLIC KEY BLOCK-----"
    return f"{begin}\n{header}\n{text}\n=abcd\n{end}\n".encode()


def test_one_key_has_one_fingerprint_however_it_is_written() -> None:
    forms = [OLD_FORMAT, NEW_FORMAT, armored(OLD_FORMAT), armored(NEW_FORMAT, header="")]
    found = {keys.fingerprint(form) for form in forms}
    assert len(found) == 1
    assert len(found.pop()) == 40


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x98", bytes([0x98, 1, 3]), armored(b"<html>")])
def test_what_is_no_key_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no OpenPGP public key"):
        keys.fingerprint(data)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("E: GPG error: ... NO_PUBKEY 1234", "it is not signed with this key"),
        ("E: The following signatures were invalid: BADSIG 12", "its signature is wrong"),
        ("E: The repository 'x' is not signed.", "it is not signed"),
        ("E: Failed to fetch x  Hash Sum mismatch", "a file has not the checksum"),
        ("E: Could not connect to 10.0.0.1:80", "Could not connect to 10.0.0.1:80"),
    ],
)
def test_meaning_of_apts_words(output: str, expected: str) -> None:
    assert expected in source.meaning(output)


def test_a_directory_of_the_host_needs_no_key() -> None:
    params: dict[str, object] = {
        "directory": "/var/lib/packages",
        "uri": None,
        "suite": "/",
        "components": [],
    }
    text = source.described(params, Path("/nowhere"))
    assert text.splitlines()[1:] == [
        "Types: deb",
        "URIs: copy:/var/lib/packages",
        "Suites: ./",
        "Trusted: yes",
    ]


def test_a_directory_that_others_may_write_is_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lstat(path: Path) -> SimpleNamespace:
        return SimpleNamespace(
            st_uid=1000 if path.name == "theirs" else 0, st_mode=modes.get(path.name, 0o40755)
        )

    inside = ["link", "a.deb"]
    modes = {"open.deb": 0o100666, "link": 0o120777}
    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(Path, "rglob", lambda path, _: [path / name for name in inside])
    assert source.not_roots(tmp_path) is None
    inside = ["a.deb", "open.deb"]
    assert source.not_roots(tmp_path) == tmp_path / "open.deb"
    assert source.not_roots(tmp_path / "theirs" / "below") == tmp_path / "theirs"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("PLACE='/etc/apt/sources.list.d/'\n", "/etc/apt/sources.list.d/own.sources"),
        ("PLACE='/etc/apt/deploy.sources.d/'\n", "/etc/apt/deploy.sources.d/own.sources"),
        ("", "/etc/apt/sources.list.d/own.sources"),
    ],
)
def test_a_directory_counts_beside_a_bundle_too(said: str, expected: str) -> None:
    params: dict[str, object] = {
        "name": "own",
        "directory": "/d",
        **dict.fromkeys(("uri", "key_url", "key_fingerprint", "keyring")),
        "suite": "/",
        "components": [],
    }
    own = source.Source(SimpleNamespace(params=params, run_command=lambda _: (0, said, "")))
    assert str(own.file) == expected
    assert own.files == [own.file]


@pytest.mark.parametrize("before", [{}, {"own.sources": b"URIs: http://y", "keys/own.asc": b"of y"}])
def test_a_source_whose_lists_do_not_come_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, bytes]
) -> None:
    """The next run would take it for known, and never ask it for its lists."""
    monkeypatch.setattr(source, "_KEYS", tmp_path / "keys")
    monkeypatch.setattr(source, "_SOURCES", tmp_path)
    params: dict[str, object] = {
        "name": "own",
        "uri": "http://x",
        "key_url": "http://x/key",
        "key_fingerprint": "0" * 40,
        **dict.fromkeys(("directory", "keyring")),
        "suite": "/",
        "components": [],
    }
    (tmp_path / "keys").mkdir()
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    asked: list[list[str]] = []

    def run(command: list[str]) -> tuple[int, str, str]:
        assert own.file.exists()
        asked.append(command)
        return 100, "", "E: Failed to fetch http://x"

    def fail(msg: str) -> None:
        raise RuntimeError(msg)

    own = source.Source(SimpleNamespace(params=params, run_command=run, fail_json=fail))
    with pytest.raises(RuntimeError, match="Failed to fetch"):
        own.write(b"of x")
    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert found == before
    # Without it apt would say that all went well.
    assert "--error-on=any" in asked[0]
    assert not own.is_current()
