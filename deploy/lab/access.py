"""The way in: the lab's ssh key, the machines' host keys, and the wait until they answer."""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.durable import replace_file
from deploy.errors import DeployError, ExitCode, Finding
from deploy.lab.ownership import hand_over, make_directory
from deploy.lab.parallel import for_each
from deploy.lab.recipe import ADMIN
from deploy.place import private_place

_BETWEEN_TRIES = 0.5
_PUBLIC = 0o644


@dataclass(frozen=True)
class KeyPair:
    """An ed25519 key pair as text."""

    private: str
    public: str


def make_key_pair(comment: str) -> KeyPair:
    """A new key pair; its private half lay in a file only for a moment, for root alone."""
    with private_place("lab") as scratch:
        path = Path(scratch, "key")
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)],
            stdin=subprocess.DEVNULL,
            check=True,
        )
        return KeyPair(path.read_text(), path.with_suffix(".pub").read_text())


@dataclass(frozen=True)
class KeyDirectory:
    """``.lab`` beside the inventory: the key that opens the machines, the keys that prove them."""

    path: Path

    @property
    def identity(self) -> Path:
        """The private key that the machines' admin user accepts."""
        return self.path / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The host keys, made on this machine and never learned over the network."""
        return self.path / "known_hosts"

    def public_key(self) -> str:
        """The public half, made together with the private one when neither exists."""
        public = self.identity.with_suffix(".pub")
        if not self.identity.exists():
            pair = make_key_pair("deploy-lab")
            make_directory(self.path, mode=0o700)
            replace_file(public, pair.public, _PUBLIC)
            # Last: with it there is a pair.
            replace_file(self.identity, pair.private)
            hand_over(public)
            hand_over(self.identity)
        return public.read_text()

    def write_known_hosts(self, keys: Mapping[str, str]) -> None:
        """``keys``: address of a machine -> its public host key."""
        text = "".join(f"{address} {key}\n" for address, key in keys.items())
        replace_file(self.known_hosts, text, _PUBLIC)
        hand_over(self.known_hosts)

    def ssh_command(self, address: str, *options: str) -> list[str]:
        """An ssh call that accepts nothing but the host key recorded here."""
        return [
            "ssh",
            *("-F", "none"),
            *("-i", str(self.identity)),
            *("-o", f'UserKnownHostsFile="{self.known_hosts}"'),
            *("-o", "GlobalKnownHostsFile=none"),
            *("-o", "StrictHostKeyChecking=yes"),
            *("-o", "IdentitiesOnly=yes"),
            *options,
            f"{ADMIN}@{address}",
        ]


def wait_for_ssh(lab: str, keys: KeyDirectory, addresses: Mapping[str, str], seconds: float) -> None:
    """Return when every machine lets the admin in with its proven host key, or name those that do not."""
    deadline = time.monotonic() + seconds
    answers = for_each(addresses, lambda host: _last_refusal(keys, addresses[host], deadline))
    silent = {host: reason for host, reason in answers.items() if reason is not None}
    if silent:
        raise DeployError(
            *(
                Finding(
                    where=host,
                    reference="lab-no-answer",
                    message=f"no ssh login at {addresses[host]} within {seconds:.0f} seconds: {reason}",
                    hint=f"look inside: deploy lab exec --name {lab} {host} -- systemctl status",
                )
                for host, reason in silent.items()
            ),
            exit_code=ExitCode.UNREACHABLE,
        )


def _last_refusal(keys: KeyDirectory, address: str, deadline: float) -> str | None:
    command = [*keys.ssh_command(address, "-o", "BatchMode=yes", "-o", "ConnectTimeout=3"), "true"]
    while True:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
        if answer.returncode == 0:
            return None
        if time.monotonic() > deadline:
            return (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        time.sleep(_BETWEEN_TRIES)
