"""A certificate of the site's without its key, or a key without its certificate."""

from collections.abc import Collection
from dataclasses import dataclass

from deploy.site.inventory import SECRETS_FILE, Host


@dataclass(frozen=True)
class HalfGiven:
    """Where the one stands that is given, the name of the other, and what is to be said of it."""

    where: str
    missing: str
    message: str


def half_given(host: Host, prefix: str, kept: Collection[str] = ()) -> HalfGiven | None:
    """Whether of ``<prefix>_certificate`` and ``<prefix>_certificate_key`` one alone is given for a host.

    ``kept`` are the names in secrets.yml, which count on every host.
    """
    names = (f"{prefix}_certificate", f"{prefix}_certificate_key")
    given = [name for name in names if name in kept or host.value(name)]
    if len(given) != 1:
        return None
    missing = next(name for name in names if name not in given)
    where = SECRETS_FILE if given[0] in kept else host.where(given[0])
    return HalfGiven(where, missing, f"{given[0]} is set for {host.name}, and {missing} is not")
