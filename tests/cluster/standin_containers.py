"""What stands in for Enroot and Pyxis, which no registry has: declared for a lab, from files in its /home."""

import base64
import hashlib
import io
import json
import tarfile

from tests.cluster.lab_cluster import Cluster
from tests.contract.content import ROOT

_STANDIN = ROOT / "molecule/pyxis/standin"
_PACKAGE = """
set -e
cd /home && rm -rf enroot && mkdir -p enroot/DEBIAN enroot/usr/bin enroot/etc/enroot/hooks.d
mkdir -p enroot/etc/enroot/mounts.d enroot/usr/share/enroot/hooks.d
echo '#!/bin/sh' > enroot/usr/bin/enroot
printf '%s\\n' 'Package: enroot' 'Version: 1' 'Architecture: all' 'Maintainer: x <x@y>' 'Description: x' \
  'Depends: squashfs-tools' > enroot/DEBIAN/control
dpkg-deb --root-owner-group --build enroot enroot.deb > /dev/null
sha256sum enroot.deb
"""


def archive() -> bytes:
    """The plugin's sources, packed."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(_STANDIN, arcname="standin")
    return packed.getvalue()


def declare(cluster: Cluster) -> None:
    """Puts what is fetched where all machines see it, and containers into the inventory."""
    content = archive()
    cluster.on(
        "ctl1", "sh", "-c", f"echo {base64.b64encode(content).decode()} | base64 -d > /home/plugin.tar.gz"
    )
    checksum = cluster.on("ctl1", "sh", "-c", _PACKAGE).split()[0]
    text = cluster.inventory.read_text()
    cluster.inventory.write_text(f"{text}\n[slurm-container:children]\nslurm-node\n")
    source = {
        "version": "1.0",
        "url": "file:///home/plugin.tar.gz",
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    variables = {
        "pyxis_source": source,
        "enroot_package_files": [{"url": "file:///home/enroot.deb", "sha256": checksum}],
        "enroot_hooks": [],
        # One that each machine has by itself.
        "enroot_sysctls": {"net.ipv4.ip_default_ttl": "65"},
    }
    (cluster.directory / "group_vars/slurm-cluster.yml").write_text(json.dumps(variables))


def make_image(cluster: Cluster, host: str, path: str, words: str) -> None:
    """An image that a job knows by its os-release, on a host that has Enroot."""
    script = (
        f"rm -rf /root/image {path} && mkdir -p /root/image/etc && echo '{words}' >/root/image/etc/os-release"
    )
    cluster.on(host, "sh", "-c", f"{script} && mksquashfs /root/image {path} -quiet -no-progress")
