"""Where on a host a secret is."""

from collections.abc import Iterable

from tests.cluster.lab_cluster import Cluster


def in_journal(cluster: Cluster, host: str, secrets: Iterable[str]) -> str:
    """The lines of the host's journal with one of them."""
    patterns = "\n".join(secrets)
    return cluster.on(host, "sh", "-c", f"journalctl --no-pager | grep -F '{patterns}' || true")


def in_files(cluster: Cluster, host: str, secrets: Iterable[str]) -> dict[str, str]:
    """The files with one of them, and their modes, as in ``-rw-r-----``."""
    patterns = "\n".join(secrets)
    look = f"grep -rlIF --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev '{patterns}' / 2>/dev/null"
    found = cluster.on(host, "sh", "-c", f"{look} | xargs -r stat -c '%A %n'")
    return {path: mode for mode, _, path in (line.partition(" ") for line in found.splitlines())}
