"""Whom the host that watches is asked about, and how each wants to be asked."""

from collections.abc import Mapping
from typing import Any

from deploy.plan.access_vars import ssh_port
from deploy.plan.generated_inventory import shared_variables
from deploy.plan.listening import listeners, members_of_phases
from deploy.plan.monitoring_vars import monitoring_variables
from deploy.site.hardware import Hardware
from deploy.site.inventory import Host, Site

_LOCALHOST = "127.0.0.1"
_ACCESS = (
    ("basic_auth", "username"),
    ("basic_auth", "password_file"),
    ("authorization", "type"),
    ("authorization", "credentials_file"),
    ("tls_config", "cert_file"),
    ("tls_config", "key_file"),
)
"""What of a scrape_config says who asks and is no secret."""
_SECRETS = (("basic_auth", "password"), ("authorization", "credentials"))


def watcher(site: Site) -> Host:
    """Who asks: the host that watches, or the controller where nobody does."""
    return (*site.metrics, *site.controllers)[0]


def monitoring_questions(site: Site, contract: Mapping[str, Hardware]) -> dict[str, Any]:
    """The variables of the host that asks; what the site may write as a template Ansible reads."""
    host = watcher(site)
    doors = [[login.name, login.cluster_address, ssh_port(login)] for login in site.logins]
    asked: dict[str, Any] = {"doors": doors}
    secrets: dict[str, Any] = {}
    if site.metrics:
        listening = listeners(members_of_phases(site, contract))[host.name]
        wired = monitoring_variables(site, host, listening, "")
        jobs = shared_variables(site, contract)["phase_targets"]["scrape_targets_jobs"]
        for role in ("prometheus", "alertmanager"):
            asked[role] = {
                **_place(host, role, str(wired[f"{role}_listen_address"])),
                "has_tls": f"{{{{ ({role}_web | default({{}})).tls_server_config is defined }}}}",
                "arguments": f"{{{{ {role}_arguments | default([]) }}}}",
                "access": _settings(role, _ACCESS),
            }
            secrets[role] = {
                name: value for part in _settings(role, _SECRETS).values() for name, value in part.items()
            }
        asked["prometheus"]["promised"] = sum(map(len, jobs.values()))
        if "grafana" in listening:
            is_below = "(grafana_settings | default({})).server.serve_from_sub_path | default(false)"
            asked["grafana"] = {
                **_place(host, "grafana", str(wired["grafana_listen_address"])),
                "has_tls": "{{ grafana_certificate | default('') | length > 0 }}",
                "external_url": f"{{{{ (grafana_external_url | default('')) if ({is_below}) else '' }}}}",
            }
    return {"validation_monitoring": asked, "validation_monitoring_secrets": secrets}


def _place(host: Host, role: str, address: str) -> dict[str, Any]:
    listens = f"{role}_listen_address | default('{address}', true) or '{_LOCALHOST}'"
    return {"address": f"{{{{ {listens} }}}}", "port": host.value(f"{role}_port")}


def _settings(job: str, keys: tuple[tuple[str, str], ...]) -> dict[str, dict[str, str]]:
    """How Prometheus is told to ask a job, as templates by part and name."""
    found: dict[str, dict[str, str]] = {}
    for part, name in keys:
        said = f"(prometheus_scrape_settings | default({{}})).{job}.{part}.{name} | default('')"
        found.setdefault(part, {})[name] = f"{{{{ {said} }}}}"
    return found
