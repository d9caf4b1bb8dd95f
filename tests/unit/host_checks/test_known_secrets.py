"""A host's own secrets compared with what the site knows."""

import base64
import json
from pathlib import Path

import pytest

from deploy.site.secrets import OF_NO_HOST, secret_names
from tests.unit.host_checks.checks import part, said

known_secrets = part("known_secrets")
KEY = "k3Y_" * 12
OTHER = "other" * 10


def found(root: Path, name: str, known: str, *, is_used: bool = True) -> list[dict[str, str]]:
    return list(known_secrets.check_secrets(root, {name: known}, lambda _: is_used))


def kept(name: str, secret: str) -> str:
    """What a host has in the secret's place."""
    place = known_secrets.PLACES[name]
    if place.is_key_set:
        texts = {"a": OTHER, "b": secret}
        keys = [{"kid": kid, "k": base64.b64encode(text.encode()).decode()} for kid, text in texts.items()]
        return json.dumps({"keys": [keys[0], {**keys[1], "use": "default"}]})
    return f"A=b\n{place.setting}={secret}\nC=d\n" if place.setting else secret


def write(root: Path, name: str, text: str) -> None:
    path = root / known_secrets.PLACES[name].path.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_generated_secret_has_its_place() -> None:
    assert {*known_secrets.PLACES} == {*secret_names()} - OF_NO_HOST


@pytest.mark.parametrize("name", known_secrets.PLACES)
def test_what_the_site_does_not_know_is_an_error_and_never_shown(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, name, OTHER) == []
    write(tmp_path, name, kept(name, KEY))
    assert found(tmp_path, name, KEY) == []
    (finding,) = found(tmp_path, name, OTHER)
    assert said([finding]) == [("error", "unknown-secret")]
    assert name in finding["message"]
    assert not any(secret in str(finding) for secret in (KEY, OTHER))


def test_the_key_that_a_package_made_is_nobodys_before_slurm_runs(tmp_path: Path) -> None:
    write(tmp_path, "munge_key", KEY)
    assert list(known_secrets.secrets_in_use(tmp_path, lambda _: False)) == []
    assert list(known_secrets.secrets_in_use(tmp_path, lambda _: True)) == ["munge_key"]
    assert found(tmp_path, "munge_key", OTHER, is_used=False) == []
    write(tmp_path, "slurmdbd_database_password", f"StoragePass={KEY}\n")
    assert found(tmp_path, "slurmdbd_database_password", OTHER, is_used=False)


def test_a_key_is_somebodys_while_the_services_of_its_cluster_are_stopped(tmp_path: Path) -> None:
    write(tmp_path, "munge_key", KEY)
    cached = tmp_path / "var/spool/slurmd/conf-cache/slurm.conf"
    cached.parent.mkdir(parents=True)
    cached.write_text("ClusterName=theirs\nSlurmctldHost=ctl0\n")
    assert list(known_secrets.secrets_in_use(tmp_path, lambda _: False)) == ["munge_key"]
    assert said(found(tmp_path, "munge_key", OTHER, is_used=False)) == [("error", "unknown-secret")]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"keys": []}', '{"keys": [{}]}', '{"keys": 1}', '{"keys": [1]}']
)
def test_a_set_of_keys_that_slurm_could_not_read_is_nobodys(tmp_path: Path, text: str) -> None:
    write(tmp_path, "slurm_auth_key", text)
    assert found(tmp_path, "slurm_auth_key", KEY) == []
