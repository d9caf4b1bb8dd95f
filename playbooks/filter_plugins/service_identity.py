"""The key and the certificate of a service of the cluster: both follow from a secret and its names."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from hashlib import sha256
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BYTES = 32
_FROM = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_UNTIL = dt.datetime(2999, 12, 31, tzinfo=dt.UTC)


def registry_identity(secret: str, names: Sequence[str]) -> dict[str, str]:
    """Of the registry of images."""
    if not secret or not names:
        message = (
            "slurm_registry_key or slurm_registry_names is empty: nobody could tell the registry from others"
        )
        raise ValueError(message)
    return _identity(secret, names, b"deploy: registry of images of a cluster", "deploy-registry")


def rest_identity(secret: str, names: Sequence[str]) -> dict[str, str]:
    """Of the REST API of Slurm."""
    if not secret or not names:
        message = "slurm_rest_key or slurm_rest_names is empty: nobody could tell the REST API from others"
        raise ValueError(message)
    return _identity(secret, names, b"deploy: REST API of a cluster", "deploy-rest")


def _identity(secret: str, names: Sequence[str], purpose: bytes, called_itself: str) -> dict[str, str]:
    """``key`` and ``certificate`` as PEM texts: the same for the same secret and names, on whatever machine.

    Who trusts the certificate trusts these names alone: it certifies no other.
    """
    derived = HKDF(hashes.SHA256(), _BYTES, salt=None, info=purpose).derive(secret.encode())
    key = Ed25519PrivateKey.from_private_bytes(derived)
    called = [_general(name) for name in sorted(set(names))]
    # Another number with other names: programs remember certificates by issuer and number.
    number = int.from_bytes(sha256("\n".join(sorted(set(names))).encode()).digest()[:8], "big") >> 1
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called_itself)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(number + 1)
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectAlternativeName(called), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, None)
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return {
        "key": key.private_bytes(*form).decode(),
        "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode(),
    }


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class FilterModule:
    """What templates may use."""

    def filters(self) -> dict[str, Callable[[str, Sequence[str]], dict[str, str]]]:
        """The filters by name."""
        return {"registry_identity": registry_identity, "rest_identity": rest_identity}
