"""Accounts of the registry: hashed, and only what changes is hashed anew."""

from pathlib import Path

from tests.unit.roles.loading import load_module

accounts = load_module("roles/slurm_registry/library/registry_accounts.py")
instances = load_module("roles/slurm_registry/library/registry_instances.py")
HASHES = accounts.Hashes()


def entry(name: str, password: str) -> dict[str, str]:
    return {"name": name, "password": password}


def test_a_hash_fits_its_password_alone() -> None:
    made = HASHES.made("a password")
    assert made.startswith("$6$")
    assert "a password" not in made
    assert HASHES.fits("a password", made)
    assert not HASHES.fits("another", made)
    assert not HASHES.fits("*", "*")


def test_only_what_changes_is_hashed_anew() -> None:
    first = accounts.wanted([entry("b", "1"), entry("a", "2")], {}, HASHES)
    assert accounts.wanted([entry("a", "2"), entry("b", "1")], accounts.known(first), HASHES) == first
    then = accounts.wanted([entry("a", "3"), entry("b", "1")], accounts.known(first), HASHES)
    assert then.splitlines()[1] == first.splitlines()[1]
    assert HASHES.fits("3", accounts.known(then)["a"])
    assert accounts.wanted([], accounts.known(first), HASHES) == ""


def test_caches_that_are_declared_no_more(tmp_path: Path) -> None:
    for name in ("own", "docker.io", "nvcr.io"):
        (tmp_path / f"{name}.yml").touch()
    assert instances.gone(tmp_path, ["own", "nvcr.io"]) == ["docker.io"]
    assert instances.gone(tmp_path, []) == ["docker.io", "nvcr.io"]
