"""What members of a database know each other by, and their leave to begin."""

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.unit.roles.loading import load_module

identity = load_module("playbooks/filter_plugins/member_identity.py")
begin = load_module("roles/mariadb/library/mariadb_begin.py")


def test_the_same_secret_is_the_same_identity_and_another_is_not() -> None:
    found = identity.member_identity("one secret")
    assert found == identity.member_identity("one secret")
    other = identity.member_identity("another secret")
    assert found["key"] != other["key"]
    certificate = x509.load_pem_x509_certificate(found["certificate"].encode())
    key = serialization.load_pem_private_key(found["key"].encode(), None)
    assert certificate.public_key() == key.public_key()
    certificate.verify_directly_issued_by(certificate)


def test_without_a_secret_there_is_none() -> None:
    with pytest.raises(ValueError, match="mariadb_cluster_key is empty"):
        identity.member_identity("")


@pytest.mark.parametrize("before", ["0", "1"])
def test_a_member_that_may_begin_keeps_all_else(before: str) -> None:
    kept = f"# GALERA saved state\nversion: 2.1\nuuid:    1a2b\nseqno:   7\nsafe_to_bootstrap: {before}\n"
    assert begin.may_begin(kept) == kept.replace(f"bootstrap: {before}", "bootstrap: 1")
