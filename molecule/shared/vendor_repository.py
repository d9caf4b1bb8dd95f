"""Makes a signed package repository on the machine it runs on, as a stand-in for a vendor's.

``python3 vendor_repository.py DIRECTORY PACKAGES``: PACKAGES is JSON, a list of ``name``, ``version``
and, where wanted,
``depends`` (a list) and ``files`` (path -> text; those in a bin or sbin directory can be executed).
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SIGNER = "Stand-in <vendor@example.org>"


def build(package: dict[str, Any], place: Path) -> None:
    """One package, with its files and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for path, text in package.get("files", {}).items():
            file = root / path.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755 if file.parent.name in {"bin", "sbin"} else 0o644)
        fields = {
            "Package": package["name"],
            "Version": package["version"],
            "Architecture": "amd64",
            "Maintainer": SIGNER,
            "Depends": ", ".join(package.get("depends", [])),
            "Description": "a stand-in",
        }
        (root / "DEBIAN").mkdir()
        control = "".join(f"{key}: {value}\n" for key, value in fields.items() if value)
        (root / "DEBIAN/control").write_text(control)
        # As in Debian's own archive: an epoch is no part of a file's name.
        number = package["version"].rpartition(":")[2]
        target = place / f"{package['name']}_{number}_amd64.deb"
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "--build", name, target], check=True)


def listed(place: Path) -> str:
    """The text of Packages."""
    entries = []
    for path in sorted(place.glob("*.deb")):
        control = subprocess.run(
            ["dpkg-deb", "--field", path], check=True, capture_output=True, text=True
        ).stdout
        data = path.read_bytes()
        entries.append(
            f"{control}Filename: ./{path.name}\nSize: {len(data)}\n"
            f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
        )
    return "\n".join(entries)


def sign(place: Path) -> None:
    """Release, signed with a key that is made when there is none."""
    lines = ["Origin: NVIDIA", "Label: Stand-in", "Suite: ", "Date: Thu, 01 Jan 2026 00:00:00 UTC", "SHA256:"]
    for name in ("Packages", "Packages.gz"):
        data = (place / name).read_bytes()
        lines.append(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}")
    (place / "Release").write_text("\n".join(lines) + "\n")
    os.environ["GNUPGHOME"] = str(place / ".gnupg")
    (place / ".gnupg").mkdir(mode=0o700, exist_ok=True)
    gpg = ["gpg", "--batch", "--quiet", "--yes"]
    if subprocess.run([*gpg, "--list-secret-keys", SIGNER], check=False, capture_output=True).returncode != 0:
        subprocess.run(
            [*gpg, "--passphrase", "", "--quick-generate-key", SIGNER, "rsa2048", "sign", "never"], check=True
        )
    subprocess.run([*gpg, "--armor", "--output", place / "key.asc", "--export", SIGNER], check=True)
    subprocess.run([*gpg, "--output", place / "InRelease", "--clearsign", place / "Release"], check=True)
    shown = subprocess.run(
        [*gpg, "--with-colons", "--fingerprint", SIGNER], check=True, capture_output=True, text=True
    ).stdout
    fingerprint = next(line.split(":")[9] for line in shown.splitlines() if line.startswith("fpr:"))
    (place / "fingerprint").write_text(fingerprint)


def main(directory: str, packages: str) -> None:
    """Builds all packages, lists and signs them."""
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    for package in json.loads(packages):
        build(package, place)
    text = listed(place).encode()
    (place / "Packages").write_bytes(text)
    (place / "Packages.gz").write_bytes(gzip.compress(text))
    sign(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
