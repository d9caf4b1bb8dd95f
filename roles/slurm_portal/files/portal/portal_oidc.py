"""Logins by an OpenID provider of the site: whom it names has to be an account of the cluster."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oauthenticator.generic import GenericOAuthenticator
from portal_spawner import ADMINS, HelperError, ask
from tornado import web
from traitlets import List, Unicode

_ACCOUNT = re.compile(r"[a-z_][a-z0-9_.-]{0,63}")
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint")
_GROUPS = "portal_groups"
_SECONDS = 20


def endpoints(issuer: str, kept: Path) -> dict[str, str]:
    """Where the provider has what; while it is away, what it said the last time. Raises SystemExit."""
    try:
        place = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        with urllib.request.urlopen(place, timeout=_SECONDS) as answer:  # noqa: S310 - https, as deploy checks
            text = answer.read().decode()
    except OSError as problem:
        if not kept.exists():
            raise SystemExit(f"The OpenID provider {issuer} does not answer: {problem}") from None
        text = kept.read_text(encoding="utf-8")
    try:
        found = _fit(json.loads(text), issuer)
    except (ValueError, KeyError, AttributeError) as problem:
        raise SystemExit(f"The OpenID provider {issuer} says nothing fit: {problem!r}") from None
    kept.write_text(text, encoding="utf-8")
    return found


def _fit(said: Mapping[str, Any], issuer: str) -> dict[str, str]:
    if said["issuer"].rstrip("/") != issuer.rstrip("/"):
        raise ValueError("it calls itself " + said["issuer"])
    found = {name: str(said[name]) for name in _ENDPOINTS}
    if not all(place.startswith("https://") for place in found.values()):
        raise ValueError("its addresses are without TLS")
    return found


class OidcAuthenticator(GenericOAuthenticator):  # type: ignore[misc] - of no typed package
    """The site's provider says who somebody is, and the helper whether that is an account of the cluster."""

    helper = Unicode("/run/slurm-portal/helper.socket", config=True)
    groups_claim = Unicode("groups", config=True)
    wanted_groups = List(Unicode(), config=True)

    def user_info_to_username(self, user_info: Mapping[str, Any]) -> str:
        """The claim, where it is a plain name; were it changed into one, two people could become one."""
        name = user_info.get(self.username_claim)
        if not isinstance(name, str) or not _ACCOUNT.fullmatch(name):
            self.log.warning(
                "Login refused: %s of the provider is no name of an account", self.username_claim
            )
            raise web.HTTPError(
                403, f"{self.username_claim}, which your login says of you, is no name of an account here."
            )
        return name

    async def update_auth_model(self, auth_model: dict[str, Any]) -> dict[str, Any]:
        """Lets in whom the site wants and the cluster knows."""
        said = auth_model["auth_state"][self.user_auth_state_key].get(self.groups_claim)
        groups = {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
        if self.wanted_groups and not groups & set(self.wanted_groups):
            raise web.HTTPError(403, "Your login is in none of the groups that may use the portal.")
        try:
            answer = await ask(self.helper, {"do": "known", "user": auth_model["name"]})
        except HelperError as problem:
            raise web.HTTPError(403 if problem.refused else 503, str(problem)) from problem
        auth_model["auth_state"][_GROUPS] = [ADMINS] if answer["admin"] else []
        return auth_model

    async def get_user_groups(self, auth_state: Mapping[str, Any]) -> set[str]:
        """The hub's own groups; those of the provider are no groups of the cluster."""
        return set(auth_state[_GROUPS])

    async def refresh_user(self, *_: object, **__: object) -> bool:
        """Tokens of the provider are not kept, so it is not asked again before the next login."""
        return True
