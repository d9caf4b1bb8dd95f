"""Grafana of the wanted version, with its source; nobody looks without the password, old or new."""

import configparser
import json

import yaml

from molecule.conftest import MACHINES, Converge, On

FIRST, SECOND = "a-first-word-of-this-scenario", "another-word-of-this-scenario"
PAGE = "http://127.0.0.1:3000"


def code(on: On, machine: str, password: str = "") -> str:
    """The answer to somebody who has this password, or none."""
    words = ("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--config", "-")
    return on(
        machine, *words, f"{PAGE}/api/org", data=f'user = "admin:{password}"\n' if password else ""
    ).stdout


def test_it_is_of_the_version_though_there_is_a_later_one(on: On, machine: str) -> None:
    assert on(machine, "dpkg-query", "--show", "--showformat=${Version}", "grafana").stdout == "12.1.0"
    assert on(machine, "systemctl", "is-enabled", "grafana-server").stdout == "enabled\n"


def test_only_the_admin_is_let_in(on: On, machine: str) -> None:
    assert (code(on, machine), code(on, machine, "admin"), code(on, machine, FIRST)) == ("401", "401", "200")


def test_another_password_is_put_in_place(on: On, converge: Converge) -> None:
    answer = converge(word=SECOND)
    assert answer.returncode == 0, answer.stdout
    assert SECOND not in answer.stdout
    codes = [(code(on, machine, FIRST), code(on, machine, SECOND)) for machine in MACHINES]
    assert converge(word=SECOND).stdout.count("changed=0") == len(MACHINES)
    converge()
    assert codes == [("401", "200")] * len(MACHINES)
    assert [code(on, machine, FIRST) for machine in MACHINES] == ["200"] * len(MACHINES)


def test_settings(on: On, machine: str) -> None:
    read = configparser.ConfigParser(interpolation=None)
    read.read_string(on(machine, "cat", "/etc/grafana/grafana.ini").stdout)
    assert read["auth.anonymous"]["enabled"] == "false"
    assert read["users"]["allow_sign_up"] == "false"
    assert read["users"]["viewers_can_edit"] == "true"
    assert read["server"]["http_addr"] == "127.0.0.1"
    assert read["security"]["admin_user"] == "admin"


def test_the_source(on: On, machine: str) -> None:
    text = on(machine, "cat", "/etc/grafana/provisioning/datasources/deploy.yml").stdout
    source = yaml.safe_load(text)["datasources"][0]
    assert (source["uid"], source["type"], source["isDefault"]) == ("prometheus", "prometheus", True)
    assert (source["url"], source["basicAuthUser"]) == ("http://10.0.0.1:9090", "watcher")


def test_dashboards_are_where_grafana_looks_for_them(on: On, machine: str) -> None:
    text = on(machine, "cat", "/etc/grafana/provisioning/dashboards/deploy.yml").stdout
    place = yaml.safe_load(text)["providers"][0]["options"]["path"]
    names = on(machine, "ls", place).stdout.split()
    assert all(json.loads(on(machine, "cat", f"{place}/{name}").stdout)["title"] for name in names)
    assert on(machine, "stat", "--format=%U %a", place).stdout == "root 755\n"


def test_secrets_are_for_grafana_alone(on: On, machine: str) -> None:
    nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    for secret in (FIRST, "a-word-for-the-source"):
        search = ("grep", "-rlsF", secret, "/etc", "/run", "/tmp", "/var/lib/grafana")
        assert on(machine, *search, check=False).stdout != ""
        assert on(machine, *nobody, *search, check=False).stdout == ""
        assert secret not in on(machine, "ps", "-e", "-ww", "-o", "args=").stdout
