"""The key and the certificate by which members of a database know each other: both follow from one secret."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import NameOID

_BYTES = 32
_PURPOSE = b"deploy: members of the database of a cluster"
_FROM = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_UNTIL = dt.datetime(2999, 12, 31, tzinfo=dt.UTC)
_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "deploy-database")])


def member_identity(secret: str) -> dict[str, str]:
    """``key`` and ``certificate`` as PEM texts: the same for the same secret, on whatever machine.

    The certificate is its own authority, so that only who has the key is a member.
    """
    if not secret:
        message = "mariadb_cluster_key is empty: members of a database would not know each other"
        raise ValueError(message)
    derived = HKDF(hashes.SHA256(), _BYTES, salt=None, info=_PURPOSE).derive(secret.encode())
    key = Ed25519PrivateKey.from_private_bytes(derived)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_NAME)
        .issuer_name(_NAME)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return {
        "key": key.private_bytes(*form).decode(),
        "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode(),
    }


class FilterModule:
    """What templates may use."""

    def filters(self) -> dict[str, Callable[[str], dict[str, str]]]:
        """The filters by name."""
        return {"member_identity": member_identity}
