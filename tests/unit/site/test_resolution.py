"""What templates come to, offline, and what is said of those that never could."""

from pathlib import Path

import pytest

from deploy.site.inventory import FACTS, Site, read_site
from tests.unit.site.sites import write_site

pytestmark = pytest.mark.usefixtures("quick_reading")

LOOKUPS = {
    "file": "{{ lookup('file', inventory_dir ~ '/found') }}",
    "a list of files": "{{ lookup('ansible.builtin.file', *query('fileglob', inventory_dir ~ '/f*')) }}",
    "first_found": "{{ lookup('file', lookup('first_found', [inventory_dir ~ '/found'])) }}",
    "pipe": "{{ lookup('pipe', 'cat ' ~ inventory_dir ~ '/found') }}",
    "template": "{{ lookup('template', inventory_dir ~ '/found') }}",
    "url": "{{ lookup('url', 'file://' ~ inventory_dir ~ '/found') }}",
    "lines": "{{ lookup('lines', 'cat ' ~ inventory_dir ~ '/found') }}",
    "password": "{{ lookup('password', inventory_dir ~ '/found') }}",
    "csvfile": "{{ lookup('csvfile', 'key', file=inventory_dir ~ '/found', delimiter='=') }}",
    "ini": "{{ lookup('ini', 'key', type='properties', file=inventory_dir ~ '/found') }}",
    "unvault": "{{ lookup('unvault', inventory_dir ~ '/found') }}",
    "a test of a file": "{{ 'one' if (inventory_dir ~ '/one') is exists else 'other' }}",
    "by way of another variable": "{{ site_found }}",
}


def read(place: Path, text: str, **files: str) -> Site:
    place.mkdir(exist_ok=True)
    return read_site(write_site(place, files={"group_vars/all.yml": text, **files}))


def resolved(site: Site, name: str, host: str = "node1") -> object:
    return site.resolved.hosts[host].variables[name]


@pytest.mark.parametrize("template", LOOKUPS.values(), ids=LOOKUPS)
def test_what_is_looked_up(template: str, tmp_path: Path) -> None:
    text = f'time_sync_options: "{template}"\nsite_found: "{LOOKUPS["file"]}"\n'

    def with_content(content: str) -> object:
        place = tmp_path / "site"
        site = read(place, text, found=f"key={content}\n")
        (place / "one").unlink(missing_ok=True)
        (place / content).touch()
        return resolved(read_site(site.inventory), "time_sync_options")

    assert "one" in str(with_content("one"))
    assert "other" in str(with_content("other"))


def test_the_environment(tmp_path: Path) -> None:
    site = read(tmp_path, "time_sync_options: \"{{ lookup('env', 'HOME') }}\"\n")
    assert resolved(site, "time_sync_options") == str(Path.home())


def test_no_password_is_made(tmp_path: Path) -> None:
    made = tmp_path / "made"
    plain, full = (
        f"{{{{ lookup('{name}', '{made}/secret') }}}}" for name in ("password", "ansible.builtin.password")
    )
    site = read(tmp_path, f'motd_text: ["{plain}", "{full}"]\n')
    assert len(str(resolved(site, "motd_text"))) > 20
    assert not made.exists()


def test_what_roles_default_to_and_what_secrets_say(tmp_path: Path) -> None:
    text = "motd_text: ['{{ slurmdbd_port }} {{ slurmdbd_database_password }} {{ site_own }}']\n"
    site = read(tmp_path, text, **{"secrets.yml": "slurmdbd_database_password: p\nsite_own: '{{ 1 + 1 }}'\n"})
    assert resolved(site, "motd_text") == ["6819 p 2"]


def test_what_is_typed_wins(tmp_path: Path) -> None:
    inventory = write_site(tmp_path, files={"group_vars/all.yml": "motd_text: ['{{ site_a }}']\nsite_a: 1\n"})
    site = read_site(inventory, extra_variables={"site_a": "{{ 40 + 2 }}"})
    assert resolved(site, "motd_text") == [42]


def test_each_host_has_its_own(tmp_path: Path) -> None:
    text = "motd_text: ['{{ site_a }} {{ inventory_hostname }} {{ hostvars[\"ctl1\"].ansible_host }}']\n"
    files = {f"host_vars/{name}.yml": f"site_a: '{name}!'\n" for name in ("ctl1", "login1", "node1", "node2")}
    site = read(tmp_path, text, **files)
    assert [resolved(site, "motd_text", host) for host in ("login1", "node2")] == [
        ["login1! login1 10.0.0.1"],
        ["node2! node2 10.0.0.1"],
    ]


def test_what_hosts_share_is_looked_up_once(tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    command = f"echo once >> {counted}; cat {counted}"
    site = read(tmp_path, f"motd_text: [\"{{{{ lookup('pipe', '{command}') }}}}\"]\n")
    assert {str(resolved(site, "motd_text", host)) for host in site.hosts} == {"['once']"}


@pytest.mark.parametrize(
    "mentioned",
    [
        *(f"ansible_facts['{name}']" for name in FACTS),
        "ansible_distribution",
        "slurmctld_controllers",
        "munge_key",
        "role_path",
        "ansible_play_hosts",
        "ansible_user",
        "hostvars['node2'].ansible_facts.distribution",
    ],
)
def test_what_only_a_run_knows_is_no_problem(mentioned: str, tmp_path: Path) -> None:
    site = read(tmp_path, f'motd_text: ["{{{{ {mentioned} }}}}"]\n')
    resolution = site.hosts["node1"].resolutions["motd_text"]
    assert (resolution.is_known, resolution.problems) == (False, ())
