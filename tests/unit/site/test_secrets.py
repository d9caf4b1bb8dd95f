import os
import stat
from pathlib import Path

import pytest
import yaml

from deploy.errors import DeployError
from deploy.site.checks import site_findings
from deploy.site.inventory import read_site
from deploy.site.secrets import _vault, fill_secrets, read_secrets, secret_names
from tests.unit.site.sites import write_site

_OTHERS = [
    "grafana_admin_password",
    "slurm_auth_key",
    "slurm_portal_key",
    "slurm_registry_key",
    "slurm_registry_password",
    "slurm_rest_key",
    "slurm_tokens_key",
    "slurmdbd_database_password",
    "ssh_server_authority_key",
]


def test_generated_once_and_private(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert fill_secrets(site, None) == secret_names()
    path = tmp_path / "secrets.yml"
    first = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    values = yaml.safe_load(first)
    assert sorted(values) == [
        "grafana_admin_password",
        "munge_key",
        "slurm_auth_key",
        "slurm_portal_key",
        "slurm_registry_key",
        "slurm_registry_password",
        "slurm_rest_key",
        "slurm_tokens_key",
        "slurmdbd_database_password",
        "ssh_server_authority_key",
    ]
    assert len(set(values.values())) == len(values)
    assert all(len(value) >= 43 for value in values.values())
    assert fill_secrets(site, None) == []
    assert path.read_text() == first


def test_only_what_is_missing_is_filled(tmp_path: Path) -> None:
    kept = "# mine\nmunge_key: " + "k3Y_" * 12
    site = read_site(write_site(tmp_path, files={"secrets.yml": kept}))
    assert fill_secrets(site, None) == _OTHERS
    assert (tmp_path / "secrets.yml").read_text().startswith(kept + "\n")


def test_what_the_inventory_sets_is_not_generated(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": "munge_key: " + "k3Y_" * 12}))
    assert fill_secrets(site, None) == _OTHERS


def test_vaulted_with_a_password_file(tmp_path: Path) -> None:
    password = tmp_path / "vault-password"
    password.write_text("correct horse")
    site = read_site(write_site(tmp_path))
    fill_secrets(site, password)
    path = tmp_path / "secrets.yml"
    assert path.read_text().startswith("$ANSIBLE_VAULT;")
    assert fill_secrets(site, password) == []
    with pytest.raises(DeployError) as problem:
        fill_secrets(site, None)
    assert problem.value.findings[0].reference == "vault-password-needed"
    password.write_text("wrong")
    with pytest.raises(DeployError) as problem:
        fill_secrets(site, password)
    assert problem.value.findings[0].reference == "vault-password-wrong"


def test_what_is_encrypted_is_in_the_clear_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a new file nor one that is completed: each is looked at when it is forced to disk."""
    written: list[str] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        written.extend([path.read_text()] if path.is_file() else [])

    monkeypatch.setattr(os, "fsync", fsync)
    password = tmp_path / "vault-password"
    password.write_text("correct horse")
    site = read_site(write_site(tmp_path))
    monkeypatch.setattr("deploy.site.secrets.secret_names", lambda: ["munge_key"])
    assert fill_secrets(site, password) == ["munge_key"]
    monkeypatch.setattr("deploy.site.secrets.secret_names", lambda: ["munge_key", "grafana_admin_password"])
    assert fill_secrets(site, password) == ["grafana_admin_password"]
    assert [text.startswith("$ANSIBLE_VAULT;") for text in written] == [True, True]
    assert sorted(read_secrets(tmp_path / "secrets.yml", password)) == ["grafana_admin_password", "munge_key"]


def test_a_broken_file_is_not_shown(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"secrets.yml": "munge_key: [5ecr3t\n"}))
    with pytest.raises(DeployError) as problem:
        fill_secrets(site, None)
    assert problem.value.findings[0].reference == "secrets-invalid"
    assert "5ecr3t" not in str(problem.value)


_KEPT = """\
# Ours, and nobody else's.
"munge_key": >-
  k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_
  k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_

# The database's.
slurmdbd_database_password: p4ss_p4ss_p4ss_p4ss_
site_word: kept
"""


@pytest.mark.parametrize("is_vaulted", [False, True], ids=["in the clear", "vaulted"])
def test_what_is_renewed_is_another_and_the_rest_stays(tmp_path: Path, *, is_vaulted: bool) -> None:
    password = tmp_path / "vault-password"
    password.write_text("correct horse")
    site = read_site(write_site(tmp_path, files={"secrets.yml": _KEPT}))
    path, given = tmp_path / "secrets.yml", password if is_vaulted else None
    if is_vaulted:
        path.write_text(_vault("encrypt", path, password, _KEPT))
    fill_secrets(site, given)
    before = read_secrets(path, given)
    assert fill_secrets(site, given, renewed=["munge_key"]) == ["munge_key"]
    after = read_secrets(path, given)
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == ["munge_key"]
    assert len(after["munge_key"]) == 128
    if not is_vaulted:
        text = path.read_text()
        assert "k3Y" not in text
        assert text.startswith(
            "# Ours, and nobody else's.\n\n# The database's.\nslurmdbd_database_password: p4ss"
        )


def test_a_renewed_one_for_a_preview_alone_is_in_a_file_of_its_own(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    fill_secrets(site, None)
    before, borrowed = (tmp_path / "secrets.yml").read_text(), tmp_path / "borrowed.yml"
    assert fill_secrets(site, None, borrowed, ["munge_key"]) == ["munge_key"]
    assert (tmp_path / "secrets.yml").read_text() == before
    assert read_secrets(borrowed, None).keys() == {"munge_key"}


@pytest.mark.parametrize(
    ("key", "is_taken"),
    [
        ("kQ7dz3" * 20 + "FIXME" + "x1", True),
        ("kQ7dz3" * 20 + "ToDo" + "x1", True),
        ("fixme" + "-" * 30, False),
        ("please_fix-me_before_use_of_this", False),
        ("kQ7dz3" * 20 + "changeme", False),
    ],
)
def test_a_drawn_key_is_no_placeholder_by_chance(tmp_path: Path, key: str, is_taken: bool) -> None:  # noqa: FBT001
    site = read_site(write_site(tmp_path))
    fill_secrets(site, None)
    place = tmp_path / "secrets.yml"
    content = yaml.safe_load(place.read_text())
    place.write_text(yaml.safe_dump({**content, "munge_key": key}))
    found = {finding.reference for finding in site_findings(site)}
    assert ("placeholder-secret" not in found) == is_taken


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (["rest", "registry"], []),
        (["rest"], ["registry-certificate-incomplete"]),
        (["registry"], ["rest-certificate-incomplete"]),
    ],
)
def test_the_key_of_a_certificate_may_be_among_the_secrets(
    tmp_path: Path, kept: list[str], expected: list[str]
) -> None:
    groups = "[slurm-master]\nctl1\n[slurm-node]\nnode1\n[slurm-rest]\nctl1\n[slurm-registry]\nctl1\n"
    certificate = '"-----BEGIN CERTIFICATE-----\\nMII=\\n-----END CERTIFICATE-----"'
    given = "".join(f"slurm_{name}_certificate: {certificate}\n" for name in ("rest", "registry"))
    inventory = write_site(tmp_path, groups, {"group_vars/all.yml": given})
    keys = "".join(f"slurm_{name}_certificate_key: {'k' * 40}\n" for name in kept)
    (tmp_path / "secrets.yml").write_text(keys)
    (tmp_path / "secrets.yml").chmod(0o600)
    found = [it.reference for it in site_findings(read_site(inventory)) if "certificate" in it.reference]
    assert found == expected


def test_a_key_among_the_secrets_wants_its_certificate(tmp_path: Path) -> None:
    groups = "[slurm-master]\nctl1\n[slurm-node]\nnode1\n[slurm-rest]\nctl1\n"
    inventory = write_site(tmp_path, groups)
    (tmp_path / "secrets.yml").write_text(f"slurm_rest_certificate_key: {'k' * 40}\n")
    (tmp_path / "secrets.yml").chmod(0o600)
    (found,) = [it for it in site_findings(read_site(inventory)) if "certificate" in it.reference]
    assert (found.where, found.reference) == ("secrets.yml", "rest-certificate-incomplete")
