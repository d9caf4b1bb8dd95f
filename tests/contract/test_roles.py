"""Every role keeps the rules of the house; and every rule notices a role that does not."""

from pathlib import Path

import pytest

from tests.contract.content import role_directories
from tests.contract.rules import RULES, Rule

ROLES = role_directories()


def test_roles_are_found() -> None:
    assert {"bootstrap", "munge", "slurmctld"} <= {role.name for role in ROLES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_role_keeps_the_rule(role: Path, rule: Rule) -> None:
    assert list(rule(role)) == []


BROKEN = {
    "meta/argument_specs.yml": """
argument_specs:
  main:
    options:
      broken_number: {type: int, default: "one", description: A number.}
      broken_differs: {type: int, default: 1, description: A number.}
      broken_both: {type: int, default: 1, required: true, description: A number.}
      broken_silent: {type: list, default: []}
      foreign_name: {type: str, required: true, description: Not prefixed.}
      broken_secret: {type: str, required: true, no_log: true, description: A secret.}
""",
    "defaults/main.yml": "{broken_number: one, broken_differs: 2, broken_silent: [], broken_unknown: 3}",
    "vars/main.yml": """
broken_private: &one {a: 1}
__broken_by_release: {Debian-1: 1}
__broken_twice: {<<: *one, a: 2}
""",
    "templates/etc/secret.conf.j2": "password = {{ broken_secret }}\n",
    "templates/elsewhere.conf.j2": "{{ hostvars['other'].x }} {{ ansible_hostname }}\n",
    "tasks/main.yml": """
- name: Untagged, loud, ignoring
  ansible.builtin.template:
    src: etc/secret.conf.j2
    dest: /etc/secret.conf
  ignore_errors: true
  register: result
- name: Say nothing of why
  ansible.builtin.command: "true"
  changed_when: false
  tags: [service]
- name: Starts a daemon as it comes
  ansible.builtin.apt:
    name: daemon
  when: ansible_facts['distribution'] == 'Debian' or __broken_absent
  tags: [install]
- name: Lies elsewhere
  ansible.builtin.template:
    src: elsewhere.conf.j2
    dest: /etc/here.conf
  tags: [configure]
- name: Lies elsewhere, too
  root_files:
    files:
      /etc/one.conf: "{{ lookup('ansible.builtin.template', 'etc/other.conf.j2') }}"
  tags: [configure]
- name: Leaves another's mode
  ansible.builtin.copy:
    content: x
    dest: /etc/once
    force: false
  tags: [configure]
- name: Leaves half an archive
  ansible.builtin.unarchive:
    src: /srv/x.tar
    dest: /srv
    creates: /srv/x
  tags: [configure]
""",
}

EXPECTED = {
    "defaults_equal_specification": {"broken_unknown", "broken_differs", "broken_both"},
    "defaults_have_their_type": {"broken_number"},
    "options_are_described": {"short_description", "broken_silent has no description", "no elements"},
    "variables_carry_the_role_name": {"foreign_name", "broken_private", "variable result"},
    "defines_what_it_names": {"main.yml: __broken_absent comes from nowhere"},
    "has_its_documents": {"README.md", "galaxy_info"},
    "reads_nothing_of_other_hosts": {"reads other hosts'", "ansible_hostname"},
    "explains_its_exceptions": {"not ignored", "no comment"},
    "tags_its_tasks": {"main.yml:2: has no tag"},
    "names_action_and_object": {"main.yml:8: Say is no action"},
    "installs_packages_in_one_way": {"ansible.builtin.apt instead of packages"},
    "tells_releases_apart_in_one_place": {"main.yml:15: tells systems apart", "Debian-1, Debian-12,"},
    "has_no_key_twice": {"main.yml:4: a is there twice"},
    "mirrors_targets_in_template_paths": {
        "elsewhere.conf.j2 does not mirror",
        "etc/other.conf.j2 does not mirror /etc/one.conf",
    },
    "keeps_owner_and_mode_of_what_it_leaves": {"keeps the mode of /etc/once", "half an archive"},
    "keeps_secrets_quiet": {"without no_log", "without diff"},
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    role = tmp_path_factory.mktemp("roles") / "broken"
    for name, text in BROKEN.items():
        path = role / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return role


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_notices(broken: Path, rule: Rule) -> None:
    found = list(rule(broken))
    missed = {text for text in EXPECTED[rule.__name__] if not any(text in message for message in found)}
    assert missed == set(), found
