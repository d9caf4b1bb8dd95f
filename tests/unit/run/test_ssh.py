import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.plugins.connection import ssh as ansible_ssh

from deploy.run.ssh import Login, NotByPlainSshError, Unanswered, ask, command
from deploy.site.inventory import Host


def host(**connection: object) -> Host:
    return Host("node1", connection, frozenset(), connection=connection)


def test_a_host_by_its_name() -> None:
    words = command(host(), Login())
    assert words[:2] == ["ssh", "-T"]
    assert words[words.index("--") + 1] == "node1"
    assert "BatchMode=yes" in words
    assert "StrictHostKeyChecking=yes" in words
    assert words[-1].startswith("sh -c ")


def test_what_the_inventory_says_wins_over_the_command_line() -> None:
    said = host(
        ansible_host="10.0.0.9",
        ansible_user="admin",
        ansible_port=2222,
        ansible_ssh_private_key_file="/keys/mine",
        ansible_ssh_common_args="-J 'jump host'",
    )
    words = command(said, Login(user="other", private_key="/keys/other"))
    assert words[words.index("--") + 1] == "10.0.0.9"
    for option, value in (("-l", "admin"), ("-p", "2222"), ("-i", "/keys/mine"), ("-J", "jump host")):
        assert words[words.index(option) + 1] == value


def test_the_command_line_and_the_environment_fill_gaps() -> None:
    said = {
        "ANSIBLE_PRIVATE_KEY_FILE": "/k",
        "ANSIBLE_REMOTE_PORT": "2222",
        "ANSIBLE_REMOTE_USER": "other",
        "ANSIBLE_SSH_ARGS": "-o X=y",
        "ANSIBLE_SSH_EXECUTABLE": "/opt/ssh -q",
    }
    words = command(host(), Login(user="me", environment=said))
    assert words[:3] == ["/opt/ssh", "-q", "-T"]
    for option, value in (("-l", "me"), ("-p", "2222"), ("-i", "/k")):
        assert words[words.index(option) + 1] == value
    assert "X=y" in words


@pytest.mark.parametrize(
    ("connection", "login", "why"),
    [
        ({}, Login(asks_for_passwords=True), "password is given"),
        ({"ansible_become_password": "x"}, Login(), "ansible_become_password is given"),
        ({"ansible_connection": "winrm"}, Login(), "ansible_connection is winrm"),
        ({"ansible_become_method": "doas"}, Login(), "ansible_become_method is doas"),
        ({"ansible_host": "{{ later }}"}, Login(), "a template"),
        ({}, Login(environment={"ANSIBLE_BECOME_METHOD": "su"}), "ansible_become_method is su"),
        ({}, Login(environment={"ANSIBLE_BECOME_EXE": "/opt/sudo"}), "ANSIBLE_BECOME_EXE is given"),
        (
            {},
            Login(environment={"ANSIBLE_BECOME_PASSWORD_FILE": "/p"}),
            "PASSWORD_FILE is given",
        ),
        (
            {"ansible_ssh_args": "-o 'X"},
            Login(),
            "ansible_ssh_args is no list of words: No closing",
        ),
        ({"ansible_user": ["a"]}, Login(), "ansible_user is neither a text nor a number"),
    ],
)
def test_what_only_ansible_can_reach_is_left_to_it(
    connection: dict[str, Any], login: Login, why: str
) -> None:
    with pytest.raises(NotByPlainSshError, match=why):
        command(host(**connection), login)
    answers = ask({"node1": ("verify", {})}, {"node1": host(**connection)}, login)
    assert answers["node1"].is_by_choice


def fake_ssh(place: Path, script: str) -> Host:
    path = place / "ssh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return host(ansible_ssh_executable=str(path))


def test_an_answer_among_other_words(tmp_path: Path) -> None:
    said = fake_ssh(tmp_path, "cat >/dev/null; echo Welcome; echo 'deploy:{\"a\": 1}'")
    assert ask({"node1": ("verify", {})}, {"node1": said}, Login()) == {"node1": {"a": 1}}


def test_why_there_is_no_answer(tmp_path: Path) -> None:
    said = fake_ssh(tmp_path, "cat >/dev/null; echo 'Connection refused' >&2; exit 255")
    assert ask({"node1": ("verify", {})}, {"node1": said}, Login()) == {
        "node1": Unanswered("Connection refused")
    }
    gone = host(ansible_ssh_executable=str(tmp_path / "none"))
    answers = ask({"node1": ("verify", {})}, {"node1": gone}, Login())
    assert "No such file" in answers["node1"].why


@pytest.mark.parametrize(
    ("option", "typed"), [("host", "--"), ("port", "-p"), ("remote_user", "-l"), ("private_key_file", "-i")]
)
def test_of_two_variables_that_of_ansible_counts(option: str, typed: str) -> None:
    """The last of those that its documentation lists is the one by which Ansible goes."""
    documented = yaml.safe_load(ansible_ssh.DOCUMENTATION)["options"][option]["vars"]
    names = [
        of["name"] for of in documented if of["name"].startswith("ansible_") and "delegated" not in of["name"]
    ]
    assert len(names) > 1
    values = {name: f"/{number}" for number, name in enumerate(names)}
    words = command(host(**values), Login())
    assert words[words.index(typed) + 1] == values[names[-1]]
    if option == "host":
        assert host(**values).address == values[names[-1]]
        assert host(ansible_ssh_host="10.0.0.9").address == "10.0.0.9"


@pytest.mark.parametrize("name", ["ansible_host_key_checking", "ansible_ssh_host_key_checking"])
@pytest.mark.parametrize(("value", "said"), [(False, "no"), ("no", "no"), (True, "yes"), ("true", "yes")])
def test_host_keys_are_checked_as_the_inventory_says(name: str, value: object, said: str) -> None:
    assert f"StrictHostKeyChecking={said}" in command(host(**{name: value}), Login())


@pytest.mark.parametrize("value", ["auto", "auto_silent", "auto_legacy_silent"])
def test_python_is_there_where_ansible_would_look_for_it(value: str) -> None:
    assert "/usr/bin/python3 -IS" in command(host(ansible_python_interpreter=value), Login())[-1]


def test_what_is_empty_or_a_fraction_stands_in_nobodys_way() -> None:
    assert command(host(ansible_user=None, ansible_ssh_timeout=1.5), Login()) == command(host(), Login())
