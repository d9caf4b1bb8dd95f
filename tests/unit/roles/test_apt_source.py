import base64

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
