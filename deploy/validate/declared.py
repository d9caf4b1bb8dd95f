"""The people whom the inventory has for a host, and the quotas."""

from collections.abc import Mapping

from deploy.site.inventory import Host


def declared_users(host: Host) -> dict[str, int]:
    """The accounts of people that the inventory has for a host, with their uids."""
    return _declared([*host.value("users_accounts"), host.value("users_validation")], "uid")


def declared_groups(host: Host) -> dict[str, int]:
    """The groups of people that the inventory has for a host, with their gids; accounts' own, too."""
    own = _declared([*host.value("users_accounts"), host.value("users_validation")], "uid", without="group")
    return {**own, **_declared(host.value("users_groups"), "gid")}


def _declared(listed: object, number: str, *, without: str = "") -> dict[str, int]:
    """What is not to be absent, and has its number in plain digits and no value of another key."""
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    return {
        str(entry["name"]): int(entry[number])
        for entry in entries
        if "name" in entry and entry.get("state") != "absent" and not entry.get(without)
        if str(entry.get(number, "")).isdecimal()
    }


def declared_quotas(host: Host) -> dict[str, list[str]]:
    """The file systems of a host that have limits, with for whom: ``user``, ``group``."""
    listed = host.value("quotas_filesystems")
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    kinds = {"user": ("each_user", "users"), "group": ("groups",)}
    found = {
        str(entry.get("path")): [kind for kind, keys in kinds.items() if any(map(entry.get, keys))]
        for entry in entries
    }
    return {path: wanted for path, wanted in found.items() if wanted}
