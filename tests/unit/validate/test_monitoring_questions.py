"""Whom the host that watches is asked about, as Ansible reads it."""

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

from deploy.validate.monitoring_questions import monitoring_questions, watcher
from tests.unit.validate.clusters import GROUPS, site

PASSWORD = "a word"  # noqa: S105 - of this test


def trusted(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    """As Ansible trusts what comes from an inventory."""
    if isinstance(value, dict):
        return {key: trusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [trusted(item) for item in value]
    return trust_as_template(value) if isinstance(value, str) else value


def read(variables: dict[str, Any], groups: dict[str, tuple[str, ...]] | None = None) -> dict[str, Any]:
    """The variables once Ansible read them."""
    templar = Templar(loader=DataLoader(), variables=trusted(variables))
    found: dict[str, Any] = templar.template(trusted(monitoring_questions(site(variables, groups), {})))
    return found


def test_a_site_that_says_nothing() -> None:
    found = read({})
    asked, access = found["validation_monitoring"], found["validation_monitoring"]["prometheus"]["access"]
    assert {name: (asked[name]["address"], asked[name]["port"]) for name in asked.keys() - {"doors"}} == {
        "prometheus": ("127.0.0.1", 9090),
        "alertmanager": ("127.0.0.1", 9093),
        "grafana": ("10.0.0.1", 3000),
    }
    assert asked["doors"] == [["login1", "10.0.0.2", 22]]
    assert not any(asked[name]["has_tls"] for name in ("prometheus", "alertmanager", "grafana"))
    assert not any(value for part in access.values() for value in part.values())
    assert asked["prometheus"]["arguments"] == []
    nothing = {"password": "", "credentials": ""}
    assert found["validation_monitoring_secrets"] == {"prometheus": nothing, "alertmanager": nothing}


def test_tls_and_passwords_are_those_of_the_roles_variables() -> None:
    found = read(
        {
            "site_word": PASSWORD,
            "prometheus_port": "{{ 9000 + 91 }}",
            "prometheus_listen_address": "127.0.0.1",
            "prometheus_arguments": ["--web.route-prefix=/prometheus"],
            "prometheus_web": {"tls_server_config": {"cert_file": "/x"}},
            "prometheus_scrape_settings": {
                "prometheus": {
                    "scheme": "https",
                    "basic_auth": {"username": "admin", "password": "{{ site_word }}"},
                    "tls_config": {"cert_file": "/c", "key_file": "/k"},
                },
                "alertmanager": {"authorization": {"credentials_file": "/t"}},
            },
            "alertmanager_web": {"basic_auth_users": {"admin": "hash"}},
            "grafana_certificate": "/etc/ssl/site.pem",
            "grafana_external_url": "https://metric.example.org/grafana",
            "grafana_settings": {"server": {"serve_from_sub_path": True}},
        }
    )
    asked = found["validation_monitoring"]
    prometheus, alertmanager, grafana = (asked[name] for name in ("prometheus", "alertmanager", "grafana"))
    assert (prometheus["has_tls"], alertmanager["has_tls"], grafana["has_tls"]) == (True, False, True)
    assert (prometheus["address"], int(prometheus["port"])) == ("127.0.0.1", 9091)
    assert prometheus["access"]["basic_auth"] == {"username": "admin", "password_file": ""}
    assert prometheus["access"]["tls_config"] == {"cert_file": "/c", "key_file": "/k"}
    assert alertmanager["access"]["authorization"]["credentials_file"] == "/t"
    assert prometheus["arguments"] == ["--web.route-prefix=/prometheus"]
    assert grafana["external_url"].endswith("/grafana")
    assert found["validation_monitoring_secrets"]["prometheus"]["password"] == PASSWORD
    assert PASSWORD not in str(asked)


def test_grafana_is_below_a_path_only_when_it_serves_from_there() -> None:
    asked = read({"grafana_external_url": "https://metric.example.org/grafana"})["validation_monitoring"]
    assert asked["grafana"]["external_url"] == ""


@pytest.mark.parametrize(
    ("variables", "groups", "who", "asked"),
    [
        ({}, GROUPS, "ctl1", {"prometheus", "alertmanager", "grafana", "doors"}),
        ({"grafana_source": "none"}, GROUPS, "ctl1", {"prometheus", "alertmanager", "doors"}),
        ({}, {**GROUPS, "slurm-metric": ()}, "ctl1", {"doors"}),
        (
            {},
            {**GROUPS, "slurm-metric": ("login1",)},
            "login1",
            {"prometheus", "alertmanager", "grafana", "doors"},
        ),
    ],
)
def test_who_is_asked_about_what(
    variables: dict[str, Any], groups: dict[str, tuple[str, ...]], who: str, asked: set[str]
) -> None:
    made = site(variables, groups)
    assert watcher(made).name == who
    assert monitoring_questions(made, {})["validation_monitoring"].keys() == asked
