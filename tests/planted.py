"""Secrets that tests plant where a site may hold some, and look for wherever they may not be."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.site.rules import RULES
from deploy.site.schema import options
from deploy.site.secrets import secret_names
from deploy.site.wording import is_computed


class Text(str):
    """A secret that is planted as it is; any other text is planted in a URL."""

    __slots__ = ()


def leaves(spec: Mapping[str, Any], secret: object) -> Iterator[Any]:
    """Values of an option with a secret in each place where it may hold one."""
    if spec.get("no_log"):
        kind = spec.get("type", "str")
        is_bare = isinstance(secret, Text) or not isinstance(secret, str)
        in_text = secret if is_bare else f"http://user:{secret}@proxy.example:3128"
        yield {"dict": {"password": secret}, "list": [{"password": secret}]}.get(kind, in_text)
    for name, inner in (spec.get("options") or {}).items():
        for leaf in leaves(inner, secret):
            others = {key: "x" for key, of in spec["options"].items() if of.get("required")}
            entry = {**others, name: leaf}
            yield [entry] if spec.get("type") == "list" else entry


def secret_options() -> list[str]:
    """Every option of every role that is a secret, or holds one."""
    return [name for name, option in options().items() if option.secret]


def everywhere(secret: str) -> dict[str, Any]:
    """Every such option that an inventory sets, with the secret in it, in a form that the option may have.

    Those that deploy generates are not among them.
    """
    generated = secret_names()
    found = {
        name: value
        for name in secret_options()
        if not (name in generated or is_computed(options()[name].spec))
        for value in leaves(options()[name].spec, secret if name in RULES else Text(secret))
    }
    public = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
    key = f"-----BEGIN PRIVATE KEY-----\n{secret}\n-----END PRIVATE KEY-----\n"
    tls = {"log_server_key": key, "log_server_certificate": public, "log_client_ca": public}
    user = {"name": "web", "password": secret, "privileges": "slurm_acct_db.*:SELECT"}
    upstream = {"name": "docker.io", "user": "site", "password": secret}
    return {**found, **tls, "mariadb_users": [user], "slurm_registry_upstreams": [upstream]}


def holders(places: Iterable[Path], secrets: Iterable[str]) -> list[Path]:
    """The files below these places that hold one of the secrets."""
    wanted = [secret.encode() for secret in secrets]
    paths = {path for place in places for path in (place.rglob("*") if place.is_dir() else [place])}
    return sorted(path for path in paths if any(secret in _content(path) for secret in wanted))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""
