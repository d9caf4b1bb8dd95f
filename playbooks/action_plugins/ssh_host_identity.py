"""Action plugin of ssh_host_identity: certifies a host's key on the machine that runs deploy.

The authority's private key follows from the site's secret and comes to no host. The certificate names the
host, by which others know it (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT), and holds until the key is another one.
"""

from collections.abc import Collection
from typing import Any

from ansible.plugins.action import ActionBase
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_BYTES = 32
_FOR_EVER = 2**64 - 1
_PURPOSE = b"deploy: authority of the ssh host keys of a cluster"


class Authority:
    """Who vouches for the keys of a cluster's hosts."""

    def __init__(self, secret: str) -> None:
        derived = HKDF(hashes.SHA256(), _BYTES, salt=None, info=_PURPOSE).derive(secret.encode())
        self._key = Ed25519PrivateKey.from_private_bytes(derived)

    @property
    def line(self) -> str:
        """Its public key, as known_hosts files have it."""
        form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        return self._key.public_key().public_bytes(*form).decode()

    def certificate(self, key: str, name: str, names: Collection[str]) -> str:
        """A certificate of a host's public key for these names. Raises ValueError when it is none."""
        builder = (
            serialization.SSHCertificateBuilder()
            .public_key(_ed25519(key))
            .type(serialization.SSHCertificateType.HOST)
            .key_id(name.encode())
            .valid_principals(_principals(names))
            .valid_after(0)
            .valid_before(_FOR_EVER)
        )
        return f"{builder.sign(self._key).public_bytes().decode()} {name}\n"

    def has_certified(self, certificate: str, key: str, names: Collection[str]) -> bool:
        """Whether that is a certificate of its own for this key and these names, no more and no fewer."""
        try:
            found = serialization.load_ssh_public_identity(certificate.encode())
            if not isinstance(found, serialization.SSHCertificate):
                return False
            found.verify_cert_signature()
        except (ValueError, InvalidSignature):
            return False
        return (
            found.signature_key() == self._key.public_key()
            and found.public_key() == _ed25519(key)
            and found.type == serialization.SSHCertificateType.HOST
            and sorted(found.valid_principals) == _principals(names)
            and found.valid_before == _FOR_EVER
        )


def _principals(names: Collection[str]) -> list[bytes]:
    """Without one a certificate would be good for every name."""
    if not names:
        message = "no names"
        raise ValueError(message)
    return sorted({name.encode() for name in names})


def _ed25519(key: str) -> Any:  # noqa: ANN401 - whatever key it is; the builder takes those that it knows
    return serialization.load_ssh_public_key(key.encode())


class ActionModule(ActionBase):  # type: ignore[misc]
    """Asks the host for its key, and gives it a certificate where that is not there."""

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer of the module; of two calls where the certificate was missing."""
        super().run(tmp, task_vars)
        _, told = self.validate_argument_spec(
            {
                "secret": {"type": "str", "required": True, "no_log": True},
                "names": {"type": "list", "elements": "str", "default": []},
                "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            }
        )
        authority, host = Authority(told["secret"]), str((task_vars or {})["inventory_hostname"])
        names = told["names"] or [host]
        arguments = {"authority": authority.line, "state": told["state"]}
        found: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        key = found.pop("key", "")
        certificate = found.pop("certificate", "")
        if found.get("failed") or found.get("refused") or told["state"] == "absent":
            return found
        if authority.has_certified(certificate, key, names):
            return found
        arguments["certificate"] = authority.certificate(key, host, names)
        made: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        made.pop("key", None)
        made.pop("certificate", None)
        return {**made, "changed": True} if not made.get("failed") else made
