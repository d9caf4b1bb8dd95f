"""What machines of a rehearsal are told of this machine's pip."""

from pathlib import Path

import pytest

from deploy.lab.pip_settings import pip_entries


def test_certificates_travel(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\ncert = {tmp_path}/ca.crt\nindex-url = https://mirror.example/simple\n")
    told, certificates = pip_entries(settings)
    assert told.path == "/etc/pip.conf"
    assert told.text == f"[global]\nindex-url = https://mirror.example/simple\ncert = {certificates.path}\n"
    assert certificates.text == "-----BEGIN CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[global\n",
        "[global]\ncert = /nowhere/ca.crt\n",
        "[global]\nindex-url = https://alice:secret@mirror.example/simple\n",
        "[global]\nextra-index-url = file:///srv/pypi\n",
    ],
)
def test_nothing_that_is_of_no_use_elsewhere_or_secret(text: str, tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(text)
    assert pip_entries(settings) == []


def test_a_machine_without_settings(tmp_path: Path) -> None:
    assert pip_entries(tmp_path / "pip.conf") == []
