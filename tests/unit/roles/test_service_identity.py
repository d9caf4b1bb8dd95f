"""What hosts trust: the same certificate on whatever machine, for a service's names and no others."""

from ipaddress import ip_address

import pytest
from cryptography import x509

from tests.unit.roles.loading import load_module

filters = load_module("playbooks/filter_plugins/service_identity.py")
identity = filters.registry_identity
NAMES = ["ctl1", "10.0.0.1"]


def certificate(secret: str, names: list[str]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(identity(secret, names)["certificate"].encode())


def test_the_same_secret_and_names_give_the_same() -> None:
    assert identity("a", NAMES) == identity("a", NAMES[::-1])
    assert identity("a", NAMES)["key"] != identity("b", NAMES)["key"]


def test_two_services_of_the_same_secret_have_not_the_same_key() -> None:
    assert identity("a", NAMES)["key"] != filters.rest_identity("a", NAMES)["key"]


def test_it_certifies_the_names_and_nobody_else() -> None:
    made = certificate("a", NAMES)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ctl1"]
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("10.0.0.1")]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    made.verify_directly_issued_by(made)


def test_other_names_have_another_number() -> None:
    assert certificate("a", NAMES).serial_number != certificate("a", ["ctl1"]).serial_number


@pytest.mark.parametrize("service", ["registry", "rest"])
@pytest.mark.parametrize(("secret", "names"), [("", NAMES), ("a", [])])
def test_nothing_follows_from_nothing(service: str, secret: str, names: list[str]) -> None:
    with pytest.raises(ValueError, match=f"slurm_{service}_key or slurm_{service}_names is empty"):
        getattr(filters, f"{service}_identity")(secret, names)
