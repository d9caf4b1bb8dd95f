"""A host is given up a minute after its last word, however it is reached, unless the site says otherwise."""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ansible_mitogen.connection
import mitogen.parent
import mitogen.ssh
import pytest
from ansible.playbook.play_context import PlayContext
from ansible.plugins.loader import connection_loader

from deploy.run.keepalive import give_up_silent
from deploy.run.settings import Settings, ansible_environment
from deploy.run.ssh import Login, command
from deploy.site.inventory import Host

Said = Mapping[str, Any]
_OWN = "-o ServerAliveInterval=7 -o ServerAliveCountMax=2"


def ours(said: Said, _: pytest.MonkeyPatch) -> Sequence[str]:
    """What deploy's own connections call."""
    return command(Host("node1", said, frozenset(), connection=said), Login())


def ansibles(said: Said, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """What Ansible calls by itself."""
    for name, value in ansible_environment(Settings(plain=True), base={}).items():
        monkeypatch.setenv(name, value)
    connection = connection_loader.get("ssh", PlayContext())
    connection.set_options(var_options={"ansible_host": "node1", **said})
    words: list[bytes] = connection._build_command("ssh", "ssh", "node1", "true")
    return [str(word, "utf-8") for word in words]


class Spec:
    """A host as mitogen's methods are told of it: what nobody said is None."""

    def __init__(self, said: Said) -> None:
        self.said = {"remote_addr": "node1", "host_key_checking": True, "ssh_executable": "ssh", **said}

    def ssh_args(self) -> list[str]:
        return str(self.said.get("ansible_ssh_common_args", "")).split()

    def __getattr__(self, name: str) -> Callable[[], object]:
        return lambda: self.said.get(name)


def mitogens(said: Said, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """What mitogen calls."""
    monkeypatch.setattr(mitogen.parent.Connection, "get_boot_command", lambda _: ["true"])
    monkeypatch.setattr(ansible_mitogen.connection, "get_remote_name", lambda _: "deploy")
    methods = dict(ansible_mitogen.connection.CONNECTION_METHOD)
    give_up_silent(methods, mitogen.ssh.Options)
    assert methods["smart"] is methods["ssh"]
    hop = methods["ssh"](Spec(said))
    options = mitogen.ssh.Options(max_message_size=1, **hop["kwargs"])
    return list(mitogen.ssh.Connection(options, router=None).get_boot_command())


WAYS = pytest.mark.parametrize("way", [ours, ansibles, mitogens])


def meant(words: Sequence[str]) -> tuple[str, str]:
    """The interval and the count that ssh makes of its options."""
    call = [words[0], "-F", "none", "-G", *words[1:]]
    said = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    values = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    return values["serveraliveinterval"], values["serveralivecountmax"]


@WAYS
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ("15", "3")),
        ({"ansible_ssh_common_args": _OWN}, ("7", "2")),
        ({"ansible_ssh_common_args": "-o ServerAliveInterval=7"}, ("7", "3")),
    ],
)
def test_a_silent_host_is_given_up_by_all_alike(
    way: Callable[..., Sequence[str]], said: Said, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert meant(way(said, monkeypatch)) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"mitogen_ssh_keepalive_interval": "60"}, ("60", "3")),
        ({"mitogen_ssh_keepalive_interval": 0, "mitogen_ssh_keepalive_count": 9}, ("0", "9")),
    ],
)
def test_mitogens_own_variables_count(
    said: Said, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert meant(mitogens(said, monkeypatch)) == expected


def test_what_the_environment_says_for_ansible_comes_before() -> None:
    environment = ansible_environment(Settings(plain=True), base={"ANSIBLE_SSH_EXTRA_ARGS": _OWN})
    assert environment["ANSIBLE_SSH_EXTRA_ARGS"].startswith(f"{_OWN} -o ServerAliveInterval=15")


def test_runs_have_mitogen_do_so() -> None:
    shown = "print(ours.ansible_mitogen.connection.CONNECTION_METHOD)"
    program = f"import deploy.run.mitogen_linear as ours; {shown}"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.count("give_up_silent") == 2


def test_a_mitogen_with_other_options_stays_as_it_is() -> None:
    methods = {"ssh": lambda spec: {"kwargs": spec}}
    was = dict(methods)
    with pytest.raises(TypeError):
        give_up_silent(methods, Host)
    assert methods == was
