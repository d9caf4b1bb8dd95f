"""Entries of lists that are for one thing, of which only the last one would count."""

from collections.abc import Iterator, Mapping

from deploy.errors import Finding
from deploy.site.inventory import Site
from deploy.site.values import faults, opaque

_KEYS: Mapping[str, tuple[str, ...]] = {
    "environment_modules_software": ("name", "version"),
    "job_programs_epilog": ("name",),
    "job_programs_prolog": ("name",),
    "mariadb_users": ("name", "host"),
    "ml_stack_environments": ("name", "version"),
    "node_health_programs": ("name",),
    "shared_directories_paths": ("path",),
    "user_environment_job_variables": ("name",),
    "user_environment_variables": ("name",),
}
"""What tells the entries of a list apart."""


def check_duplicates(site: Site) -> Iterator[Finding]:
    """Each pair once, wherever it is set."""
    for host in site.cluster:
        for variable, keys in _KEYS.items():
            entries = host.variables.get(variable)
            if not entries or opaque(entries) or faults(variable, entries):
                continue
            things = [tuple(entry.get(key) for key in keys) for entry in entries]
            for thing in dict.fromkeys(thing for thing in things if things.count(thing) > 1):
                named = " ".join(str(part) for part in thing if part is not None)
                yield Finding(
                    host.where(variable),
                    "declared-twice",
                    f"{variable} has {named} {things.count(thing)} times, and only the last one would count",
                    "leave the entry that is right",
                )
