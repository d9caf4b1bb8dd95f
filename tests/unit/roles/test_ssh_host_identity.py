import subprocess
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

plugin = load_module("playbooks/action_plugins/ssh_host_identity.py")
module = load_module("roles/ssh_server/library/ssh_host_identity.py")

OTHERS = "mine ssh-ed25519 AAAA\n@cert-authority *.other ssh-ed25519 BBBB other\n"


@pytest.fixture(name="key")
def _key(tmp_path: Path) -> str:
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    return (tmp_path / "key.pub").read_text()


def test_ssh_itself_reads_the_certificate(key: str, tmp_path: Path) -> None:
    authority = plugin.Authority("secret")
    (tmp_path / "it-cert.pub").write_text(authority.certificate(key, "node1", ["node1", "10.0.0.1"]))
    (tmp_path / "authority").write_text(authority.line)
    command = ["ssh-keygen", "-L", "-f", str(tmp_path / "it-cert.pub")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "ssh-ed25519-cert-v01@openssh.com host certificate" in said
    assert "Valid: forever" in said
    assert said.split("Principals:")[1].split("Critical")[0].split() == ["10.0.0.1", "node1"]
    of_authority = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(tmp_path / "authority")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert f"Signing CA: ED25519 {of_authority}" in said


def test_the_same_secret_makes_the_same_authority() -> None:
    assert plugin.Authority("one").line == plugin.Authority("one").line != plugin.Authority("two").line


def test_a_certificate_is_made_anew_where_anything_differs(key: str, tmp_path: Path) -> None:
    authority, names = plugin.Authority("secret"), ["node1", "10.0.0.1"]
    certificate = authority.certificate(key, "node1", names)
    assert authority.has_certified(certificate, key, [*reversed(names)])
    assert not authority.has_certified(certificate, key, ["node1"])
    assert not plugin.Authority("other").has_certified(certificate, key, names)
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", str(tmp_path / "new")], check=True)
    assert not authority.has_certified(certificate, (tmp_path / "new.pub").read_text(), names)
    for text in ("", "nonsense", key, certificate.replace("AAAA", "AAAB", 1)):
        assert not authority.has_certified(text, key, names)


def test_no_certificate_is_good_for_every_name(key: str) -> None:
    with pytest.raises(ValueError, match="no names"):
        plugin.Authority("secret").certificate(key, "node1", [])


def test_lines_of_others_stay() -> None:
    once = module.known_hosts(OTHERS, "ssh-ed25519 CCCC")
    assert once == OTHERS + "@cert-authority * ssh-ed25519 CCCC deploy\n"
    assert module.known_hosts(once, "ssh-ed25519 DDDD") == once.replace("CCCC", "DDDD")
    assert module.known_hosts(once, "") == OTHERS
