"""Which hosts are compared with which of the site's secrets."""

from pathlib import Path

from deploy.plan.known_secrets import known_secrets, new_secrets
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site


def test_each_host_is_held_against_what_its_roles_need(tmp_path: Path) -> None:
    found = known_secrets(read_site(write_site(tmp_path)), {}, {})
    names = {host: sorted(variables["host_check_secrets"]) for host, variables in found.items()}
    everything = ["grafana_admin_password", "munge_key", "slurm_auth_key", "slurmdbd_database_password"]
    assert names == {"ctl1": everything} | {
        name: ["munge_key", "slurm_auth_key"] for name in ("login1", "node1", "node2")
    }
    assert found["node1"]["host_check_secrets"] == {
        name: f"{{{{ {name} | default('') }}}}" for name in ("munge_key", "slurm_auth_key")
    }


def test_what_was_changed_on_a_host_alone_is_put_right(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    current = {"node1": {"packages"}, "ctl1": {"packages", "accounting"}}
    found = known_secrets(site, {}, current)
    assert found["node1"]["host_check_secrets"] == {}
    # slurmdbd has a second phase, which is not as it was recorded.
    assert sorted(found["ctl1"]["host_check_secrets"]) == [
        "grafana_admin_password",
        "slurmdbd_database_password",
    ]


def test_only_controllers_pause_while_keys_change(tmp_path: Path) -> None:
    assert new_secrets(read_site(write_site(tmp_path))) == {"ctl1": {"munge_paused_services": ["slurmctld"]}}
