"""JupyterHub's configuration; what differs between sites is in /etc/slurm-portal/settings.json."""

import html
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, "/usr/local/lib/slurm-portal")

from portal_pages import HANDLERS
from portal_spawner import ADMINS, PortalAuthenticator, SlurmSpawner, launcher
from prometheus_client import start_http_server

_STATE = Path("/var/lib/slurm-portal")
settings = json.loads(Path("/etc/slurm-portal/settings.json").read_text(encoding="utf-8"))

c = get_config()  # noqa: F821 - JupyterHub's

c.JupyterHub.bind_url = settings["url"]
c.JupyterHub.hub_bind_url = f"https://{settings['hub_address'] or '0.0.0.0'}:{settings['hub_port']}"  # noqa: S104 - with certificates
c.JupyterHub.hub_connect_url = f"https://{settings['hub_name']}:{settings['hub_port']}"
c.JupyterHub.internal_ssl = True
c.JupyterHub.internal_certs_location = settings["certificates"]
c.JupyterHub.trusted_alt_names = settings["names"]
c.JupyterHub.trusted_downstream_ips = ["127.0.0.1", "::1", settings["hub_own_address"]]
c.JupyterHub.cookie_secret_file = "/etc/slurm-portal/cookie_secret"  # noqa: S105 - a file
c.JupyterHub.db_url = f"sqlite:///{_STATE}/portal.sqlite"
# Servers and the proxy outlive the hub.
c.JupyterHub.cleanup_servers = False
c.JupyterHub.cleanup_proxy = False
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = f"https://localhost:{settings['proxy_api_port']}"
c.ConfigurableHTTPProxy.auth_token = os.environ["CONFIGPROXY_AUTH_TOKEN"]
c.JupyterHub.template_paths = ["/usr/local/lib/slurm-portal/templates"]
# JupyterHub shows it on every page, as HTML.
c.JupyterHub.template_vars = {"announcement": html.escape(settings["message"])}
c.JupyterHub.extra_handlers = HANDLERS
c.JupyterHub.tornado_settings = {
    "portal_helper": settings["socket"],
    "portal_prometheus": settings["prometheus"],
    "headers": settings["headers"],
}
c.JupyterHub.admin_access = False
c.JupyterHub.concurrent_spawn_limit = 100
c.JupyterHub.last_activity_interval = 60
c.JupyterHub.shutdown_on_logout = False

c.JupyterHub.authenticator_class = PortalAuthenticator
c.PortalAuthenticator.helper = settings["socket"]
c.PortalAuthenticator.attempts = settings["login_attempts"]
c.PortalAuthenticator.minutes = settings["login_minutes"]
# Whom the helper lets in, with the site's groups.
c.PortalAuthenticator.allow_all = True
c.PortalAuthenticator.auto_login = False

if settings["oidc"] and "--generate-certs" not in sys.argv:
    from portal_oidc import OidcAuthenticator, endpoints

    said = settings["oidc"]
    found = endpoints(said["issuer"], _STATE / "provider.json")
    c.JupyterHub.authenticator_class = OidcAuthenticator
    c.OidcAuthenticator.authorize_url = found["authorization_endpoint"]
    c.OidcAuthenticator.token_url = found["token_endpoint"]
    c.OidcAuthenticator.userdata_url = found["userinfo_endpoint"]
    c.OidcAuthenticator.client_id = said["client_id"]
    c.OidcAuthenticator.client_secret = Path("/etc/slurm-portal/oidc_secret").read_text(encoding="utf-8")
    c.OidcAuthenticator.oauth_callback_url = said["callback"]
    c.OidcAuthenticator.scope = said["scopes"]
    c.OidcAuthenticator.username_claim = said["claim"]
    c.OidcAuthenticator.groups_claim = said["groups_claim"]
    c.OidcAuthenticator.wanted_groups = said["allowed_groups"]
    c.OidcAuthenticator.login_service = said["title"]
    c.OidcAuthenticator.helper = settings["socket"]
    c.OidcAuthenticator.manage_groups = True
    # Whom the provider's groups and the helper let in.
    c.OidcAuthenticator.allow_all = True
    c.OidcAuthenticator.validate_server_cert = True

c.JupyterHub.spawner_class = SlurmSpawner
c.SlurmSpawner.helper = settings["socket"]
c.SlurmSpawner.limits = settings
c.SlurmSpawner.options_form = launcher
c.SlurmSpawner.start_timeout = 60 * settings["wait_minutes"]
c.SlurmSpawner.http_timeout = 120
c.SlurmSpawner.poll_interval = 30
c.SlurmSpawner.default_url = "/lab"
c.SlurmSpawner.ssl_alt_names_include_local = False

c.PortalAuthenticator.manage_groups = True
c.JupyterHub.load_roles = [
    {
        "name": "operators",
        "scopes": ["admin-ui", "list:users", "read:users", "read:servers", "delete:servers"],
        "groups": [ADMINS],
    }
]
c.JupyterHub.services = []
if user := settings["validation_user"]:
    # What portal_check.py may do: everything of this user, and nothing of another.
    scopes = ("admin:users", "read:users", "servers", "access:servers")
    c.JupyterHub.load_roles += [
        {"name": "check", "scopes": [f"{scope}!user={user}" for scope in scopes], "services": ["check"]}
    ]
    c.JupyterHub.services += [{"name": "check", "api_token": os.environ["PORTAL_CHECK_TOKEN"]}]
if settings["idle_minutes"]:
    c.JupyterHub.load_roles += [
        {
            "name": "idle",
            "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
            "services": ["idle"],
        }
    ]
    c.JupyterHub.services += [
        {
            "name": "idle",
            "command": [
                sys.executable,
                "-m",
                "jupyterhub_idle_culler",
                f"--timeout={60 * settings['idle_minutes']}",
                "--ssl-enabled=true",
                f"--internal-certs-location={settings['certificates']}",
            ],
        }
    ]

if settings["metrics_port"] and "--generate-certs" not in sys.argv:
    start_http_server(settings["metrics_port"], settings["metrics_address"] or "0.0.0.0")  # noqa: S104 - behind the firewall
