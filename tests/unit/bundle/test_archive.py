import hashlib
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy.bundle.archive import Signer, in_this_directory, name_and_version, release_file

STANZA = f"""\
Package: munge
Version: 1:0.5-1
Filename: pool/main/m/munge/munge_0.5-1_amd64.deb
Size: 5
SHA256: {"a" * 64}
Description: x
"""


def test_name_and_version_of_a_file() -> None:
    assert name_and_version("munge_1%3a0.5-1+b1_amd64.deb") == ("munge", "1:0.5-1+b1")


def test_a_paragraph_gets_the_files_new_place() -> None:
    placed = in_this_directory(STANZA, {"a" * 64: "munge_1%3a0.5-1_amd64.deb"})
    assert "Filename: ./munge_1%3a0.5-1_amd64.deb\n" in placed
    assert placed.endswith("Description: x")
    with pytest.raises(KeyError):
        in_this_directory(STANZA, {"b" * 64: "munge.deb"})


def test_what_is_signed_names_the_list() -> None:
    text = release_file("trixie", "amd64", b"list", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert "Date: Fri, 02 Jan 2026 03:04:05 GMT\n" in text
    assert text.endswith(f"SHA256:\n {hashlib.sha256(b'list').hexdigest()} 4 Packages\n")


@pytest.mark.skipif(
    not all(map(shutil.which, ("gpg", "gpg-agent", "gpgv"))), reason="`make system` installs gpg for it"
)
def test_a_signature_is_good_for_its_text_alone(tmp_path: Path) -> None:
    signer = Signer(tmp_path / "gnupg")
    try:
        (tmp_path / "Release").write_text("Suite: trixie\n")
        signer.sign(tmp_path / "Release", tmp_path / "InRelease")
        (tmp_path / "key.asc").write_text(signer.public_key)
    finally:
        signer.end()
    keyring = tmp_path / "key.gpg"
    subprocess.run(["gpg", "--batch", "--dearmor", "--output", keyring, tmp_path / "key.asc"], check=True)

    def verdict() -> int:
        command = ["gpgv", "--keyring", str(keyring), str(tmp_path / "InRelease")]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert verdict() == 0
    signed = (tmp_path / "InRelease").read_text()
    (tmp_path / "InRelease").write_text(signed.replace("trixie", "sid"))
    assert verdict() != 0
